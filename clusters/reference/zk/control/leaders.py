"""The decisions on leaders and ISRs that this generation makes by itself.

They are those of the KRaft generation, but that every state which the controller writes begins a
new leader epoch, not only one with another leader: a broker takes no LeaderAndIsr of a leader epoch
that it has. Only an ISR that its leader asked for keeps the leader epoch.

Source: Kafka's `PartitionStateMachine`, `KafkaController.removeReplicasFromIsr`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from fencepost.clusters.reference.nodes.control.decision import DecisionView
from fencepost.clusters.reference.nodes.control.elections import Electorate
from fencepost.clusters.reference.nodes.control.partitions import (
    elections_of_leaderless,
    elections_without,
)
from fencepost.clusters.reference.nodes.control.placement import usable
from fencepost.clusters.reference.nodes.control.reassignment import completion
from fencepost.clusters.reference.nodes.records import (
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
)
from fencepost.clusters.reference.zk.control.context import Context


def in_new_epoch(view: DecisionView, records: Iterable[MetadataRecord]) -> list[MetadataRecord]:
    """Return the records with a new leader epoch for each partition that they change."""
    return [
        replace(one, leader=view.image.partitions[one.topic_id, one.partition].leader)
        if isinstance(one, PartitionChangeRecord) and one.leader is None
        else one
        for one in records
    ]


def departed(view: DecisionView, broker_id: int) -> list[MetadataRecord]:
    """Return the changes after which a broker leads nothing, and is in no ISR but as its last."""
    electorate = Electorate(view=view, down=broker_id)
    # Rule fenced_leaves_isr.
    changes = elections_without(view, electorate, leaves_isr=view.rules.fenced_leaves_isr)
    return in_new_epoch(view, changes)


def leaderless(view: DecisionView, *, up: int = -1) -> Iterator[PartitionChangeRecord]:
    """Yield the elections that are possible now; `up`: a broker that the decision activates."""
    return elections_of_leaderless(Electorate(view=view, up=up))


def completed(view: DecisionView) -> list[MetadataRecord]:
    """Return the ends of the reassignments whose replicas have all arrived."""
    records: list[MetadataRecord] = []
    for key, old in view.image.partitions.items():
        ended = completion(view, old, isr=old.isr)
        if ended is not None:
            records.append(
                PartitionChangeRecord(
                    *key,
                    isr=ended.isr,
                    leader=old.leader if ended.leader is None else ended.leader,
                    bumps_leader_epoch=view.rules.leader_epoch_bumped,
                    replicas=ended.replicas,
                    adding=(),
                    removing=(),
                )
            )
    return records


def begun(context: Context, view: DecisionView) -> list[MetadataRecord]:
    """Return the first states of partitions that have none, as far as a replica may lead them."""
    able = {one.broker_id for one in usable(view)}
    records: list[MetadataRecord] = []
    for topic_id, partition in context.without_state():
        replicas = context.assignments[view.image.names[topic_id]].replicas[partition]
        isr = tuple(one for one in replicas if one in able)
        if isr:
            records.append(PartitionRecord(topic_id, partition, replicas, isr, isr[0], 0, 0))
    return records
