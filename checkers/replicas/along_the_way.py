"""Replicas along the way: whose log ended too early, by what was recorded while the run lasted.

The disks are read when all is over. Until then a replica that lacked a record may have fetched it
again, been wiped, or been taken off the partition. So acknowledgements under acks=all are held
against each other, and against where logs were seen to end in between (`replicas.log_ends`).

- A record that is sent after another one was acknowledged is appended behind it. If it is
  acknowledged at its offset or before, no log holds both: where the other one lies, there was
  another log's end. A leader has every record that was acknowledged before its election, and all
  that were since; so the one in office at the later acknowledgement lacks one of the two (C10).
- A broker that was in the ISR or ELR, or led, in every version that may have been in force as its
  log ended somewhere, has every record that had been acknowledged before (C10).
- A broker that was in the ISR all through a send had that record when it was acknowledged
  (`replicas.commitments`). It has it still (D17), unless a fault changed its disk since, or it was
  taken off the partition: a version is without it, or has it being added.

It cannot be judged so whether two replicas held different records at one offset (D16), since
nothing but a disk tells what a follower's log holds; a replica that lacked a record while it
neither began to fetch nor led; and anything without acks=all.

Source: KIP-101, KIP-903, KIP-966.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from checkers.disk_faults import DISK_FAULTS
from checkers.facts import Facts, Tables
from checkers.metadata.partition_states import PartitionHistory, PartitionVersion
from checkers.metadata.view import MetadataView
from checkers.proof import Proof
from checkers.replicas.commitments import (
    AcknowledgedSends,
    Commitment,
    acknowledged_sends,
    commitments,
    in_force,
)
from checkers.replicas.log_ends import (
    HighestAcknowledged,
    LogEndBound,
    appended_ends,
    fetched_ends,
)
from checkers.spans import FOREVER_NS, Span, outside

__all__ = ["Course", "course_of", "cut_records", "lacking_leaders", "lacking_members"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The evidence on a partition during the run."""

    history: PartitionHistory
    facts: Facts
    sends: AcknowledgedSends
    groups: Sequence[Commitment]
    ends: Sequence[LogEndBound]
    known_until_ns: int
    """The metadata log tells of the time until then; log ends are of that time."""


def course_of(history: PartitionHistory, tables: Tables, seen: MetadataView) -> Course:
    """Return the course of a partition. Reads `records` and `wire`."""
    facts = seen.facts
    sends = acknowledged_sends(history.key, tables["records"])
    groups = list(commitments(sends, history.versions, facts))
    ends = [
        *appended_ends(sends, groups),
        *fetched_ends(tables["wire"], history, seen.brokers, facts),
    ]
    known_until_ns = seen.known_until_ns
    return Course(
        history=history,
        facts=facts,
        sends=sends,
        groups=groups,
        ends=[one for one in ends if one.by_ns <= known_until_ns],
        known_until_ns=known_until_ns,
    )


def lacking_leaders(course: Course) -> Iterator[Proof | None]:
    """Yield for each leader epoch with a send after an acknowledged one: a proof, or None."""
    sends, versions = course.sends, course.history.versions
    if not len(sends) or not versions:
        return
    before = HighestAcknowledged(sends).before(sends.call_ns)
    first, last = in_force(
        versions, course.facts, from_ns=sends.return_ns, until_ns=sends.return_ns
    )
    epochs = np.array([one.leader_epoch for one in versions])
    known = (first >= 0) & (sends.return_ns <= course.known_until_ns)
    in_office = known & (before >= 0) & (epochs[first] == epochs[last])
    below = in_office & (sends.offset <= sends.offset[before])
    for epoch in np.unique(epochs[first[in_office]]).tolist():
        places = np.flatnonzero(below & (epochs[first] == epoch))
        if len(places):
            place = int(places[np.argmin(sends.return_ns[places])])
            yield _contradiction(versions[int(first[place])], sends, place, int(before[place]))
        else:
            yield None


def lacking_members(course: Course) -> Iterator[Proof | None]:
    """Yield for each Fetch of a candidate after an acknowledgement: a proof, or None."""
    ends = [one for one in course.ends if one.frame is not None and _is_candidate(one)]
    for end, place in _compared(ends, course.sends):
        if course.sends.offset[place] < end.offset:
            yield None
        else:
            last = end.versions[-1]
            yield _proof(
                end,
                course.sends,
                place,
                Proof.of(
                    "broker {broker_id} was a candidate to lead {key} then (ISR {isr}, leader "
                    "{leader}, metadata offset {metadata_offset})",
                    metadata_offsets={"metadata_offset": last.metadata_offset},
                    sources={"isr": "metadata_offset", "leader": "metadata_offset"},
                    broker_id=end.broker_id,
                    key=course.history.key,
                    isr=last.isr_text,
                    leader=last.leader,
                ),
            )


def cut_records(course: Course, faults: pa.Table) -> Iterator[Proof | None]:
    """Yield for each log end of a broker that had held records before: a proof, or None.

    Of several that lack the same record, the first is a proof.
    """
    by_broker: dict[int, list[LogEndBound]] = {}
    for end in course.ends:
        by_broker.setdefault(end.broker_id, []).append(end)
    for broker_id, told in sorted(by_broker.items()):
        held = _held(course, broker_id)
        accused: set[int] = set()
        after_ns, by_ns = (
            np.array([getattr(end, name) for end in told], dtype=np.int64)
            for name in ("after_ns", "by_ns")
        )
        for era in _eras(course, broker_id, faults):
            within = (after_ns >= era.from_ns) & (by_ns <= era.until_ns)
            ends = [told[place] for place in np.flatnonzero(within).tolist()]
            # Of the sends, those that can have been acknowledged before such an end.
            mine = held.take((held.call_ns >= era.from_ns) & (held.return_ns < era.until_ns))
            for end, place in _compared(ends, mine):
                offset = int(mine.offset[place])
                if offset < end.offset or offset in accused:
                    yield None
                    continue
                accused.add(offset)
                yield _proof(
                    end,
                    mine,
                    place,
                    Proof.of(
                        "broker {broker_id} had been in the ISR all through that send, and no "
                        "fault had changed its disk since",
                        broker_id=broker_id,
                    ),
                )


def _is_candidate(end: LogEndBound) -> bool:
    return bool(end.versions) and all(
        end.broker_id in (*one.isr, *one.elr, one.leader) for one in end.versions
    )


def _compared(
    ends: Sequence[LogEndBound], sends: AcknowledgedSends
) -> Iterator[tuple[LogEndBound, int]]:
    """Yield each log end with the place of the highest offset acknowledged before, if any was."""
    moments_ns = np.array([one.after_ns for one in ends], dtype=np.int64)
    places = HighestAcknowledged(sends).before(moments_ns)
    for end, place in zip(ends, places.tolist(), strict=True):
        if place >= 0:
            yield end, place


def _held(course: Course, broker_id: int) -> AcknowledgedSends:
    """Return the sends whose records this broker had when they were acknowledged."""
    mine = [group.sends.operation for group in course.groups if broker_id in group.holders]
    operations: NDArray[np.int64] = np.concatenate([np.empty(0, dtype=np.int64), *mine])
    return course.sends.take(np.isin(course.sends.operation, operations))


def _eras(course: Course, broker_id: int, faults: pa.Table) -> Iterator[Span]:
    """Return the times in which nothing but the broker itself removed records of its log."""
    node = course.facts.nodes().get(broker_id, "")
    if not node and course.facts.last_ids:
        return iter(())  # several nodes had that id, each with a log of its own
    breaks = [
        Span(
            from_ns=row["begin_ns"], until_ns=FOREVER_NS if row["end_ns"] is None else row["end_ns"]
        )
        for row in faults.to_pylist()
        if row["fault"] in DISK_FAULTS and node in row["targets"]
    ]
    versions = course.history.versions
    for place, version in enumerate(versions):
        if broker_id not in version.replicas or broker_id in version.adding:
            after = versions[place + 1 :][:1]
            until_ns = course.facts.latest_ns(after[0].timestamp_ms) if after else FOREVER_NS
            from_ns = course.facts.earliest_ns(version.timestamp_ms)
            breaks.append(Span(from_ns=from_ns, until_ns=until_ns))
    return outside(breaks)


def _contradiction(
    version: PartitionVersion, sends: AcknowledgedSends, place: int, before: int
) -> Proof:
    return Proof.of(
        "value {value} (operation {operation}) was acknowledged at offset {offset} by {return_}; "
        "value {late_value} (operation {late_operation}), "
        "which was sent at {call}, was acknowledged at offset {late_offset} by "
        "{late_return}. No log holds both, and leader {leader} of leader epoch "
        "{leader_epoch}, in office then (metadata offset {metadata_offset}), should",
        operations={
            "operation": int(sends.operation[before]),
            "late_operation": int(sends.operation[place]),
        },
        offsets={"late_offset": int(sends.offset[place]), "offset": int(sends.offset[before])},
        metadata_offsets={"metadata_offset": version.metadata_offset},
        values={"value": int(sends.value[before]), "late_value": int(sends.value[place])},
        times={
            "return_": int(sends.return_ns[before]),
            "call": int(sends.call_ns[place]),
            "late_return": int(sends.return_ns[place]),
        },
        sources=dict.fromkeys(("value", "offset", "return_"), "operation")
        | dict.fromkeys(("late_value", "late_offset", "call", "late_return"), "late_operation")
        | dict.fromkeys(("leader", "leader_epoch"), "metadata_offset"),
        leader=version.leader,
        leader_epoch=version.leader_epoch,
    )


def _proof(end: LogEndBound, sends: AcknowledgedSends, place: int, why: Proof) -> Proof:
    offset, operation = int(sends.offset[place]), int(sends.operation[place])
    return Proof.of(
        "{ended}, between {after} and {by}: so its log did not hold value {value}, "
        "which had been acknowledged at offset {known_offset} by {return_} (operation "
        "{operation}); {why}",
        operations={"operation": operation},
        offsets={"known_offset": offset},
        values={"value": int(sends.value[place])},
        times={"after": end.after_ns, "by": end.by_ns, "return_": int(sends.return_ns[place])},
        sources={"value": "operation", "known_offset": "operation", "return_": "operation"},
        ended=end.clause(),
        why=why,
    )
