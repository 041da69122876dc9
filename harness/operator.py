"""Does what an operator would do in the middle of a play. Each returns once its end was seen."""

from typing import assert_never

from clusters.abilities import Administers
from clusters.evolution import ChangesMembers, Finalises
from clusters.port import Cluster
from nemesis.steps import (
    AddNodes,
    Admin,
    CreateTopic,
    Finalise,
    MoveLeader,
    Reassign,
    RemoveNodes,
)

__all__ = ["ability_for", "administer"]


def ability_for(step: Admin) -> type:
    """The port that a cluster must offer for this step."""
    match step:
        case CreateTopic() | MoveLeader() | Reassign():
            return Administers
        case Finalise():
            return Finalises
        case AddNodes() | RemoveNodes():
            return ChangesMembers
    assert_never(step)


def administer(cluster: Cluster, step: Admin) -> None:
    """Do it. HarnessError with the cluster's words if it is refused, or not done in time."""
    match step:
        case Finalise(version=version, within_s=within_s):
            assert isinstance(cluster, Finalises)
            cluster.finalise(version, within_s=within_s)
        case AddNodes(nodes=nodes, within_s=within_s):
            assert isinstance(cluster, ChangesMembers)
            for node in nodes:
                cluster.add_node(node, within_s=within_s)
        case RemoveNodes(nodes=nodes, within_s=within_s):
            assert isinstance(cluster, ChangesMembers)
            for node in nodes:
                cluster.remove_node(node, within_s=within_s)
        case CreateTopic() | MoveLeader() | Reassign():
            assert isinstance(cluster, Administers)
            _of_topics(cluster, step)


def _of_topics(cluster: Administers, step: CreateTopic | MoveLeader | Reassign) -> None:
    match step:
        case CreateTopic(topic=topic, via=via, within_s=within_s):
            cluster.create_topic(topic, via=via, within_s=within_s)
        case MoveLeader(leaders=leaders, within_s=within_s):
            for key, leader in leaders.items():
                cluster.move_leader(key, leader, within_s=within_s)
        case Reassign(replicas=replicas, within_s=within_s):
            for key, wanted in replicas.items():
                cluster.reassign(key, wanted, within_s=within_s)
