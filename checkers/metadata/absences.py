"""Stretches of time in which a replica was out of its ISR and nothing was there to keep it out.

A replica that is assigned, and whose broker and leader live, fetches, catches up and comes back.
What may keep it out, or begin anew what it has to do, ends a stretch, and so does what may only
have done so:

- it is being added or removed by a reassignment that is under way: on ZooKeeper it leaves the ISR
  before it leaves the replicas;
- its broker, or its leader's, is not registered, fenced, or in controlled shutdown, or registers;
- the leader or the leader epoch changes, or the leader of the quorum does;
- a fault is in effect, from its beginning until its heal was seen to work, that the two, or who
  decides, may depend on: any but the end or the standstill of another process, which no message
  between these needs. A node that is dead for good would stop every bound for good. A bit that was
  flipped on the disk of one of the two is never healed.

The nodes that decide are the voters; in the ZooKeeper generation ZooKeeper's and the broker that is
the active controller.

All of it is by the metadata log and the journal of faults, so every topic is looked at, those that
the cluster or a workload made included, and those that were deleted until that was decided. A
stretch is rounded inwards by what the clocks may differ, and it ends a little before the run does:
there brokers begin to leave.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.facts import Facts, Tables
from fencepost.checkers.metadata.broker_states import BrokerHistory, BrokerVersion
from fencepost.checkers.metadata.partition_states import (
    NO_LEADER,
    PartitionHistory,
    PartitionVersion,
)
from fencepost.checkers.metadata.records import LEADER_CHANGE, MetadataRecord
from fencepost.checkers.metadata.view import MetadataView
from fencepost.checkers.spans import FOREVER_NS, Span, common, outside

LEAVING_NS: Final = 1_000_000_000
"""Left out at the end: there brokers begin to leave, and the clocks are not that sharp."""

OF_ONE_PROCESS: Final = frozenset(
    {"kill", "stop", "pause", "cut_power", "wipe", "rollback", "crash_client", "pause_client"}
)
"""Faults that nothing but a process of theirs is gone or stands still because of."""
_LASTING: Final = "flip_bit"
"""The fault whose change to a disk may stop each fetch of it, even after the node is restarted."""
_OF_FAULTS: Final = ["fault", "targets", "begin_ns", "end_ns"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A stretch in which a replica was out of its ISR and nothing kept it out."""

    broker_id: int
    last: PartitionVersion
    """The last version of that time."""
    span: Span
    returned: bool
    """It ended as the leader let the replica in."""
    at_the_end: bool
    """It lasted until the end of what is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Broken:
    """A time in which a fault was in effect."""

    span: Span
    nodes: frozenset[str] | None
    """The nodes that it is about alone; None: anything may depend on it."""

    def hinders(self, nodes: frozenset[str]) -> bool:
        return self.nodes is None or not self.nodes.isdisjoint(nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Office:
    """A time under one leader of the quorum, or under one active controller of ZooKeeper's."""

    span: Span
    deciding: frozenset[str] | None
    """The nodes that decide; None: one of them is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calm:
    """The times without a fault, for everything that a replica and its leader depend on."""

    broken: Sequence[_Broken]
    offices: Sequence[_Office]
    """By time."""
    eligible: Mapping[int, Sequence[Span]]
    """The times when a broker was in office, each under one registration."""
    flipped: Mapping[str, Span]
    """The time from when on a bit of a node's disk is wrong, by node."""
    end_ns: int
    facts: Facts
    known: dict[frozenset[int], Sequence[Span]] = field(default_factory=dict)
    """The answers of `acting`."""
    pairs: dict[tuple[int, int], Sequence[Span]] = field(default_factory=dict)
    """Those of `of_pair`."""
    whole: dict[frozenset[str] | None, Sequence[Span]] = field(default_factory=dict)
    """The times when no fault hindered these nodes; None: with any fault at all."""

    def acting(self, *broker_ids: int) -> Sequence[Span]:
        """Return the times when no fault kept these brokers, and who decides, from acting.

        Each is under one leader of the quorum, or one active controller.
        """
        ids = frozenset(broker_ids)
        if ids not in self.known:
            names = self.facts.nodes()
            nodes = [names.get(broker_id) for broker_id in ids]
            found = (span for office in self.offices for span in self._within(office, nodes))
            self.known[ids] = list(found)
        return self.known[ids]

    def _within(self, office: _Office, nodes: Sequence[str | None]) -> Iterator[Span]:
        known = frozenset(node for node in nodes if node is not None)
        all_known = office.deciding is not None and len(known) == len(nodes)
        concerned = known | (office.deciding or frozenset()) if all_known else None
        if concerned not in self.whole:
            broken = (one for one in self.broken if concerned is None or one.hinders(concerned))
            self.whole[concerned] = list(outside(one.span for one in broken))
        yield from common([office.span], self.whole[concerned])

    def of_pair(self, leader: int, follower: int) -> Sequence[Span]:
        """Return the times when nothing kept this follower from this leader."""
        if (leader, follower) not in self.pairs:
            self.pairs[leader, follower] = self._of_pair(leader, follower)
        return self.pairs[leader, follower]

    def _of_pair(self, leader: int, follower: int) -> Sequence[Span]:
        nodes = self.facts.nodes()
        flipped = [
            self.flipped[node]
            for broker_id in (leader, follower)
            if (node := nodes.get(broker_id, "")) in self.flipped
        ]
        return common(
            self.acting(leader, follower),
            self.eligible.get(leader, ()),
            self.eligible.get(follower, ()),
            list(outside(flipped)),
        )


def calm(
    records: Iterable[MetadataRecord],
    brokers: Mapping[int, BrokerHistory],
    faults: pa.Table,
    facts: Facts,
    *,
    log_end_ms: int,
) -> Calm:
    """Return the times without a fault, from a log of record and FAULTS."""
    log_end_ns = facts.earliest_ns(log_end_ms)
    end_ns = min(log_end_ns, facts.end_ns or log_end_ns) - LEAVING_NS
    changes = [record for record in records if record.type == LEADER_CHANGE]
    return Calm(
        broken=[_broken(row) for row in faults.select(_OF_FAULTS).to_pylist()],
        offices=list(_offices(changes, facts, end_ns=end_ns)),
        eligible={one.broker_id: list(_eligible(one, facts)) for one in brokers.values()},
        flipped=_flipped(faults),
        end_ns=end_ns,
        facts=facts,
    )


def calm_of(tables: Tables, seen: MetadataView) -> Calm:
    """Return the times without a fault. Reads `metadata_log` and `faults`."""
    return calm(
        seen.log.records,
        seen.brokers,
        tables["faults"],
        seen.facts,
        log_end_ms=seen.log.end_timestamp_ms,
    )


def _broken(row: Mapping[str, Any]) -> _Broken:
    until_ns = FOREVER_NS if row["end_ns"] is None else row["end_ns"]
    return _Broken(
        span=Span(from_ns=row["begin_ns"], until_ns=until_ns),
        nodes=frozenset(row["targets"]) if row["fault"] in OF_ONE_PROCESS else None,
    )


def _offices(changes: Sequence[MetadataRecord], facts: Facts, *, end_ns: int) -> Iterator[_Office]:
    """Yield the times between the changes; before the first it is not known who was elected."""
    names, elected, from_ns = facts.nodes(), None, 0
    for change in (*changes, None):
        until_ns = end_ns if change is None else facts.earliest_ns(change.timestamp_ms)
        span = Span(from_ns=from_ns, until_ns=min(until_ns, end_ns))
        if span.length_ns > 0:
            yield _Office(span=span, deciding=_deciding(elected, facts))
        if change is not None:
            from_ns = max(from_ns, facts.latest_ns(change.timestamp_ms))
            elected = names.get(-1 if change.leader is None else change.leader)


def _deciding(elected: str | None, facts: Facts) -> frozenset[str] | None:
    """Return the nodes that decide, where this one was elected; None if one is not known."""
    voters = frozenset(facts.controllers)
    if not facts.on_zookeeper:
        return voters
    return None if elected is None else voters | {elected}


def absences(history: PartitionHistory, when: Calm) -> Iterator[Absence]:
    """Yield every absence of every replica of a partition."""
    versions = history.versions
    for broker_id in sorted({replica for one in versions for replica in one.replicas}):
        for first, last in _out(versions, broker_id):
            yield from _absences(history, broker_id, first, last, when)


def return_count(history: PartitionHistory) -> int:
    """Return how often a replica came back into the ISR, not counting those being added."""
    return sum(
        len({*after.isr} & {*before.replicas} - {*before.isr, *before.adding})
        for before, after in history.steps()
    )


def _absences(
    history: PartitionHistory, broker_id: int, first: int, last: int, when: Calm
) -> Iterator[Absence]:
    """Yield the absences of one replica that is missing from the versions at these places."""
    versions, facts = history.versions, when.facts
    following = versions[last + 1] if last + 1 < len(versions) else None
    decided_ms = history.decided_until_ms
    decided_ns = FOREVER_NS if decided_ms is None else facts.earliest_ns(decided_ms)
    next_ns = FOREVER_NS if following is None else facts.earliest_ns(following.timestamp_ms)
    until_ns = min(next_ns, decided_ns)
    from_ns = facts.latest_ns(versions[first].timestamp_ms)
    if from_ns >= until_ns:
        return
    out = [Span(from_ns=from_ns, until_ns=until_ns)]
    returned = following is not None and _lets_in(following, versions[last], broker_id)
    for span in common(out, when.of_pair(versions[last].leader, broker_id)):
        yield Absence(
            broker_id=broker_id,
            last=_last(versions[first : last + 1], span.until_ns, facts),
            span=span,
            returned=returned and span.until_ns == until_ns,
            at_the_end=span.until_ns == when.end_ns,
        )


def _last(versions: Sequence[PartitionVersion], until_ns: int, facts: Facts) -> PartitionVersion:
    """Return the last of these that was surely there by then; the first was."""
    return [
        version
        for place, version in enumerate(versions)
        if not place or facts.latest_ns(version.timestamp_ms) <= until_ns
    ][-1]


def _out(versions: Sequence[PartitionVersion], broker_id: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last place of each run of versions, in one epoch, without it."""
    first: int | None = None
    for place, version in enumerate(versions):
        begins = first is None or not _same_office(versions[place - 1], version)
        if first is not None and (begins or not _is_out(version, broker_id)):
            yield first, place - 1
            first = None
        if first is None and _is_out(version, broker_id):
            first = place
    if first is not None:
        yield first, len(versions) - 1


def _is_out(version: PartitionVersion, broker_id: int) -> bool:
    return (
        version.leader not in (NO_LEADER, broker_id)
        and broker_id in version.replicas
        and broker_id not in version.isr
        and broker_id not in (*version.adding, *version.removing)
    )


def _same_office(one: PartitionVersion, other: PartitionVersion) -> bool:
    return (one.leader, one.leader_epoch) == (other.leader, other.leader_epoch)


def _lets_in(following: PartitionVersion, last: PartitionVersion, broker_id: int) -> bool:
    return broker_id in following.isr and following.leader == last.leader


def _eligible(broker: BrokerHistory, facts: Facts) -> Iterator[Span]:
    """Yield the times when the broker was in office, each registration separately."""
    since: BrokerVersion | None = None
    for version in broker.versions:
        if since is not None:
            same = version.registration_offset == since.registration_offset
            if version.eligible and same:
                continue
            yield from surely_since(
                since.timestamp_ms, facts.earliest_ns(version.timestamp_ms), facts
            )
        since = version if version.eligible else None
    if since is not None:
        yield from surely_since(since.timestamp_ms, FOREVER_NS, facts)


def surely_since(from_ms: int, until_ns: int, facts: Facts) -> Iterator[Span]:
    """Yield the span from when a record with this timestamp surely was there, if it is one."""
    from_ns = facts.latest_ns(from_ms)
    if from_ns < until_ns:
        yield Span(from_ns=from_ns, until_ns=until_ns)


def _flipped(faults: pa.Table) -> Mapping[str, Span]:
    rows = faults.filter(pc.equal(faults["fault"], _LASTING)).to_pylist()
    since_ns: dict[str, int] = {}
    for row in rows:
        for node in row["targets"]:
            since_ns[node] = min(row["begin_ns"], since_ns.get(node, FOREVER_NS))
    return {node: Span(from_ns=from_ns, until_ns=FOREVER_NS) for node, from_ns in since_ns.items()}
