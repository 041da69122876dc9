"""C3 ineligible-member: A broker that may not be in an ISR is in one.

A replica joins an ISR, by an election that is not recorded as unclean or by a change, while the
metadata log before it has its broker unregistered, fenced or in controlled shutdown; or a fenced
one stays a member for more than 10 s, though it is not the last. After a registration, and in the
ZooKeeper generation after the end of a session for joins, too, the 10 s count only under one
controller and without a fault that it may depend on.

The controller checks a join against its own log (KIP-841), so the records before it decide,
exactly.

A fenced broker leaves every ISR but one of which it is the last member. The controller writes both
at once, the changes of the ISRs first; still a fenced member is only accused after it has surely
stayed for `GRACE_MS`. A broker whose session has ended may register before the controller gets to
fence it, and then is a fenced member until it is unfenced, for which its heartbeats must reach the
controller: there `GRACE_MS` count only under one controller and without a fault that it or the
broker may depend on (`control_plane.absences`).

In the ZooKeeper generation a session ends without the controller, which learns of it by a watch and
then takes the broker out of its ISRs. So of a broker without a session, joining or staying,
`GRACE_MS` count only under one controller and without a fault that it may depend on. The broker's
own death is no such fault. A leader that lets in whom it saw alive has to have been there, too. Of
a topic that is to be deleted it changes no ISR any more, however long that waits.

Meaning: Writes wait for a broker that does not answer, or a broker that is out of office may be
elected.
Case: a replica that joined an ISR, or a member of one whose broker was fenced
Source: KIP-631, KIP-841; KIP-903 for the last member that stays
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import pyarrow as pa

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Facts, Judged, Tables
from fencepost.checkers.metadata.absences import Calm, calm
from fencepost.checkers.metadata.broker_states import BrokerHistory, BrokerVersion
from fencepost.checkers.metadata.partition_states import (
    NO_LEADER,
    Cause,
    PartitionHistory,
    PartitionVersion,
)
from fencepost.checkers.metadata.view import MetadataView, by_partition
from fencepost.checkers.proof import Proof
from fencepost.checkers.slices import Split
from fencepost.checkers.spans import Span, common
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.METADATA,
    needs=("metadata_log",),
)
NAME: Final = ENTRY.name
GRACE_MS: Final = 10_000
"""A broker that registers and lives is unfenced well within it."""


class _Time(NamedTuple):
    """A time between two versions, each in ms, and in ns of the run what of it is sure."""

    from_ms: int
    until_ms: int
    from_ns: int
    until_ns: int

    @staticmethod
    def of(from_ms: int, until_ms: int, facts: Facts) -> "_Time":
        return _Time(from_ms, until_ms, facts.latest_ns(from_ms), facts.earliest_ns(until_ms))

    def both(self, other: "_Time") -> "_Time":
        return _Time(
            max(self.from_ms, other.from_ms),
            min(self.until_ms, other.until_ms),
            max(self.from_ns, other.from_ns),
            min(self.until_ns, other.until_ns),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grace:
    """The time that a controller has, of those in which it could act."""

    when: Calm

    def is_over_since(self, out: BrokerVersion, time: _Time, broker_id: int) -> bool:
        """Return whether it surely passed in this time, since that version fenced the broker."""
        if self.when.facts.on_zookeeper:
            return self.is_over(time)
        if out.metadata_offset == out.registration_offset:
            return self.is_over(time, broker_id)
        return time.until_ns - time.from_ns > GRACE_MS * 1_000_000

    def is_over(self, time: _Time, *brokers: int) -> bool:
        """Return whether it surely passed in this time, for it and these brokers."""
        within = [Span(from_ns=time.from_ns, until_ns=time.until_ns)]
        spans = common(within, self.when.acting(*brokers))
        return any(span.length_ns > GRACE_MS * 1_000_000 for span in spans)


def _grace(faults: pa.Table, seen: MetadataView) -> _Grace:
    log, facts = seen.log, seen.facts
    return _Grace(
        when=calm(log.records, seen.brokers, faults, facts, log_end_ms=log.end_timestamp_ms)
    )


def ineligible_members(tables: Tables, seen: MetadataView) -> Judged:
    """Find joins and stays, by partition. Reads `metadata_log` and `faults`."""
    end_ms = seen.log.end_timestamp_ms
    grace = _grace(tables["faults"], seen)
    fenced = {
        one.broker_id: list(_fenced(one, end_ms, seen.facts)) for one in seen.brokers.values()
    }
    return by_partition(NAME, seen, lambda history: _judged(history, fenced, seen, grace))


def _judged(
    history: PartitionHistory,
    fenced: Mapping[int, Sequence[tuple[BrokerVersion, _Time]]],
    seen: MetadataView,
    grace: _Grace,
) -> Iterator[Proof | None]:
    for before, version in history.steps():
        if version.cause is Cause.CHANGED and not version.recovering:
            for broker_id in sorted(set(version.isr) - set(before.isr)):
                joining = seen.broker_before(broker_id, version.metadata_offset)
                if joining is not None or not seen.log.begins_with_snapshot:
                    eligible = joining is not None and (
                        joining.eligible
                        or _is_fresh(joining, before.leader, version, seen.facts, grace)
                    )
                    yield None if eligible else _join(history, version, broker_id, joining)
    for broker in seen.brokers.values():
        yield from _stays(history, broker, fenced[broker.broker_id], seen, grace)


def _is_fresh(
    broker: BrokerVersion, leader: int, version: PartitionVersion, facts: Facts, grace: _Grace
) -> bool:
    """Return whether controller or leader may not have known yet that its session had ended."""
    if not facts.on_zookeeper:
        return False
    leaders = () if leader == NO_LEADER else (leader,)
    time = _Time.of(broker.timestamp_ms, version.timestamp_ms, facts)
    return not grace.is_over(time, *leaders)


def _join(
    history: PartitionHistory,
    version: PartitionVersion,
    broker_id: int,
    broker: BrokerVersion | None,
) -> Proof:
    return Proof.of(
        "broker {broker_id} joined the ISR of {key} at metadata offset "
        f"{{metadata_offset}} (ISR {{isr}}), when it {_state(broker)}",
        metadata_offsets={
            "since": None if broker is None else broker.metadata_offset,
            "metadata_offset": version.metadata_offset,
        },
        values={"broker_id": broker_id},
        sources=dict.fromkeys(("broker_id", "isr"), "metadata_offset"),
        key=history.key,
        isr=version.isr_text,
    )


def _state(broker: BrokerVersion | None) -> str:
    """Return the end of the rule."""
    if broker is None:
        return "had never registered"
    where = " since metadata offset {since}"
    if not broker.registered:
        return "was unregistered" + where
    return ("was fenced" if broker.fenced else "was in controlled shutdown") + where


def _stays(
    history: PartitionHistory,
    broker: BrokerHistory,
    fenced: Sequence[tuple[BrokerVersion, _Time]],
    seen: MetadataView,
    grace: _Grace,
) -> Iterator[Proof | None]:
    """Yield times at which it was fenced and a member, and not the last one; often of no length."""
    end_ms = history.decided_until_ms or seen.log.end_timestamp_ms
    for first, member in _memberships(history, broker.broker_id, end_ms, seen.facts):
        # Both lists grow over a night: only the times that overlap are looked at.
        place = bisect_right(fenced, member.from_ms, key=lambda one: one[1].until_ms)
        for version, out in map(fenced.__getitem__, range(place, len(fenced))):
            if out.from_ms > member.until_ms:
                break
            both = member.both(out)
            stayed_ns = both.until_ns - both.from_ns
            long = grace.is_over_since(version, both, broker.broker_id)
            yield _stay(history, broker, version, first, stayed_ns) if long else None


def _memberships(
    history: PartitionHistory, broker_id: int, end_ms: int, facts: Facts
) -> Iterator[tuple[PartitionVersion, _Time]]:
    """Yield each time in which it was a member among others, and its first version."""
    first: PartitionVersion | None = None
    for version in history.versions:
        member = broker_id in version.isr and len(version.isr) > 1
        if member and first is None:
            first = version
        elif not member and first is not None:
            yield first, _Time.of(first.timestamp_ms, version.timestamp_ms, facts)
            first = None
    if first is not None:
        yield first, _Time.of(first.timestamp_ms, end_ms, facts)


def _fenced(
    broker: BrokerHistory, end_ms: int, facts: Facts
) -> Iterator[tuple[BrokerVersion, _Time]]:
    """Yield each time for which it was fenced, in order, and the version that began it."""
    first: BrokerVersion | None = None
    for version in broker.versions:
        fenced = version.fenced and version.registered
        if fenced and first is None:
            first = version
        elif not fenced and first is not None:
            yield first, _Time.of(first.timestamp_ms, version.timestamp_ms, facts)
            first = None
    if first is not None:
        yield first, _Time.of(first.timestamp_ms, end_ms, facts)


def _stay(
    history: PartitionHistory,
    broker: BrokerHistory,
    fenced: BrokerVersion,
    version: PartitionVersion,
    stayed_ns: int,
) -> Proof:
    return Proof.of(
        "broker {broker_id} was fenced at metadata offset {metadata_offset} and a "
        "member of the ISR of {key} since metadata offset {version_metadata_offset} "
        "(ISR {isr}), both for {stayed}, though it was not the last member",
        metadata_offsets={
            "metadata_offset": fenced.metadata_offset,
            "version_metadata_offset": version.metadata_offset,
        },
        values={"broker_id": broker.broker_id},
        durations={"stayed": stayed_ns},
        sources={"isr": "version_metadata_offset"},
        key=history.key,
        isr=version.isr_text,
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=ineligible_members,
        split=Split.PARTITIONS,
        tables=("metadata_log", "faults"),
    ),
)
