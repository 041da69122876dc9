"""C8: fencing-too-early and fencing-too-late, from the tape and the log of record.

A controller fences a broker whose session has ended: it has taken no heartbeat of that registration
for the session time-out. Both sides are compared by bounds (`checkers.metadata.sessions`), each
taken so that it speaks for the controller:

The time-out is the controller's own setting. That a broker goes on serving its clients after its
session has ended is no breach: brokers of Apache Kafka do not fence themselves, they learn it from
the metadata log.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Facts, Judged, Tables
from fencepost.checkers.metadata.broker_states import BrokerHistory, BrokerVersion
from fencepost.checkers.metadata.sessions import (
    Contacts,
    Term,
    contacts_of,
    session_timeouts_ns,
    term_at,
)
from fencepost.checkers.metadata.view import MetadataView, counted, doubtful
from fencepost.checkers.proof import Proof
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import streamed
from fencepost.checkers.table_check import TableCheck

EARLY_ENTRY: Final = CatalogueEntry.of(
    """C8a fencing-too-early: A broker was fenced whose session had not ended.

    A broker that neither left nor asked for it was fenced, and the latest that this can have been
    decided is less than the session time-out after the earliest that the same controller can have
    taken the last heartbeat that it had accepted.

    A broker that is leaving, or that asks to be fenced, is; and so is the old registration of a
    broker that registers anew, as one does that takes its own session for ended: heartbeats that it
    sent before may still come.

    Meaning: A living broker loses its leaderships, and partitions move for nothing.
    Case: a fencing of a broker whose last heartbeat is on the tape
    Source: KIP-631; `BrokerHeartbeatManager`, `QuorumController.maybeFenceReplicas`
    """,
    nearness=Nearness.METADATA,
    rests_on=("whole-tape",),
    needs=("metadata_log", "wire", "node_settings"),
)
EARLY: Final = EARLY_ENTRY.name
LATE_ENTRY: Final = CatalogueEntry.of(
    """C8b fencing-too-late: A broker was not fenced though its session had ended.

    A broker stayed unfenced for 5 s longer than the session time-out after the latest that its
    controller can have heard of it, while that controller wrote records at least every 2 s.

    A living controller writes records twice a second: one that wrote for all of `SLACK_NS` was
    neither paused nor starved. It has to be in office, too. A heartbeat that reached it and was not
    answered may have been taken at any time, so no silence is told of until an answered one
    follows. It must have accepted one before: a broker whose heartbeats are not on the tape is not
    judged. A case is a silence that may have been longer than the time-out, by the clocks' bounds;
    one that was, while the controller cannot be shown to have written, does not count.

    Meaning: Partitions led by a broker that is gone stay without a leader.
    Case: a broker's silence that may have been longer than its session time-out
    Source: KIP-631; `BrokerHeartbeatManager`, `QuorumController.maybeFenceReplicas`
    """,
    nearness=Nearness.METADATA,
    rests_on=("whole-tape",),
    needs=("metadata_log", "wire", "node_settings"),
)
LATE: Final = LATE_ENTRY.name
SLACK_NS: Final = 5_000_000_000
"""A controller looks for ended sessions several times a time-out; on a machine with too few cores,
340 ms late was the worst of 490 fencings."""

_ALIVE_GAP_NS: Final = 2_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sessions:
    """The sessions that both checks start from."""

    seen: MetadataView
    terms: Sequence[Term]
    contacts: Mapping[tuple[int, int, str], Contacts]
    timeouts_ns: Mapping[str, int]

    def with_controller(self, broker: BrokerHistory, version: BrokerVersion, node: str) -> Contacts:
        """Return the heartbeats of this registration to that controller."""
        place = (broker.broker_id, version.broker_epoch, node)
        return self.contacts.get(place, Contacts(heartbeats=()))


_Answers = Callable[[BrokerHistory, _Sessions], Iterator[Proof | None]]


def fenced_too_early(tables: Tables, seen: MetadataView) -> Judged:
    """Find fencings of living brokers. Reads `metadata_log`, `wire`, `node_settings`."""
    return _judged(EARLY, tables, seen, _early)


def fenced_too_late(tables: Tables, seen: MetadataView) -> Judged:
    """Find silences without a fencing. Reads `metadata_log`, `wire`, `node_settings`."""
    return _judged(LATE, tables, seen, _late)


def _judged(check: str, tables: Tables, seen: MetadataView, answers: _Answers) -> Judged:
    timeouts_ns = session_timeouts_ns(tables["node_settings"])
    doubt = seen.log.doubt or ("" if timeouts_ns else "the nodes' settings were not recorded")
    if doubt:
        yield from doubtful(check, doubt)
        return
    sessions = _Sessions(
        seen=seen,
        terms=seen.terms,
        contacts=contacts_of(streamed(tables, "wire")),
        timeouts_ns=timeouts_ns,
    )
    for broker in seen.brokers.values():
        key = f"broker {broker.broker_id}"
        yield key, counted(check, key, answers(broker, sessions))


def _early(broker: BrokerHistory, sessions: _Sessions) -> Iterator[Proof | None]:
    since_ms = 0
    for place, (before, version) in enumerate(pairwise(broker.versions), start=1):
        if before.fenced or not before.registered:
            since_ms = version.timestamp_ms
        amended = version.registration_offset == before.registration_offset
        anew = broker.fenced_by_registration(place)
        asked = anew is not None and anew.incarnation_id == version.incarnation_id
        if version.fenced and before.eligible and version.registered and amended and not asked:
            yield from _fencing(broker, version, since_ms, sessions)


def _fencing(
    broker: BrokerHistory, version: BrokerVersion, since_ms: int, sessions: _Sessions
) -> Iterator[Proof | None]:
    """Judge a fencing of a broker that had been unfenced since then, if possible."""
    term = term_at(sessions.terms, version.metadata_offset)
    timeout_ns = None if term is None else sessions.timeouts_ns.get(term.node)
    if term is None or timeout_ns is None:
        return
    facts = sessions.seen.facts
    contacts = sessions.with_controller(broker, version, term.node)
    last = contacts.last_before(facts.earliest_ns(version.timestamp_ms))
    latest_ns = facts.latest_ns(version.timestamp_ms)
    asked = any(
        contacts.asked(wish, from_ns=facts.earliest_ns(since_ms), until_ns=latest_ns)
        for wish in ("fenced", "shutting_down")
    )
    if last is None or last.reached_ns is None or asked or last.reached_ns < term.begin_ns:
        return
    silent_ns = latest_ns - last.reached_ns
    if silent_ns >= timeout_ns:
        yield None
        return
    yield Proof.of(
        "broker {broker_id} was fenced at metadata offset {metadata_offset}, at most {silent} "
        "after {node} had been given its heartbeat at {reached} (frame {frame}), which it "
        "accepted; the session time-out is {timeout}",
        metadata_offsets={"metadata_offset": version.metadata_offset},
        values={"broker_epoch": version.broker_epoch},
        frames={"frame": last.frame, "answer_frame": last.answer_frame},
        times={"reached": last.reached_ns},
        durations={"silent": silent_ns, "timeout": timeout_ns},
        sources={"broker_epoch": "frame", "reached": "frame"},
        broker_id=broker.broker_id,
        node=term.node,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stay:
    """A time for which a broker was unfenced, under one controller; bounds that it surely has."""

    version: BrokerVersion
    term: Term
    from_ns: int
    until_ns: int
    until_latest_ns: int
    """The moment when it was surely over; all the others speak for the controller."""


def _late(broker: BrokerHistory, sessions: _Sessions) -> Iterator[Proof | None]:
    for stay in _stays(broker, sessions):
        timeout_ns = sessions.timeouts_ns.get(stay.term.node)
        if timeout_ns is not None:
            yield from _silences(broker, stay, timeout_ns, sessions)


def _stays(broker: BrokerHistory, sessions: _Sessions) -> Iterator[_Stay]:
    facts, terms = sessions.seen.facts, sessions.terms
    begins = [term.begin_offset for term in terms] + [sessions.seen.log.end_offset]
    following = [*broker.versions[1:], None]
    for version, after in zip(broker.versions, following, strict=True):
        if version.fenced or not version.registered:
            continue
        for term, offset_end in zip(terms, begins[1:], strict=True):
            ended = after is not None and after.metadata_offset < term.begin_offset
            if ended or version.metadata_offset >= offset_end or not len(term.written_ms):
                continue
            within = after is not None and after.metadata_offset < offset_end
            until_ms = after.timestamp_ms if after and within else int(term.written_ms[-1])
            yield _Stay(
                version=version,
                term=term,
                from_ns=max(facts.latest_ns(version.timestamp_ms), term.begin_ns),
                until_ns=facts.earliest_ns(until_ms),
                until_latest_ns=facts.latest_ns(until_ms),
            )


def _silences(
    broker: BrokerHistory, stay: _Stay, timeout_ns: int, sessions: _Sessions
) -> Iterator[Proof | None]:
    """Judge each silence that may have been longer than the session time-out."""
    contacts = sessions.with_controller(broker, stay.version, stay.term.node)
    for silence in contacts.silences(from_ns=stay.from_ns, until_ns=stay.until_ns):
        due_ns = silence.begin_ns + timeout_ns
        end_ns = due_ns + SLACK_NS
        is_last = silence.end_ns == stay.until_ns
        if silence.last is None or (stay.until_latest_ns if is_last else silence.end_ns) <= due_ns:
            continue
        if silence.end_ns <= end_ns:
            yield None
        elif _wrote(stay.term, sessions.seen.facts, from_ns=due_ns, until_ns=end_ns):
            yield Proof.of(
                "broker {broker_id} was unfenced (metadata offset {metadata_offset}) and {node} "
                "cannot have heard of it from {begin} (last heartbeat: frame {frame}) to {end}, "
                "{silent}, and went on writing records; the session time-out is {timeout}",
                metadata_offsets={"metadata_offset": stay.version.metadata_offset},
                values={"broker_epoch": stay.version.broker_epoch},
                frames={"frame": silence.last.frame, "answer_frame": silence.last.answer_frame},
                times={"begin": silence.begin_ns, "end": silence.end_ns},
                durations={"silent": silence.length_ns, "timeout": timeout_ns},
                sources={"broker_epoch": "frame", "begin": "frame"},
                broker_id=broker.broker_id,
                node=stay.term.node,
            )


def _wrote(term: Term, facts: Facts, *, from_ns: int, until_ns: int) -> bool:
    """Return whether the controller wrote all the time in between, as far as its clock can tell."""
    if facts.is_dubious(from_ns, until_ns):
        return False
    times_ns = term.written_ms * 1_000_000 - facts.origin_utc_ns
    inside = times_ns[(times_ns >= from_ns) & (times_ns <= until_ns)]
    steps_ns = np.diff(np.concatenate([[from_ns], inside, [until_ns]]))
    return bool(np.all(steps_ns <= _ALIVE_GAP_NS))


CHECKS: Final = (
    TableCheck(
        entry=EARLY_ENTRY,
        kernel=fenced_too_early,
        split=Split.BROKERS,
        apis=("BrokerHeartbeat",),
    ),
    TableCheck(
        entry=LATE_ENTRY,
        kernel=fenced_too_late,
        split=Split.BROKERS,
        apis=("BrokerHeartbeat",),
    ),
)
