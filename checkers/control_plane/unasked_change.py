"""C19 unasked-change: A controller changed an ISR or a leader that nothing asked it to change.

No AlterPartition on the tape that asks for its ISR can have made a version of a partition, and one
that asks for another was granted its partition epoch; or the version has a replica in the ISR that
was not in it and is not elected; or not the one whose broker is registered, unfenced and not in
controlled shutdown, before the batch and all through it, and nothing was broken for 10 s that it or
who decides depends on; or another leader than such a broker, which is not the first of the
replicas. No reassignment is under way. Where ZooKeeper has the metadata: an AlterPartition was
granted a partition epoch with another ISR than it asked for; or a replica is in the ISR that was
not, under one leadership, and no AlterPartition that expects the partition epoch before, and no
IsrChange under way at that time, names it, while the leader is not the controller and asks by
requests in its registration; or a broker is out of the ISR, or leads no more and not for the first
of the replicas, to which the controller in office had sent a request under its registration before,
which goes on, and which had asked for no controlled shutdown: where the leader stays, no such
request leaves it out. That is not judged where brokers send MetadataHeartbeats.

A leader asks for the ISR that it wants, by AlterPartition. The controller itself takes a broker out
of an ISR as it fences, unregisters or registers it, or as it begins its controlled shutdown, and
writes that into the same decision; if the broker led, another one is elected. The only replicas
that it adds to an ISR itself are those that it elects, uncleanly or out of the ELR. Otherwise a
leader changes only for the preferred one, which is first among the replicas.

A broker lives if it is registered, unfenced and not in controlled shutdown just before the batch of
the decision, and all through it: several decisions may share a batch, and its timestamp. A session
may have ended that is not fenced yet, and is renewed then; so nothing may have been broken for
`CALM_NS` that the broker, or who decides, depends on (`checkers.metadata.absences`).

Not judged are partitions that a reassignment is moving, logs below metadata.version 3.3-IV3, which
do not say who is in controlled shutdown, and requests of versions that name a topic whose name
several had. Where ZooKeeper has the metadata, controllers write down no reasons: there replicas are
judged that are let in, and ISRs that were granted (`unasked_growth`), and of brokers that the
controller surely had for alive whether they are put out or replaced (`kept_brokers`).

Meaning: Partitions lose copies, or their leaders, for nothing; or a replica counts as in sync that
no leader has seen catch up.
Case: a change of an ISR or a leader outside of reassignments
Source: KIP-497, KIP-631, KIP-841, KIP-966; `ReplicationControlManager.generateLeaderAndIsrUpdates`
and `PartitionChangeBuilder.electLeader`
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fencepost.checkers.control_plane.illegal_transition import LEVEL_OF_SHUTDOWN, METADATA_VERSION
from fencepost.checkers.control_plane.kept_brokers import KeptBrokers, kept_brokers
from fencepost.checkers.control_plane.unasked_growth import ZookeeperRequests, zookeeper_requests
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.absences import Calm, calm_of
from fencepost.checkers.metadata.isr_changes import (
    ISR_CHANGE,
    NO_REQUESTS,
    IsrRequests,
    ids_by_name,
    proposals,
    requests_by_partition,
)
from fencepost.checkers.metadata.partition_states import (
    NO_LEADER,
    Cause,
    PartitionHistory,
    PartitionVersion,
)
from fencepost.checkers.metadata.rpcs import Rpc, rpcs
from fencepost.checkers.metadata.view import MetadataView, by_partition
from fencepost.checkers.proof import Proof
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import Source, has_rows, streamed
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.REQUEST,
    culprit=("controller:PartitionChangeRecord",),
    variants={
        "was granted ": "other-isr-than-granted",
        "broker {broker_id} is in": "joined-unelected",
        "is out of": "living-member-left",
        "no longer leads with": "living-leader-replaced",
    },
    rests_on=("whole-tape",),
    needs=("metadata_log", "wire"),
)
NAME: Final = ENTRY.name
_ALTER: Final = "AlterPartition"
_NEVER: Final = 2**63 - 1
CALM_NS: Final = 10_000_000_000
"""Longer than a session lasts without heartbeats."""


def unasked_changes(tables: Tables, seen: MetadataView) -> Judged:
    """Judge every change of an ISR or a leader, by partition.

    Reads `metadata_log`, `wire` and `faults`.
    """
    wire = streamed(tables, "wire")
    if seen.facts.migrating or not has_rows(wire):
        return
    if seen.facts.on_zookeeper:
        yield from _on_zookeeper(wire, kept_brokers(wire, seen), seen)
        return
    requests = requests_by_partition(wire, seen.partitions)
    unplaced = _unplaced(wire, seen, _ALTER)
    from_offset, living = _judged_from(seen), _Living(seen, calm_of(tables, seen))

    def judged(history: PartitionHistory) -> Iterator[Proof | None]:
        if history.topic in unplaced:
            return
        mine = requests.get((history.topic_id, history.partition), NO_REQUESTS)
        for before, version in history.steps():
            if version.metadata_offset >= from_offset and _is_judged(before, version):
                yield _judged(history, before, version, mine, living)

    yield from by_partition(NAME, seen, judged)


def _on_zookeeper(wire: Source, living: KeptBrokers, seen: MetadataView) -> Judged:
    requests = zookeeper_requests(wire, seen)
    unplaced = _unplaced(wire, seen, _ALTER, ISR_CHANGE)

    def judged(history: PartitionHistory) -> Iterator[Proof | None]:
        for before, version in history.steps() if history.topic not in unplaced else ():
            if not _is_judged(before, version):
                continue
            if granted := requests.granted(history, version):
                others = [one for one in granted if not _wants(one, version)]
                yield _other_than_granted(history, version, others[0]) if others else None
                continue
            came = requests.unasked(history, before, version)
            if came:
                yield _proof(history, before, version, _IN, min(came))
                continue
            lost = list(_losses(history, before, version, requests, living))
            yield from lost or [None] * (came is not None)

    yield from by_partition(NAME, seen, judged)


def _losses(
    history: PartitionHistory,
    before: PartitionVersion,
    version: PartitionVersion,
    requests: ZookeeperRequests,
    living: KeptBrokers,
) -> Iterator[Proof | None]:
    """Judge who is out of an ISR, or leads no more, on ZooKeeper.

    A request is not looked for where the leader changes, which no leader can ask for.
    """
    if not living.judges(history, version):
        return
    replaced = before.leader not in (version.leader, NO_LEADER)
    out = frozenset(before.isr) - frozenset(version.isr)
    if not replaced:
        out = requests.unasked_losses(history, before, version)
    kept = [one for one in sorted(out) if living.has(one, version)]
    if kept:
        yield _proof(history, before, version, _OUT, kept[0])
    elif replaced and version.leader != next(iter(version.replicas), NO_LEADER):
        alive = living.has(before.leader, version)
        yield _proof(history, before, version, _REPLACED, before.leader) if alive else None
    elif out:
        yield None


def _unplaced(wire: Source, seen: MetadataView, *apis: str) -> frozenset[str]:
    """Return the topics that requests name, where several topics had that name."""
    ids = ids_by_name(seen.histories())
    return frozenset(
        rpc.of("topic")
        for api in apis
        for rpc in rpcs(wire, api)
        if rpc.of("topic_id") is None and len(ids.get(rpc.of("topic"), ())) > 1
    )


def _judged_from(seen: MetadataView) -> int:
    """Return the metadata offset from which on the log says who is in controlled shutdown."""
    from_offset = 0
    for record in seen.log.records:
        if record.type != "FeatureLevelRecord" or record.name != METADATA_VERSION:
            continue
        if int(record.value or 0) < LEVEL_OF_SHUTDOWN:
            from_offset = _NEVER
        elif from_offset == _NEVER:
            from_offset = record.metadata_offset
    return from_offset


def _is_judged(before: PartitionVersion, version: PartitionVersion) -> bool:
    """Return whether a step changes an ISR or a leader, and no reassignment is under way."""
    moving = (*before.adding, *before.removing, *version.adding, *version.removing)
    changed = (before.isr, before.leader) != (version.isr, version.leader)
    still = before.replicas == version.replicas and not moving
    return version.cause is Cause.CHANGED and changed and still


def _judged(
    history: PartitionHistory,
    before: PartitionVersion,
    version: PartitionVersion,
    requests: IsrRequests,
    living: "_Living",
) -> Proof | None:
    made = proposals(version, requests)
    if any(_wants(one, version) for one in (*made.sure, *made.possible)):
        return None
    if granted := [one for one in made.sure if one.ok]:
        return _other_than_granted(history, version, granted[0])
    elected = {version.leader} if version.leader != before.leader else set[int]()
    joined = {*version.isr} - {*before.isr} - elected
    left = {one for one in before.isr if one not in version.isr and living.has(one, version)}
    if joined:
        return _proof(history, before, version, _IN, min(joined))
    if left:
        return _proof(history, before, version, _OUT, min(left))
    first = version.replicas[0] if version.replicas else NO_LEADER
    if elected and version.leader != first and living.has(before.leader, version):
        return _proof(history, before, version, _REPLACED, before.leader)
    return None


def _wants(request: Rpc, version: PartitionVersion) -> bool:
    """Return whether the ISR of a version is the one that was asked for."""
    return {*(request.of("isr") or ())} & {*version.replicas} == {*version.isr}


def _other_than_granted(
    history: PartitionHistory, version: PartitionVersion, request: Rpc
) -> Proof:
    return Proof.of(
        "{source} asked at {asked} (frame {frame}) for the ISR {wanted} of {key}, and was granted "
        "partition epoch {partition_epoch}, under which it is {isr} (metadata offset "
        "{metadata_offset})",
        metadata_offsets={"metadata_offset": version.metadata_offset},
        values={"partition_epoch": version.partition_epoch},
        frames={"frame": request.frame},
        times={"asked": request.asked_ns},
        sources={"wanted": "frame", "isr": "metadata_offset"},
        source=request.source,
        key=history.key,
        wanted=list(request.of("isr") or ()),
        isr=version.isr_text,
    )


_IN: Final = "broker {broker_id} is in"
_OUT: Final = "broker {broker_id}, which is unfenced and not in controlled shutdown, is out of"
_REPLACED: Final = (
    "broker {broker_id}, which is unfenced and not in controlled shutdown, no longer leads with"
)


@dataclass(frozen=True, slots=True)
class _Living:
    """The brokers that surely are in office, and with which nothing has interfered for a while."""

    seen: MetadataView
    when: Calm

    def has(self, broker_id: int, version: PartitionVersion) -> bool:
        """Return whether a broker lives just before the batch of a version, and all through it."""
        history = self.seen.brokers.get(broker_id)
        if history is None:
            return False
        versions, stamp_ms = history.versions, version.timestamp_ms
        first = bisect_left(versions, version.metadata_offset, key=lambda one: one.metadata_offset)
        end = first
        while first and versions[first - 1].timestamp_ms == stamp_ms:
            first -= 1
        while end < len(versions) and versions[end].timestamp_ms == stamp_ms:
            end += 1
        if not first or not all(one.eligible for one in versions[first - 1 : end]):
            return False
        facts = self.seen.facts
        from_ns, until_ns = facts.earliest_ns(stamp_ms) - CALM_NS, facts.latest_ns(stamp_ms)
        calm = self.when.acting(broker_id)
        return any(span.from_ns <= from_ns and until_ns <= span.until_ns for span in calm)


def _proof(
    history: PartitionHistory,
    before: PartitionVersion,
    version: PartitionVersion,
    words: str,
    broker_id: int,
) -> Proof:
    return Proof.of(
        "from metadata offset {metadata_offset} on " + words + " the ISR of {key} ({isr}, leader "
        "{leader}; {isr_before}, leader {leader_before}, before); no AlterPartition on the tape "
        "can have asked for it",
        metadata_offsets={"metadata_offset": version.metadata_offset},
        values={"broker_id": broker_id},
        sources=dict.fromkeys(("isr", "leader"), "metadata_offset"),
        key=history.key,
        isr=version.isr_text,
        leader=version.leader,
        isr_before=before.isr_text,
        leader_before=before.leader,
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=unasked_changes,
        split=Split.PARTITIONS,
        tables=("metadata_log", "wire", "faults"),
    ),
)
