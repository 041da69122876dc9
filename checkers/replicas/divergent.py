"""D16 divergent-replicas: Two replicas hold different records that both call committed.

At an offset below the checkpointed high watermarks of two replicas, and above both log starts, one
holds a record that the other does not: another key or value, another leader epoch, timestamp,
producer id or producer epoch, or none. Unknown where no metadata log tells of elections.

Below its high watermark a replica's log is the log: every later leader has the same. So at each
offset that lies below the high watermarks of two replicas and above both log starts, both hold the
same record, or both hold none. Followers append their leader's batches as they are, so that key and
value, leader epoch, timestamp, producer id and producer epoch are equal. High watermarks are
compared as last checkpointed, which the true ones were never below.

Copies of different incarnations of a topic are not compared, and of a damaged copy only what could
be read. After an election that was recorded as unclean the difference is legal: one of the two has
not been told yet. Where no metadata log tells of elections, the answer is unknown.

A case is an offset below the high watermarks of two replicas at which at least one of them holds a
record.

Meaning: What a consumer reads depends on who leads.
Case: an offset below the high watermarks of two replicas
Source: KIP-101 and KIP-279 (log truncation by leader epochs)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, starmap
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.anomaly import Found, none
from fencepost.checkers.entry import CatalogueEntry, Nearness, Strength
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.view import MetadataView, spelled
from fencepost.checkers.proof import Proof
from fencepost.checkers.ranges import range_rule, stretches
from fencepost.checkers.replicas.replica_logs import (
    NO_VALUE,
    UNCLEAN,
    ReplicaLog,
    keys_of,
    replica_logs,
)
from fencepost.checkers.slices import Split
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.LOG,
    strength=Strength.ALLOWED_IF,
    allowed_if=UNCLEAN,
    needs=("replicas", "replica_records"),
)
NAME: Final = ENTRY.name


def divergent_replicas(tables: Tables, seen: MetadataView) -> Judged:
    """Judge each key of a bucket. Reads `replicas`, `replica_records` and `metadata_log`."""
    replicas, records = tables["replicas"], tables["replica_records"]
    for key in keys_of(records):
        logs = replica_logs(key, replicas, records)
        pairs = list(starmap(_compared, combinations(logs, 2)))
        proofs = [proof for pair in pairs for proof in _proofs(pair)]
        cases = sum(pair.held_count for pair in pairs)
        yield key, _found(key, proofs, cases, seen)


def _found(key: str, proofs: Sequence[Proof], cases: int, seen: MetadataView) -> Found:
    if not proofs:
        return none(NAME, key, cases=cases)
    if seen.log.doubt:
        doubt = f"{proofs[0].sentence}; was an election unclean? {seen.log.doubt}"
        return none(NAME, key, cases=cases, doubt=doubt)
    unclean = any(one.elected_uncleanly for one in seen.histories_of(key))
    legal = len(proofs) if unclean else 0
    return spelled(NAME, key, proofs, cases=cases, allowed_count=legal)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """Two replicas, compared below both high watermarks."""

    one: ReplicaLog
    other: ReplicaLog
    held_count: int
    """Offsets at which at least one of them holds a record."""
    differing: NDArray[np.int64]
    """The offsets at which they differ, ascending."""


def _compared(one: ReplicaLog, other: ReplicaLog) -> _Pair:
    start = max(one.log_start_offset, other.log_start_offset)
    end = min(_readable_end(one), _readable_end(other))
    if one.topic_id != other.topic_id:
        end = start
    mine, others = one.offset[_within(one, start, end)], other.offset[_within(other, start, end)]
    return _Pair(
        one=one,
        other=other,
        held_count=len(np.union1d(mine, others)),
        differing=_differing(one, other, start=start, end=end),
    )


def _proofs(pair: _Pair) -> Iterator[Proof]:
    """Yield one proof per stretch of offsets at which they differ."""
    one, other, differing = pair.one, pair.other, pair.differing
    for places in stretches(differing):
        first, last = int(differing[places[0]]), int(differing[places[-1]])
        yield Proof.of(
            "{node} and {other_node} hold different records at "
            f"{range_rule(first, last)}, below both high watermarks ({{high_watermark}} and "
            "{other_high_watermark}): at {first}, "
            "{record} and {other_record}",
            offsets={"first": first, "last": last},
            node=one.node,
            other_node=other.node,
            high_watermark=one.high_watermark,
            other_high_watermark=other.high_watermark,
            record=_record(one, first),
            other_record=_record(other, first),
        )


def _readable_end(log: ReplicaLog) -> int:
    """Return the offset up to which it is compared: none without a known high watermark."""
    return min(log.high_watermark or 0, log.log_end_offset)


def _differing(one: ReplicaLog, other: ReplicaLog, *, start: int, end: int) -> NDArray[np.int64]:
    """Return the offsets in [start, end) at which they differ, ascending."""
    mine, others = _within(one, start, end), _within(other, start, end)
    _, here, there = np.intersect1d(
        one.offset[mine], other.offset[others], assume_unique=True, return_indices=True
    )
    same = np.ones(len(here), dtype=np.bool_)
    for a, b in zip(_copied(one), _copied(other), strict=True):
        same &= a[mine][here] == b[others][there]
    return np.union1d(
        np.setxor1d(one.offset[mine], other.offset[others], assume_unique=True),
        one.offset[mine][here][~same],
    )


def _copied(log: ReplicaLog) -> tuple[NDArray[np.integer], ...]:
    """Return what a follower copies with a record."""
    return log.digest, log.leader_epoch, log.timestamp_ms, log.producer_id, log.producer_epoch


def _within(log: ReplicaLog, start: int, end: int) -> slice:
    first, last = np.searchsorted(log.offset, [start, end])
    return slice(int(first), max(int(first), int(last)))


def _record(log: ReplicaLog, offset: int) -> Proof:
    place = int(np.searchsorted(log.offset, offset))
    if place == len(log.offset) or log.offset[place] != offset:
        return Proof.of("nothing")
    value = int(log.value[place])
    batch: dict[str, Any] = {
        "leader_epoch": int(log.leader_epoch[place]),
        "producer_id": int(log.producer_id[place]),
        "producer_epoch": int(log.producer_epoch[place]),
        "timestamp_ms": int(log.timestamp_ms[place]),
    }
    of = (
        "of leader epoch {leader_epoch}, from producer {producer_id} (epoch {producer_epoch}), "
        "with timestamp {timestamp_ms}"
    )
    if value == NO_VALUE:
        return Proof.of(f"a record that no client of the run sent, {of}", **batch)
    return Proof.of(f"value {{value}} {of}", values={"value": value}, **batch)


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=divergent_replicas,
        tables=("replicas", "replica_records", "metadata_log"),
        split=Split.OFFSETS,
    ),
)
