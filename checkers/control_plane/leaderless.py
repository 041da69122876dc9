"""C20 leaderless: A partition stays without a leader though a replica that may lead serves.

For longer than 10 s, under one version of it, a partition has no leader, or one whose broker is
fenced or not registered, while the broker of a member of its ISR (or, where that is empty, of its
ELR) is registered, unfenced and not in controlled shutdown; and no fault is in effect that this
broker or who decides may depend on. Not of a topic that is to be deleted.

A controller elects as soon as it can: when a leader goes, out of the rest of the ISR, and when
there was none left, at the return of the first member. So a partition has a leader that serves, or
none of those that may lead it does. What may lead is a member of the ISR or, where that is empty,
of the ELR. A leader serves while it is registered and unfenced, in controlled shutdown, too.

`checkers.metadata.absences` says which faults a broker, or who decides, may depend on.

Meaning: Nobody can write to it or read from it, and nothing stands in the way.
Case: an election of another leader, or a time without one that was too long
Source: KIP-631; for ZooKeeper `OfflinePartitionLeaderElectionStrategy`
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Facts, Judged, Tables
from fencepost.checkers.metadata.absences import calm_of, surely_since
from fencepost.checkers.metadata.broker_states import BrokerHistory, BrokerVersion
from fencepost.checkers.metadata.partition_states import (
    NO_LEADER,
    PartitionHistory,
    PartitionVersion,
)
from fencepost.checkers.metadata.view import MetadataView, by_partition
from fencepost.checkers.proof import Proof
from fencepost.checkers.slices import Split
from fencepost.checkers.spans import FOREVER_NS, Span, common
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.STANDSTILL,
    needs=("metadata_log",),
)
NAME: Final = ENTRY.name
ELECTED_NS: Final = 10_000_000_000
"""Many times what a controller takes to elect a leader."""


def leaderless(tables: Tables, seen: MetadataView) -> Judged:
    """Judge every time without a leader, by partition. Reads `metadata_log` and `faults`."""
    when = calm_of(tables, seen)
    gone = {one.broker_id: list(_gone(one, seen.facts)) for one in seen.brokers.values()}

    def judged(history: PartitionHistory) -> Iterator[Proof | None]:
        for version, without in _without_leader(history, gone, seen.facts):
            waits = [
                (span, broker_id)
                for broker_id in version.isr or version.elr
                for span in common(
                    [without], when.acting(broker_id), when.eligible.get(broker_id, ())
                )
                if span.length_ns > ELECTED_NS
            ]
            if waits:
                span, broker_id = max(waits, key=lambda one: one[0].length_ns)
                yield _proof(history, version, span, broker_id)
        for before, version in history.steps():
            if version.leader not in (NO_LEADER, before.leader):
                yield None

    yield from by_partition(NAME, seen, judged)


def _gone(broker: BrokerHistory, facts: Facts) -> Iterator[Span]:
    """Yield the times when a broker surely was not registered, or was fenced."""
    since: BrokerVersion | None = None
    for version in broker.versions:
        serves = version.registered and not version.fenced
        if since is not None and serves:
            until_ns = facts.earliest_ns(version.timestamp_ms)
            yield from surely_since(since.timestamp_ms, until_ns, facts)
        since = None if serves else since or version
    if since is not None:
        yield from surely_since(since.timestamp_ms, FOREVER_NS, facts)


def _without_leader(
    history: PartitionHistory, gone: dict[int, list[Span]], facts: Facts
) -> Iterator[tuple[PartitionVersion, Span]]:
    """Yield the times in which a partition surely had no leader that serves, version by version."""
    decided_ns = (
        FOREVER_NS
        if history.decided_until_ms is None
        else facts.earliest_ns(history.decided_until_ms)
    )
    for version, following in pairwise((*history.versions, None)):
        assert version is not None
        next_ns = FOREVER_NS if following is None else facts.earliest_ns(following.timestamp_ms)
        in_force = list(surely_since(version.timestamp_ms, min(next_ns, decided_ns), facts))
        led = version.leader != NO_LEADER
        for span in common(in_force, gone.get(version.leader, ())) if led else in_force:
            yield version, span


def _proof(
    history: PartitionHistory, version: PartitionVersion, span: Span, broker_id: int
) -> Proof:
    return Proof.of(
        "{key} has {leader} from {since} until {until} (ISR {isr}, metadata offset "
        "{metadata_offset}), though broker {broker_id}, which may lead it, is unfenced; all that "
        "time nothing was broken that this depends on, and the bound is {bound}",
        metadata_offsets={"metadata_offset": version.metadata_offset},
        values={"broker_id": broker_id},
        times={"since": span.from_ns, "until": span.until_ns},
        durations={"bound": ELECTED_NS},
        sources={"isr": "metadata_offset"},
        key=history.key,
        isr=version.isr_text,
        leader=(
            Proof.of("no leader")
            if version.leader == NO_LEADER
            else Proof.of("leader {gone}, which is fenced or gone,", gone=version.leader)
        ),
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=leaderless,
        split=Split.PARTITIONS,
        tables=("metadata_log", "faults"),
    ),
)
