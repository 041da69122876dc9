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

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.disk_faults import DISK_FAULTS
from fencepost.checkers.facts import Facts, Tables
from fencepost.checkers.metadata.partition_states import PartitionHistory, PartitionVersion
from fencepost.checkers.metadata.view import MetadataView
from fencepost.checkers.proof import Proof
from fencepost.checkers.replicas.commitments import commitments, in_force
from fencepost.checkers.replicas.log_ends import (
    HighestAcknowledged,
    LogEndBound,
    appended_ends,
    fetched_ends,
    first_acknowledged,
)
from fencepost.checkers.replicas.sends import AcknowledgedSends, KeySends, sends_by_key
from fencepost.checkers.sources import streamed
from fencepost.checkers.spans import FOREVER_NS, Span, outside

_ALWAYS: Final = Span(from_ns=-FOREVER_NS, until_ns=FOREVER_NS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The evidence on a partition during the run."""

    history: PartitionHistory
    facts: Facts
    tables: Tables
    sends: KeySends
    fetched: Sequence[LogEndBound]
    known_until_ns: int
    """The metadata log tells of the time until then; log ends are of that time."""

    def stretches(self) -> Iterator[AcknowledgedSends]:
        """Yield the acknowledged sends, the stretch of highest offsets first."""
        return self.sends.stretches(self.tables)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Overtaken:
    """A send that was acknowledged at or below an offset acknowledged before it was called."""

    version: PartitionVersion
    late: AcknowledgedSends
    """The send alone."""
    before: AcknowledgedSends
    """The one that had been acknowledged, alone."""


def course_of(history: PartitionHistory, tables: Tables, seen: MetadataView) -> Course:
    """Return the course of a partition. Reads `records` and `wire`."""
    facts = seen.facts
    known_until_ns = seen.known_until_ns
    fetched = fetched_ends(streamed(tables, "wire"), history, seen.brokers, facts)
    return Course(
        history=history,
        facts=facts,
        tables=tables,
        sends=sends_by_key(tables)[history.key],
        fetched=[one for one in fetched if one.by_ns <= known_until_ns],
        known_until_ns=known_until_ns,
    )


def lacking_leaders(course: Course) -> Iterator[Proof | None]:
    """Yield for each leader epoch with a send after an acknowledged one: a proof, or None."""
    found: dict[int, _Overtaken | None] = {}
    beyond: AcknowledgedSends | None = None
    for sends in course.stretches() if course.history.versions else ():
        for epoch, one in _overtaken(course, sends, beyond):
            found[epoch] = _earlier(found.get(epoch), one)
        beyond = first_acknowledged(sends, beyond)
    for _, worst in sorted(found.items()):
        yield None if worst is None else _contradiction(worst)


def _overtaken(
    course: Course, sends: AcknowledgedSends, beyond: AcknowledgedSends | None
) -> Iterator[tuple[int, _Overtaken | None]]:
    """Yield the leader epochs of a stretch with sends after an acknowledged one, and the first.

    `beyond`: the first that was acknowledged of all higher offsets.
    """
    versions = course.history.versions
    before = HighestAcknowledged(sends).before(sends.call_ns)
    first, last = in_force(
        versions, course.facts, from_ns=sends.return_ns, until_ns=sends.return_ns
    )
    epochs = np.array([one.leader_epoch for one in versions])
    known = (first >= 0) & (sends.return_ns <= course.known_until_ns)
    later = sends.call_ns > course.sends.first_returned_ns
    in_office = known & later & (epochs[first] == epochs[last])
    here = (before >= 0) & (sends.offset <= sends.offset[before])
    below = in_office & (here if beyond is None else here | (sends.call_ns > beyond.return_ns[0]))
    for epoch in np.unique(epochs[first[in_office]]).tolist():
        places = np.flatnonzero(below & (epochs[first] == epoch))
        if not len(places):
            yield epoch, None
            continue
        place = int(places[np.argmin(sends.return_ns[places])])
        known_by = sends.take(before[place : place + 1]) if here[place] else beyond
        assert known_by is not None
        yield (
            epoch,
            _Overtaken(
                version=versions[int(first[place])],
                late=sends.take(np.array([place])),
                before=known_by,
            ),
        )


def _earlier(one: _Overtaken | None, other: _Overtaken | None) -> _Overtaken | None:
    """Return the one that was acknowledged first."""
    if one is None or other is None:
        return one or other
    return one if one.late.return_ns[0] < other.late.return_ns[0] else other


def lacking_members(course: Course) -> Iterator[Proof | None]:
    """Yield for each Fetch of a candidate after an acknowledgement: a proof, or None."""
    asked = _Ends([one for one in course.fetched if _is_candidate(one)])
    _look(course, [asked])
    for end, send in asked.answered():
        if send.offset[0] < end.offset:
            yield None
        else:
            last = end.versions[-1]
            yield _proof(
                end,
                send,
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
    appended = appended_ends(course.stretches(), course.history.versions, course.facts)
    for end in (*appended, *course.fetched):
        if end.by_ns <= course.known_until_ns:
            by_broker.setdefault(end.broker_id, []).append(end)
    asked = {
        broker_id: list(_by_era(ends, broker_id, course, faults))
        for broker_id, ends in sorted(by_broker.items())
    }
    _look(course, [one for eras in asked.values() for one in eras])
    for broker_id, eras in asked.items():
        accused: set[int] = set()
        for end, send in (answer for era in eras for answer in era.answered()):
            offset = int(send.offset[0])
            if offset < end.offset or offset in accused:
                yield None
                continue
            accused.add(offset)
            yield _proof(
                end,
                send,
                Proof.of(
                    "broker {broker_id} had been in the ISR all through that send, and no "
                    "fault had changed its disk since",
                    broker_id=broker_id,
                ),
            )


class _Ends:
    """Log ends, and for each the highest send that had been acknowledged before it."""

    def __init__(
        self, ends: Sequence[LogEndBound], *, holder: int | None = None, era: Span = _ALWAYS
    ) -> None:
        """`holder`: of the sends, those that this broker held, and in this era alone."""
        self.holder = holder
        self._ends, self._era = ends, era
        self._after_ns = np.array([one.after_ns for one in ends], dtype=np.int64)
        self._open = np.ones(len(ends), dtype=np.bool_)
        self._found: dict[int, AcknowledgedSends] = {}

    def concerns(self, sends: AcknowledgedSends) -> bool:
        """Return whether any send of a stretch can be an answer."""
        return bool(
            self._open.any()
            and len(sends)
            and sends.return_ns.min() < self._after_ns[self._open].max()
            and sends.call_ns.max() >= self._era.from_ns
        )

    def look(self, sends: AcknowledgedSends, held: NDArray[np.bool_] | None) -> None:
        """Answer what a stretch can answer. No stretch after it has higher offsets."""
        during = (sends.call_ns >= self._era.from_ns) & (sends.return_ns < self._era.until_ns)
        mine = sends.take(during if held is None else during & held)
        numbers = np.flatnonzero(self._open)
        places = HighestAcknowledged(mine).before(self._after_ns[numbers])
        for number, place in zip(numbers.tolist(), places.tolist(), strict=True):
            if place >= 0:
                self._found[number] = mine.take(np.array([place]))
                self._open[number] = False

    def answered(self) -> Iterator[tuple[LogEndBound, AcknowledgedSends]]:
        """Yield each end before which any was acknowledged, and that send alone."""
        for number, end in enumerate(self._ends):
            if number in self._found:
                yield end, self._found[number]


def _look(course: Course, asked: Sequence[_Ends]) -> None:
    """Have these answered, out of all stretches."""
    for sends in course.stretches():
        mine = [one for one in asked if one.concerns(sends)]
        held = _held(course, sends, {one.holder for one in mine if one.holder is not None})
        for one in mine:
            one.look(sends, None if one.holder is None else held[one.holder])


def _by_era(
    ends: Sequence[LogEndBound], broker_id: int, course: Course, faults: pa.Table
) -> Iterator[_Ends]:
    """Yield the ends of a broker's log by the time in which nothing else removed records of it."""
    after_ns, by_ns = (
        np.array([getattr(end, name) for end in ends], dtype=np.int64)
        for name in ("after_ns", "by_ns")
    )
    for era in _eras(course, broker_id, faults):
        within = np.flatnonzero((after_ns >= era.from_ns) & (by_ns <= era.until_ns))
        if len(within):
            yield _Ends([ends[one] for one in within.tolist()], holder=broker_id, era=era)


def _is_candidate(end: LogEndBound) -> bool:
    return bool(end.versions) and all(
        end.broker_id in (*one.isr, *one.elr, one.leader) for one in end.versions
    )


def _held(
    course: Course, sends: AcknowledgedSends, brokers: Collection[int]
) -> Mapping[int, NDArray[np.bool_]]:
    """Return by broker a mask of the sends whose records it had when they were acknowledged."""
    held = {broker_id: np.zeros(len(sends), dtype=np.bool_) for broker_id in brokers}
    for group in commitments(sends, course.history.versions, course.facts) if brokers else ():
        for broker_id in group.holders.intersection(brokers):
            held[broker_id][group.places] = True
    return held


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


def _contradiction(found: _Overtaken) -> Proof:
    late, before = found.late, found.before
    return Proof.of(
        "value {value} (operation {operation}) was acknowledged at offset {offset} by {return_}; "
        "value {late_value} (operation {late_operation}), "
        "which was sent at {call}, was acknowledged at offset {late_offset} by "
        "{late_return}. No log holds both, and leader {leader} of leader epoch "
        "{leader_epoch}, in office then (metadata offset {metadata_offset}), should",
        operations={
            "operation": int(before.operation[0]),
            "late_operation": int(late.operation[0]),
        },
        offsets={"late_offset": int(late.offset[0]), "offset": int(before.offset[0])},
        metadata_offsets={"metadata_offset": found.version.metadata_offset},
        values={"value": int(before.value[0]), "late_value": int(late.value[0])},
        times={
            "return_": int(before.return_ns[0]),
            "call": int(late.call_ns[0]),
            "late_return": int(late.return_ns[0]),
        },
        sources=dict.fromkeys(("value", "offset", "return_"), "operation")
        | dict.fromkeys(("late_value", "late_offset", "call", "late_return"), "late_operation")
        | dict.fromkeys(("leader", "leader_epoch"), "metadata_offset"),
        leader=found.version.leader,
        leader_epoch=found.version.leader_epoch,
    )


def _proof(end: LogEndBound, send: AcknowledgedSends, why: Proof) -> Proof:
    return Proof.of(
        "{ended}, between {after} and {by}: so its log did not hold value {value}, "
        "which had been acknowledged at offset {known_offset} by {return_} (operation "
        "{operation}); {why}",
        operations={"operation": int(send.operation[0])},
        offsets={"known_offset": int(send.offset[0])},
        values={"value": int(send.value[0])},
        times={"after": end.after_ns, "by": end.by_ns, "return_": int(send.return_ns[0])},
        sources={"value": "operation", "known_offset": "operation", "return_": "operation"},
        ended=end.clause(),
        why=why,
    )
