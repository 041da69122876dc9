"""C13 epoch-check-bypassed: The controller changed an ISR on a proposal that it had to refuse.

An AlterPartition made a version of its partition, and what it names is not what was in force
before: the partition epoch that it expects, the leader epoch, its sender as the leader, its
sender's broker epoch, or, from version 3 on, the broker epoch of a member (-1 is not compared).
INVALID_UPDATE_VERSION, FENCED_LEADER_EPOCH, INVALID_REQUEST, STALE_BROKER_EPOCH and
INELIGIBLE_REPLICA are the answers to that. Where ZooKeeper has the metadata, what is so already is
granted, and a later version than the next is not judged.

A proposal (AlterPartition) names epochs, so that one from the past changes nothing.

So a request that was answered without an error by a version later than the one that it expects has
to agree with the version before that one, and with the last registrations before its metadata
offset. An answer without a new version is not judged: the offset at which it was given is unknown.
Nor is, where ZooKeeper has the metadata, one of a later version than the next: a controller there
grants what is so already, whatever epoch is expected, so another request made that version.

An IsrChange names no partition epoch. One that alone can have made a version (its ISR, in the
leader epoch before, at a time between when it was passed on and when it was answered) has to agree
in the same way; its sender's incarnation id stands for the broker epoch (INVALID_INCARNATION_ID),
another sender than the leader and another leader epoch are answered NOT_LEADER_OR_FOLLOWER. What a
legacy leader may have written itself is not judged.

Where ZooKeeper has the metadata, the controller learns of registrations from it: one may not be
known to the controller, and is not held against it, unless `LEARNT_NS` passed between it and the
passing on of the request in which nothing was done to the controller or to ZooKeeper
(`checkers.standstills`): one that was paused decides on what it knew before. A heartbeat of the new
incarnation that reached it tells it as well, even where it is cut off from ZooKeeper.

Meaning: The checks that keep what is out of date from changing an ISR do not work: a dead or
deposed leader decides, or a broker without its data comes to be in sync.
Case: an epoch, or the sender, that a successful AlterPartition names
Source: KIP-497, KIP-631, KIP-903; `ReplicationControlManager.validateAlterPartitionData` and
`ineligibleReplicasForIsr`, `ClusterControlManager.checkBrokerEpoch`
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.broker_states import BrokerHistory, BrokerVersion
from fencepost.checkers.metadata.isr_changes import (
    ISR_CHANGE,
    NO_REQUESTS,
    IsrDecisions,
    IsrRequests,
    isr_changes,
    made,
    requests_by_partition,
)
from fencepost.checkers.metadata.metadata_heartbeats import heartbeats_of
from fencepost.checkers.metadata.partition_states import (
    NO_LEADER,
    PartitionHistory,
    PartitionVersion,
)
from fencepost.checkers.metadata.rpcs import Rpc
from fencepost.checkers.metadata.view import MetadataView, by_partition
from fencepost.checkers.proof import Proof
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import streamed
from fencepost.checkers.standstills import Standstills
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.REQUEST,
    culprit=("{api}:leader→controller", "not-{refusal}"),
    needs=("metadata_log", "wire"),
)
NAME: Final = ENTRY.name
LEARNT_NS: Final = 2_000_000_000
_UNCHECKED: Final = -1
_STALE: Final = "STALE_BROKER_EPOCH"
_OLD: Final = "INVALID_INCARNATION_ID"
_NOT_LEADER: Final = "NOT_LEADER_OR_FOLLOWER"
_INELIGIBLE: Final = "INELIGIBLE_REPLICA"


class _Claim(NamedTuple):
    """Something that a request names, and what was in force."""

    named: int
    in_force: int
    rule: str
    """The rule for both; names `named`, `in_force`, `offset` and `broker_id`."""
    broker_id: int | None
    """The broker that it is about."""
    offset: int
    """The metadata offset from which on it was in force."""
    refusal: str


@dataclass(frozen=True, slots=True)
class _Learning:
    """The ways in which a controller on ZooKeeper learns of registrations."""

    still: Standstills
    heard_ns: Mapping[tuple[str, int, int], int]
    """When the first heartbeat reached it, by controller, broker id and broker epoch."""

    @staticmethod
    def of(tables: Tables) -> "_Learning":
        heard_ns: dict[tuple[str, int, int], int] = {}
        for broker_id, beats in heartbeats_of(streamed(tables, "wire")).items():
            for beat in beats.taken():
                place = (beat.target, broker_id, beat.of("broker_epoch"))
                heard_ns.setdefault(place, beat.reached_ns or 0)
        return _Learning(Standstills.of(tables.get("faults")), heard_ns)

    def has_heard(self, request: Rpc, broker_id: int, broker_epoch: int) -> bool:
        """Return whether the target had a heartbeat of this incarnation, and time to act on it."""
        heard_ns = self.heard_ns.get((request.target, broker_id, broker_epoch))
        if heard_ns is None:
            return False
        acted_ns = self.still.of_processes.acted_ns(
            heard_ns, request.reached_ns or 0, node=request.target, hears_from=()
        )
        return acted_ns > LEARNT_NS


def bypassed_epoch_checks(tables: Tables, seen: MetadataView) -> Judged:
    """Find changes by requests out of date, by partition. Reads `metadata_log` and `wire`."""
    requests = requests_by_partition(streamed(tables, "wire"), seen.partitions)
    changes = requests_by_partition(streamed(tables, "wire"), seen.partitions, api=ISR_CHANGE)
    learning = _Learning.of(tables)

    def judged(history: PartitionHistory) -> Iterator[Proof | None]:
        place = (history.topic_id, history.partition)
        yield from _judged(history, requests.get(place, NO_REQUESTS), seen, learning)
        yield from _changes_judged(history, changes.get(place, NO_REQUESTS), seen, learning)

    return by_partition(NAME, seen, judged)


def _judged(
    history: PartitionHistory, requests: IsrRequests, seen: MetadataView, learning: "_Learning"
) -> Iterator[Proof | None]:
    places = history.by_epoch()
    for request in requests:
        place = places.get(_made_by(request, seen) or 0, 0)
        if place:
            before, version = history.versions[place - 1 : place + 1]
            of_brokers = _of_brokers(request, version, seen, learning)
            for claim in (*of_brokers, *_of_partition(request, before)):
                agrees = claim.named == claim.in_force
                yield None if agrees else _proof(history, version, request, claim)


def _made_by(request: Rpc, seen: MetadataView) -> int | None:
    """Return the partition epoch that a request has made; None if another may have made it."""
    epoch = made(request)
    later = epoch is not None and epoch > request.of("partition_epoch") + 1
    return None if later and seen.facts.on_zookeeper else epoch


def _changes_judged(
    history: PartitionHistory, changes: IsrRequests, seen: MetadataView, learning: "_Learning"
) -> Iterator[Proof | None]:
    decisions = IsrDecisions(history, seen.facts)
    for before, version in history.steps():
        asked = isr_changes(version, changes, seen, decisions)
        if len(asked.sure) != 1 or asked.possible or before.isr == version.isr:
            continue
        if before.leader_epoch != version.leader_epoch:
            continue  # the controller's own decision begins a leader epoch, an IsrChange does not
        (request,) = asked.sure
        of_brokers = _of_brokers(request, version, seen, learning)
        for claim in (*of_brokers, *_of_partition(request, before)):
            agrees = claim.named == claim.in_force
            yield None if agrees else _proof(history, version, request, claim)


def _of_partition(request: Rpc, before: PartitionVersion) -> Iterator[_Claim]:
    """Yield claims about the partition as it was, the one that tells most first."""
    sender, leader_epoch = request.of("broker_id"), request.of("leader_epoch")
    expected = request.of("partition_epoch")
    of_change = request.api == ISR_CHANGE
    claims = [
        (
            leader_epoch,
            before.leader_epoch,
            "named leader epoch {named}, and that was {in_force}",
            _NOT_LEADER if of_change else "FENCED_LEADER_EPOCH",
        )
    ]
    if not of_change:
        words = "expected partition epoch {named}, and it was at {in_force}"
        claims.append((expected, before.partition_epoch, words, "INVALID_UPDATE_VERSION"))
    if sender is not None and before.leader != NO_LEADER:
        words = "came from broker {named}, and broker {in_force} led"
        refusal = _NOT_LEADER if of_change else "INVALID_REQUEST"
        claims.insert(0, (sender, before.leader, words, refusal))
    for named, in_force, rule, refusal in claims:
        yield _Claim(
            named=named,
            in_force=in_force,
            rule=rule + " since metadata offset {offset}",
            broker_id=sender,
            offset=before.metadata_offset,
            refusal=refusal,
        )


def _of_brokers(
    request: Rpc, version: PartitionVersion, seen: MetadataView, learning: "_Learning"
) -> Iterator[_Claim]:
    """Yield claims about the registrations of the sender and of the members."""
    sender = request.of("broker_id")
    refusal = _OLD if request.api == ISR_CHANGE else _STALE
    of_sender = (sender, request.of("broker_epoch"), "its sender, broker {broker_id},", refusal)
    members = zip(request.of("isr") or (), request.of("isr_epochs") or (), strict=False)
    of_members = ((one, epoch, "broker {broker_id}", _INELIGIBLE) for one, epoch in members)
    for broker_id, epoch, words, refusal in (of_sender, *of_members):
        broker = seen.broker_before(broker_id, version.metadata_offset)
        if epoch is None or epoch == _UNCHECKED or broker is None:
            continue
        by_zookeeper = request.api == ISR_CHANGE or seen.facts.on_zookeeper
        if by_zookeeper and not _is_learnt(
            broker, seen.brokers[broker_id], request, seen, learning
        ):
            continue
        yield _Claim(
            named=epoch,
            in_force=broker.broker_epoch,
            rule=f"named {words} with broker epoch {{named}}; it had registered with {{in_force}} "
            "at metadata offset {offset}",
            broker_id=broker_id,
            offset=broker.registration_offset,
            refusal=refusal,
        )


def _is_learnt(
    broker: BrokerVersion,
    history: BrokerHistory,
    request: Rpc,
    seen: MetadataView,
    learning: "_Learning",
) -> bool:
    """Return whether a controller on ZooKeeper knew of a registration when the request came."""
    made = next(
        (one for one in history.versions if one.metadata_offset == broker.registration_offset),
        broker,
    )
    made_ns = seen.facts.latest_ns(made.timestamp_ms)
    if learning.has_heard(request, history.broker_id, made.broker_epoch):
        return True
    acted_ns = learning.still.acted_ns(
        made_ns, request.reached_ns or 0, node=request.target, hears_from=seen.facts.controllers
    )
    return acted_ns > LEARNT_NS


def _proof(
    history: PartitionHistory, version: PartitionVersion, request: Rpc, claim: _Claim
) -> Proof:
    said = "{broker_id}" in claim.rule
    about: dict[str, Any] = {"broker_id": claim.broker_id} if said else {}
    return Proof.of(
        f"the {{api}} of {{key}} sent at {{asked}} (frame {{frame}}) {claim.rule}, and "
        "{target} made the change at metadata offset {metadata_offset} instead of "
        "answering {refusal}",
        metadata_offsets={"offset": claim.offset, "metadata_offset": version.metadata_offset},
        values={"named": claim.named, "in_force": claim.in_force},
        frames={"frame": request.frame, "answer_frame": request.answer_frame},
        times={"asked": request.asked_ns},
        sources={"named": "frame", "in_force": "offset", "broker_id": "frame"},
        api=request.api,
        key=history.key,
        **about,
        target=request.target,
        refusal=claim.refusal,
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=bypassed_epoch_checks,
        tables=("metadata_log", "wire", "faults"),
        split=Split.PARTITIONS,
    ),
)
