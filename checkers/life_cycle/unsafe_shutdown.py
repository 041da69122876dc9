"""L6 unsafe-shutdown: A broker was told that it may go while it led a partition.

The answer to a heartbeat told a broker that it may go, and from before its request had been passed
on until after its answer had arrived the broker led some partition.

In a controlled shutdown the controller moves the leaderships away first; the answer to a heartbeat
tells the broker when it may go. The answer was decided after its request had been passed on, and
before it arrived at the proxy. So a partition that the broker led, by the log of record, from
before the first to after the second moment is one that it led when it was told. Timestamps of the
log count as they are bounded (`Facts`), so that a leadership which began or ended near the answer
is not told of; and a log that ends before the answer says nothing of its time.

A registration that was never unfenced is left out: it may stand for partitions that the incarnation
before it led, until the controller fences that one.

Meaning: A planned restart takes partitions off line.
Case: an answer that tells a broker that it may go
Source: KIP-631, "Controlled shutdown"; `BrokerHeartbeatManager.calculateNextBrokerState`
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

import numpy as np

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.beats import ABSENT, TapedHeartbeat, beats_of
from fencepost.checkers.metadata.partition_states import PartitionHistory, PartitionVersion
from fencepost.checkers.metadata.view import MetadataView, counted, doubtful
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.sources import streamed
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.METADATA,
    rests_on=("whole-tape",),
    needs=("metadata_log", "wire"),
)
NAME: Final = ENTRY.name

_Lead = tuple[int, int, PartitionHistory, PartitionVersion]
"""The sure span of a leadership (from, until), its partition and its version."""


def unsafe_shutdowns(tables: Tables, seen: MetadataView) -> Judged:
    """Find brokers that were let go while they led, by broker. Reads `metadata_log`, `wire`."""
    if seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    last_words = [beat for beat in _last_words(tables, seen) if _was_unfenced(beat, seen)]
    leads = _leads(seen, {beat.broker_id for beat in last_words})
    told: dict[int, list[Proof | None]] = {broker_id: [] for broker_id in seen.brokers}
    for beat in last_words:
        told[beat.broker_id].append(next(_proofs(beat, leads[beat.broker_id]), None))
    for broker_id, answers in told.items():
        key = f"broker {broker_id}"
        yield key, counted(NAME, key, answers)


def _last_words(tables: Tables, seen: MetadataView) -> list[TapedHeartbeat]:
    """Return the heartbeats whose answers told a broker that it may go, while the log lasts.

    They are few: a night's other heartbeats are let go before its partitions are looked at.
    """
    beats = beats_of(streamed(tables, "wire"))
    may_go = beats.told_to_go & (beats.reached_ns != ABSENT)
    may_go &= beats.answered_ns <= seen.known_until_ns
    return [beats.at(place) for place in np.flatnonzero(may_go).tolist()]


def _was_unfenced(beat: TapedHeartbeat, seen: MetadataView) -> bool:
    history = seen.brokers.get(beat.broker_id)
    return history is not None and any(
        version.broker_epoch == beat.broker_epoch and not version.fenced
        for version in history.versions
    )


def _leads(seen: MetadataView, broker_ids: AbstractSet[int]) -> Mapping[int, list[_Lead]]:
    """Return the leaderships of these brokers, each until something of its partition changes."""
    facts = seen.facts
    found: dict[int, list[_Lead]] = {broker_id: [] for broker_id in broker_ids}
    if not found:
        return found
    for history in seen.histories():
        ends_ns = [facts.earliest_ns(version.timestamp_ms) for version in history.versions[1:]]
        last_ns = OPEN_NS if history.deleted_ms is None else facts.earliest_ns(history.deleted_ms)
        ends_ns.append(min(last_ns, seen.known_until_ns))
        for version, end_ns in zip(history.versions, ends_ns, strict=True):
            begin_ns = facts.latest_ns(version.timestamp_ms)
            if version.leader in found and begin_ns < end_ns:
                found[version.leader].append((begin_ns, end_ns, history, version))
    return found


def _proofs(beat: TapedHeartbeat, leads: list[_Lead]) -> Iterator[Proof]:
    for begin_ns, end_ns, history, version in leads:
        if begin_ns <= beat.reached_ns and beat.answered_ns <= end_ns:
            yield Proof.of(
                "{target} told broker {broker_id} at {answered} that it may go (frame "
                "{answer_frame}), while it led {key} since metadata offset {metadata_offset} "
                "and until after {end}",
                metadata_offsets={"metadata_offset": version.metadata_offset},
                values={"broker_epoch": beat.broker_epoch},
                frames={"frame": beat.frame, "answer_frame": beat.answer_frame},
                times={"answered": beat.answered_ns, "end": end_ns},
                sources={"broker_epoch": "frame", "broker_id": "frame", "answered": "answer_frame"},
                target=beat.target,
                broker_id=beat.broker_id,
                key=history.key,
            )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=unsafe_shutdowns,
        apis=("BrokerHeartbeat",),
    ),
)
