"""Nodes join the cluster, and leave it for good.

- add: broker-4                  # a node that is no member: a spare one, or one that was removed
- remove: [broker-1]
"""

from dataclasses import dataclass

from fencepost.clusters.evolution import ChangesMembers
from fencepost.clusters.port import Cluster, NodeName
from fencepost.history.failure import SpecError
from fencepost.nemesis.verbs.administration import admin_verb, nodes_data, nodes_of
from fencepost.nemesis.verbs.predicted_state import Now, PredictedState
from fencepost.nemesis.verbs.step import Bounded


@dataclass(frozen=True, slots=True, kw_only=True)
class AddNodes(Bounded):
    """Take nodes that are no members into the cluster."""

    nodes: tuple[NodeName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveNodes(Bounded):
    """Take nodes out of the cluster for good: moved off, stopped, and no longer registered."""

    nodes: tuple[NodeName, ...]


def _add(cluster: Cluster, step: AddNodes) -> None:
    assert isinstance(cluster, ChangesMembers)
    for node in step.nodes:
        cluster.add_node(node, within_s=step.within_s)


def _remove(cluster: Cluster, step: RemoveNodes) -> None:
    assert isinstance(cluster, ChangesMembers)
    for node in step.nodes:
        cluster.remove_node(node, within_s=step.within_s)


def _follow_added(step: AddNodes, predicted: PredictedState) -> None:
    for node in step.nodes:
        if node in predicted.members:
            raise SpecError(("add",), f"{node} is a member already at this step")
        predicted.members.add(node)
        predicted.nodes[node] = Now.UP


def _follow_removed(step: RemoveNodes, predicted: PredictedState) -> None:
    for node in step.nodes:
        predicted.require_member(node, "remove")
        predicted.members.discard(node)
        predicted.nodes[node] = Now.DOWN


VERBS = (
    admin_verb(
        "add",
        ("remove: broker-1", "add: broker-1"),
        AddNodes,
        own=lambda written: {"nodes": nodes_of(written)},
        operand=lambda step: nodes_data(step.nodes),
        do=_add,
        ability=ChangesMembers,
        follow=_follow_added,
    ),
    admin_verb(
        "remove",
        ("remove: broker-1",),
        RemoveNodes,
        own=lambda written: {"nodes": nodes_of(written)},
        operand=lambda step: nodes_data(step.nodes),
        do=_remove,
        ability=ChangesMembers,
        follow=_follow_removed,
    ),
)
