"""D16 divergent-replicas: two replicas hold different records that both call committed.

Below its high watermark a replica's log is the log: every later leader has the same. So at each
offset that lies below the high watermarks of two replicas and above both log starts, both hold the
same record: equal key and value, appended in the same leader epoch, or both hold none. High
watermarks are compared as last checkpointed, which the true ones were never below.

Copies of different incarnations of a topic are not compared, and of a damaged copy only what could
be read. After an election that was recorded as unclean the difference is legal: one of the two has
not been told yet. Where no metadata log tells of elections, nobody can say.

Source: KIP-101 and KIP-279 (log truncation by leader epochs).
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from checkers.anomaly import Found, Proof, none
from checkers.control_plane.view import spelled, view
from checkers.kernels.facts import Facts, Judged, Tables
from checkers.kernels.ranges import range_text, stretches
from checkers.kernels.replica_logs import NO_VALUE, ReplicaLog, keys_of, replica_logs

__all__ = ["NAME", "divergent_replicas"]

NAME: Final = "divergent-replicas"


def divergent_replicas(tables: Tables, facts: Facts) -> Judged:
    """Of each key of a bucket. Reads `replicas`, `replica_records` and `metadata_log`."""
    replicas, records = tables["replicas"], tables["replica_records"]
    for key in keys_of(records):
        logs = replica_logs(key, replicas, records)
        proofs = [proof for one, other in combinations(logs, 2) for proof in _proofs(one, other)]
        cases = sum(_compared_count(one, other) for one, other in combinations(logs, 2))
        if proofs:
            yield key, _found(key, proofs, tables, facts, cases=cases)
        else:
            yield key, none(NAME, key, cases=cases)


def _found(key: str, proofs: Sequence[Proof], tables: Tables, facts: Facts, *, cases: int) -> Found:
    seen = view(tables, facts)
    if seen.log.doubt:
        doubt = f"{proofs[0].detail}; was an election unclean? {seen.log.doubt}"
        return none(NAME, key, cases=cases, doubt=doubt)
    unclean = any(one.elected_uncleanly for one in seen.histories() if one.key == key)
    legal = len(proofs) if unclean else 0
    return spelled(NAME, key, proofs, cases=cases, allowed_count=legal)


def _proofs(one: ReplicaLog, other: ReplicaLog) -> Iterator[Proof]:
    """One a stretch of offsets at which they differ."""
    start, end = _shared(one, other)
    differing = _differing(one, other, start=start, end=end)
    for places in stretches(differing):
        first, last = int(differing[places[0]]), int(differing[places[-1]])
        yield Proof(
            operations=(),
            offsets=(first, last),
            values=_values(one, other, first),
            detail=f"{one.node} and {other.node} hold different records at "
            f"{range_text(first, last)}, below both high watermarks ({one.high_watermark} and "
            f"{other.high_watermark}): at {first}, {_record(one, first)} and "
            f"{_record(other, first)}",
        )


def _compared_count(one: ReplicaLog, other: ReplicaLog) -> int:
    start, end = _shared(one, other)
    here, there = one.offset[_within(one, start, end)], other.offset[_within(other, start, end)]
    return len(np.union1d(here, there))


def _shared(one: ReplicaLog, other: ReplicaLog) -> tuple[int, int]:
    """The offsets that both call committed; none if the two cannot be compared."""
    if one.high_watermark is None or other.high_watermark is None:
        return 0, 0
    if one.topic_id != other.topic_id:
        return 0, 0
    start = max(one.log_start_offset, other.log_start_offset)
    return start, min(_readable_end(one), _readable_end(other))


def _readable_end(log: ReplicaLog) -> int:
    assert log.high_watermark is not None
    return min(log.high_watermark, log.log_end_offset)


def _differing(one: ReplicaLog, other: ReplicaLog, *, start: int, end: int) -> NDArray[np.int64]:
    """The offsets in [start, end) at which they differ, ascending."""
    mine, others = _within(one, start, end), _within(other, start, end)
    _, here, there = np.intersect1d(
        one.offset[mine], other.offset[others], assume_unique=True, return_indices=True
    )
    same = (one.digest[mine][here] == other.digest[others][there]) & (
        one.leader_epoch[mine][here] == other.leader_epoch[others][there]
    )
    return np.union1d(
        np.setxor1d(one.offset[mine], other.offset[others], assume_unique=True),
        one.offset[mine][here][~same],
    )


def _within(log: ReplicaLog, start: int, end: int) -> slice:
    first, last = np.searchsorted(log.offset, [start, end])
    return slice(int(first), max(int(first), int(last)))


def _values(one: ReplicaLog, other: ReplicaLog, offset: int) -> tuple[int, ...]:
    found = (int(log.value_at(np.array([offset]))[0]) for log in (one, other))
    return tuple(value for value in found if value != NO_VALUE)


def _record(log: ReplicaLog, offset: int) -> str:
    place = int(np.searchsorted(log.offset, offset))
    if place == len(log.offset) or log.offset[place] != offset:
        return "nothing"
    value = int(log.value[place])
    what = "a record that is none of ours" if value == NO_VALUE else f"value {value}"
    return f"{what} of leader epoch {log.leader_epoch[place]}"
