"""A partition that moves to other replicas: how it begins, ends, and is given up.

While it moves, its replicas are the wanted ones followed by those that go. It has arrived once all
that are added are in the ISR. Every version that loses a replica begins a new leader epoch, so that
what the lost one still fetches is refused.

Source: KIP-455; Kafka's `PartitionReassignmentReplicas` and `PartitionReassignmentRevert`.
"""

from dataclasses import dataclass

from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.reference.nodes.control.decision import DecisionView
from fencepost.clusters.reference.nodes.control.elections import NOBODY, Electorate, change
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.image import PartitionImage
from fencepost.clusters.reference.nodes.records import PartitionChangeRecord

_Replicas = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The partition as it is once it has lost the replicas that go."""

    replicas: _Replicas
    isr: _Replicas
    leader: int | None
    """None: the same one, in the same leader epoch."""


def in_progress(partition: PartitionImage) -> bool:
    """Return whether it moves."""
    return bool(partition.adding or partition.removing)


def completion(view: DecisionView, old: PartitionImage, *, isr: _Replicas) -> Completion | None:
    """Return how a reassignment ends with this ISR; None: not yet, or none is under way."""
    if not in_progress(old) or not set(old.adding) <= set(isr):
        return None
    return _reduced(view, old, isr=isr, gone=old.removing)


def _reduced(
    view: DecisionView, old: PartitionImage, *, isr: _Replicas, gone: _Replicas
) -> Completion | None:
    """Return the partition without some replicas; None if no replica left in the ISR may lead.

    A partition that has no leader anyway may stay so.
    """
    replicas = tuple(one for one in old.replicas if one not in gone)
    rest = tuple(one for one in isr if one not in gone)
    leader = old.leader
    if leader not in rest:
        electorate = Electorate(view=view)
        leader = next((one for one in replicas if one in rest and electorate.may_lead(one)), NOBODY)
    if not rest or (leader == NOBODY and old.leader != NOBODY):
        return None
    same = replicas == old.replicas and leader == old.leader
    return Completion(replicas=replicas, isr=rest, leader=None if same else leader)


def begun(
    view: DecisionView, key: PartitionKey, old: PartitionImage, wanted: _Replicas
) -> PartitionChangeRecord | Error | None:
    """The record that sets a partition moving, and that ends it if all have arrived already.

    Replicas that an earlier reassignment was still adding count as added only if they are in the
    ISR.
    """
    if not wanted or len(set(wanted)) != len(wanted):
        return Error.INVALID_REPLICA_ASSIGNMENT
    if any(one not in view.image.brokers for one in wanted):
        return Error.INVALID_REPLICA_ASSIGNMENT
    settled = [one for one in old.replicas if one not in old.adding]
    adding = tuple(one for one in wanted if one not in settled)
    removing = tuple(one for one in old.replicas if one not in wanted)
    if set(adding) <= set(old.isr):
        ended = _reduced(view, old, isr=old.isr, gone=removing)
        if ended is not None:
            return _ending(view, key, old, ended, replicas=wanted)
    return change(
        view,
        key,
        old,
        isr=old.isr,
        replicas=(*wanted, *removing),
        adding=adding,
        removing=removing,
    )


def cancelled(
    view: DecisionView, key: PartitionKey, old: PartitionImage
) -> PartitionChangeRecord | Error | None:
    """The record that takes a reassignment back."""
    if not in_progress(old):
        return Error.NO_REASSIGNMENT_IN_PROGRESS
    ended = _reduced(view, old, isr=old.isr, gone=old.adding)
    if ended is None:
        return Error.INVALID_REPLICA_ASSIGNMENT
    return _ending(view, key, old, ended, replicas=ended.replicas)


def _ending(
    view: DecisionView,
    key: PartitionKey,
    old: PartitionImage,
    ended: Completion,
    *,
    replicas: _Replicas,
) -> PartitionChangeRecord | None:
    return change(
        view,
        key,
        old,
        isr=ended.isr,
        leader=ended.leader,
        replicas=replicas,
        adding=(),
        removing=(),
    )
