"""C18 inactive-leader: A broker leads that the controller has not heard of.

A broker that is not legacy was elected the leader of a partition without a heartbeat that the
controller in office can have taken within the controller-side time-out and 5 s; or it led on for
longer than that and a session's time-out after its last one, while the controller answered others.
Times in which ZooKeeper may have taken no write are not counted.

Where brokers send MetadataHeartbeats, the controller keeps a state of each: inactive until its
first heartbeat, and again once none came for the controller-side time-out. An inactive broker is
treated as one that is absent.

A controller that was paused takes what has reached it when it goes on, and answers then. A broker
that had registered before the controller in office was elected may have been heard of by the one
before: it has the time-out from the election on. Of one that has registered since, heartbeats of
its earlier incarnations say nothing.

The controller may be cut off from ZooKeeper, for no longer than its session lasts; so a leader is
given that as well. That the controller lived is known if it answered what reached it afterwards
from another broker, and had `_ACTS_NS` then. Once a topic is to be deleted, its partitions are led
as they were until they are gone. What is written behind an outage of ZooKeeper may have been
decided before it, one decision after the other.

A broker that has registered as legacy (version 4) is always active; a controller sends itself no
heartbeat over a link. Only where nodes state the time-out and heartbeats are on the tape is
anything judged.

Meaning: Clients are sent to a broker that is cut off from the controller, and so serves what is out
of date.
Case: a leadership of a broker other than the controller and not legacy: its begin, and its end
Source: the draft "Controller heartbeats, broker incarnation ids"
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Facts, Judged, Tables
from fencepost.checkers.metadata.log_of_record import LogOfRecord
from fencepost.checkers.metadata.metadata_heartbeats import (
    CONTROLLER_SIDE,
    LEGACY,
    METADATA_HEARTBEAT,
    heartbeats_of,
    timeouts_ms,
)
from fencepost.checkers.metadata.partition_states import (
    NO_LEADER,
    PartitionHistory,
    PartitionVersion,
)
from fencepost.checkers.metadata.rpcs import Rpc, taken
from fencepost.checkers.metadata.sessions import Term, term_at
from fencepost.checkers.metadata.view import MetadataView, by_partition
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.sources import streamed
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.METADATA,
    variants={
        "no heartbeat of its incarnation": "never-heard",
        "its last heartbeat had reached": "fallen-silent",
    },
    rests_on=("whole-tape",),
    needs=("wire", "metadata_log", "node_settings", "transaction_log", "ensemble"),
)
NAME: Final = ENTRY.name
SLACK_NS: Final = 5_000_000_000
_ACTS_NS: Final = 1_000_000_000
_SESSION: Final = "zookeeper.session.timeout.ms"
_NS_A_MS: Final = 1_000_000
_SIGHT_NS: Final = 3_000_000_000
"""The longest time between two signs in which nothing is supposed."""
_FOLLOWER: Final = "follower"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outages:
    """The times of a run in which ZooKeeper may have taken no write.

    Without a majority an ensemble keeps its sessions and takes no write, for any length of time; so
    a controller may then know what it cannot write yet. That it takes writes is seen by each
    transaction of the log, and by each answer of a server that leads (`ensemble`). A longer time
    without either counts as an outage, even if ZooKeeper was only idle and unobserved.
    """

    spans: Sequence[tuple[int, int]]
    """From when until when, in order."""

    def after(self, begin_ns: int, lasting_ns: int) -> int:
        """Return the time by which ZooKeeper has surely been there for so long since a time."""
        end_ns = begin_ns + lasting_ns
        for since_ns, until_ns in self.spans:
            if until_ns > begin_ns and since_ns < end_ns:
                end_ns += until_ns - max(since_ns, begin_ns)
        return end_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """The heartbeats and terms of a run."""

    seen: MetadataView
    heartbeats: Mapping[int, Sequence[Rpc]]
    """Those that reached a controller, by broker id, in the order in which they did."""
    terms: Sequence[Term]
    legacy: frozenset[int]
    timeout_ns: int
    session_ns: int
    outages: Outages

    def judges(self, leader: int, term: Term | None) -> bool:
        """Return whether it is known what that controller heard of a leader."""
        if term is None or not term.node:
            return False  # the controller's node is not known, nor what has reached it
        own = self.seen.facts.node_ids.get(term.node) == leader
        return leader != NO_LEADER and not own and leader not in self.legacy

    def heard(
        self, broker_id: int, term: Term, until_ns: int, *, incarnation: int = 0
    ) -> Sequence[Rpc]:
        """Return the heartbeats that reached the controller in its term, until then, as they came.

        Of this incarnation, or of a later one.
        """
        reached = self._reached(broker_id, term.begin_earliest_ns, until_ns)
        return [
            rpc
            for rpc in reached
            if rpc.target == term.node and rpc.of("broker_epoch") >= incarnation
        ]

    def registered_in(self, broker_id: int, offset: int, term: Term) -> int:
        """Return the incarnation id that a broker has at this offset, if it is of this term; or 0.

        It is the metadata offset of its registration.
        """
        broker = self.seen.broker_before(broker_id, offset)
        if broker is None or broker.registration_offset <= term.begin_offset:
            return 0
        return broker.registration_offset

    def answered_another(self, broker_id: int, term: Term, from_ns: int, until_ns: int) -> bool:
        """Return whether what reached it from another broker was answered, between these times."""
        return any(
            rpc.target == term.node and rpc.answered_ns is not None and rpc.answered_ns <= until_ns
            for other in self.heartbeats
            if other != broker_id
            for rpc in self._reached(other, from_ns, until_ns)
        )

    def _reached(self, broker_id: int, from_ns: int, until_ns: int) -> Iterator[Rpc]:
        """Yield the heartbeats of a broker that reached a controller between these times."""
        several = self.heartbeats.get(broker_id, ())
        first = bisect_left(several, from_ns, key=_reached_ns)
        last = bisect_right(several, until_ns, key=_reached_ns)
        return map(several.__getitem__, range(first, last))


def _reached_ns(rpc: Rpc) -> int:
    return rpc.reached_ns or 0


def inactive_leaders(tables: Tables, seen: MetadataView) -> Judged:
    """Find them, by partition. Reads four tables, `ensemble` among them."""
    settings = tables["node_settings"]
    timeouts = timeouts_ms(settings, CONTROLLER_SIDE)
    heartbeats = heartbeats_of(streamed(tables, "wire"))
    record = _Record(
        seen=seen,
        heartbeats={one: taken(told) for one, told in heartbeats.items()},
        terms=() if seen.log.doubt else seen.terms,
        legacy=frozenset(
            one.broker_id
            for one in seen.log.records
            if one.type == "BrokerInfoRecord" and one.value == LEGACY and one.broker_id is not None
        ),
        timeout_ns=max(timeouts.values(), default=0) * _NS_A_MS,
        session_ns=max(timeouts_ms(settings, _SESSION).values(), default=0) * _NS_A_MS,
        outages=outages_of(seen.log, tables["ensemble"], seen.facts),
    )

    def judged(history: PartitionHistory) -> Iterator[Proof | None]:
        return _judged(history, record) if timeouts and record.heartbeats else iter(())

    return by_partition(NAME, seen, judged)


def _judged(history: PartitionHistory, record: _Record) -> Iterator[Proof | None]:
    tenures = [
        place
        for place, version in enumerate(history.versions)
        if not place or history.versions[place - 1].leader != version.leader
    ]
    for place in tenures:
        version = history.versions[place]
        term = term_at(record.terms, version.metadata_offset)
        if term is not None and record.judges(version.leader, term):
            yield _elected(history, version, term, record)
            following = bisect_right(tenures, place)
            ends = history.versions[tenures[following]] if following < len(tenures) else None
            yield _stayed(history, version, ends, term, record)


def _elected(
    history: PartitionHistory, version: PartitionVersion, term: Term, record: _Record
) -> Proof | None:
    facts = record.seen.facts
    latest_ns = facts.latest_ns(version.timestamp_ms)
    incarnation = record.registered_in(version.leader, version.metadata_offset, term)
    heard = record.heard(version.leader, term, latest_ns, incarnation=incarnation)
    last = heard[-1] if heard else None
    since_ns = max((_taken_ns(one, latest_ns) for one in heard), default=term.begin_ns)
    bound_ns = record.outages.after(since_ns, record.timeout_ns + SLACK_NS)
    is_unheard = last is None and incarnation > 0
    if facts.earliest_ns(version.timestamp_ms) <= bound_ns and not is_unheard:
        return None
    rule = (
        "no heartbeat of its incarnation had reached {controller}, the controller since {since}"
        if is_unheard
        else "none of its heartbeats had reached {controller}, the controller since {since}"
    )
    if last is not None:
        rule = "its last heartbeat had reached {controller}, the controller, at {reached}"
    return _proof(
        "broker {broker_id} was elected the leader of {key} at metadata offset {metadata_offset}; "
        + rule,
        history,
        version,
        term,
        last,
    )


def _stayed(
    history: PartitionHistory,
    version: PartitionVersion,
    ends: PartitionVersion | None,
    term: Term,
    record: _Record,
) -> Proof | None:
    facts = record.seen.facts
    end_ms = record.seen.log.end_timestamp_ms if ends is None else ends.timestamp_ms
    end_ns = facts.earliest_ns(end_ms)
    if history.decided_until_ms is not None:
        end_ns = min(end_ns, facts.earliest_ns(history.decided_until_ms))
    heard = record.heard(version.leader, term, end_ns)
    if not heard or term_at(record.terms, ends.metadata_offset if ends else OPEN_NS) is not term:
        return None
    lasting_ns = record.timeout_ns + record.session_ns + SLACK_NS
    since_ns = max(_taken_ns(one, end_ns) for one in heard)
    # It surely leads, and is overdue: a wrong clock may leave open when it was elected.
    late_ns = max(record.outages.after(since_ns, lasting_ns), facts.latest_ns(version.timestamp_ms))
    if not record.answered_another(version.leader, term, late_ns, end_ns - _ACTS_NS):
        return None
    return _proof(
        "broker {broker_id} led {key} since metadata offset {metadata_offset} and until after "
        "{until}; its last heartbeat had reached {controller}, the controller, at {reached}",
        history,
        version,
        term,
        heard[-1],
        until=end_ns,
    )


def _taken_ns(heartbeat: Rpc, until_ns: int) -> int:
    """Return the time by which a heartbeat that had reached the controller until then was taken.

    By its answer; one without an answer counts from when it reached the controller.
    """
    answered_ns, reached_ns = heartbeat.answered_ns, heartbeat.reached_ns or 0
    return reached_ns if answered_ns is None else min(answered_ns, until_ns)


def _proof(
    rule: str,
    history: PartitionHistory,
    version: PartitionVersion,
    term: Term,
    last: Rpc | None,
    **times: int,
) -> Proof:
    return Proof.of(
        rule,
        metadata_offsets={"metadata_offset": version.metadata_offset},
        frames={"frame": None if last is None else last.frame},
        times={
            **times,
            **({"since": term.begin_ns} if last is None else {"reached": last.reached_ns}),
        },
        sources={"broker_id": "metadata_offset"} | ({"reached": "frame"} if last else {}),
        broker_id=version.leader,
        key=history.key,
        controller=term.node,
    )


def outages_of(log: LogOfRecord, ensemble: pa.Table, facts: Facts) -> Outages:
    """Return the outages between the first sign and the last."""
    signs = [
        (facts.earliest_ns(stamp), facts.latest_ns(stamp))
        for stamp in pc.unique(log.rows["timestamp_ms"]).to_pylist()
    ]
    leads = pc.and_(ensemble["serving"], pc.not_equal(ensemble["mode"], _FOLLOWER))
    signs += [(at, at) for at in ensemble.filter(leads)["time_ns"].to_pylist()]
    signs.sort()
    # The next sign is surely there by the least of the times by which any later one is.
    latest_ns = (latest for _, latest in reversed(signs))
    next_ns = [*accumulate(latest_ns, min)][::-1][1:]
    spans: list[tuple[int, int]] = []
    for (since_ns, _), until_ns in zip(signs, next_ns, strict=False):
        if until_ns - since_ns > _SIGHT_NS:
            # Where clocks may be wrong, one outage may seem to begin at several signs.
            first_ns = spans.pop()[0] if spans and spans[-1][1] >= since_ns else since_ns
            spans.append((first_ns, until_ns))
    return Outages(spans=spans)


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=inactive_leaders,
        apis=(METADATA_HEARTBEAT,),
        tables=("wire", "metadata_log", "node_settings", "ensemble"),
    ),
)
