"""Partitions as graphs: which flows between nodes are cut, for any shape of partition.

A cluster's network is a directed graph: an edge is a *flow*, the bytes that one node sends to
another, whoever dialled. Whole, every node reaches every other; a partition removes edges. A shape
states which, alone or with draws from the seed; the resulting edges are written down, so that a
replay cuts the same ones.
"""

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import permutations, product
from typing import Final

from fencepost.clusters.port import CLIENTS, OWN_ROLES, NodeName, NodeRoles
from fencepost.clusters.systems import kinds_of_node
from fencepost.history.failure import HarnessError
from fencepost.nemesis.targets import Scene, Target, resolve
from fencepost.nemesis.wire.rules import Flow


class Shape(StrEnum):
    """A partition by name, with the nodes drawn from the seed."""

    ONE = "one"
    """One node is cut off from all others."""
    HALVES = "halves"
    """Two halves, the larger one a majority."""
    MAJORITY_RING = "majority-ring"
    """Each node reaches a majority, and no two the same one. From five nodes on."""
    BRIDGE = "bridge"
    """Two halves that do not reach each other, and one node that reaches both."""


ALL: Final = "all"
"""The word for all nodes, where a shape is not drawn over the nodes of one role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """A side of a partition: nodes to be resolved, the clients, or both."""

    targets: tuple[Target, ...] = ()
    clients: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolate:
    """A cut around one party: the other nodes in question do not reach it, nor it them."""

    party: Party
    among: str = ALL
    """ALL, or the nodes of one role, whose other flows stay: "brokers"."""

    @property
    def concerns_clients(self) -> bool:
        """Return whether the party has clients in it; if not, none are cut off from brokers."""
        return self.party.clients


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """A cut into groups: each reaches itself alone; a node in no group reaches every node."""

    groups: tuple[Party, ...]

    @property
    def concerns_clients(self) -> bool:
        """Return whether the clients are in one of the groups."""
        return any(group.clients for group in self.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneWay:
    """A one-way cut: bytes from `sender` do not arrive at `receiver`; the other way is open."""

    sender: Party
    receiver: Party

    @property
    def concerns_clients(self) -> bool:
        """Return whether the clients are at either end."""
        return self.sender.clients or self.receiver.clients


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaped:
    """A shape by name, drawn over some of the nodes."""

    shape: Shape
    among: str = ALL
    """ALL, or the nodes of one role, whose other flows stay: "brokers"."""

    @property
    def concerns_clients(self) -> bool:
        """Return False: clients reach every broker in every shape."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Flows:
    """The flows themselves: every other form becomes one of these when it is performed."""

    flows: frozenset[Flow]

    @property
    def concerns_clients(self) -> bool:
        """Return whether the clients are at an end of one of the flows."""
        return any(CLIENTS in flow for flow in self.flows)


Cut = Isolate | Groups | OneWay | Shaped | Flows


def flows_of(cut: Cut, scene: Scene, draw: random.Random) -> frozenset[Flow]:
    """Return the flows that a partition cuts, now; raise HarnessError if it cannot be made."""
    match cut:
        case Flows(flows=flows):
            return flows
        case Isolate(party=party, among=among):
            inside = _members(party, scene, draw)
            outside = [node for node in _pool(among, scene) if node not in inside]
            return frozenset(_both_ways(inside, outside))
        case Groups(groups=groups):
            return _between([_members(group, scene, draw) for group in groups])
        case OneWay(sender=sender, receiver=receiver):
            senders, receivers = (_members(party, scene, draw) for party in (sender, receiver))
            return frozenset(flow for flow in product(senders, receivers) if flow[0] != flow[1])
        case Shaped(shape=shape, among=among):
            return _shaped(shape, _pool(among, scene), draw)


def cut_off(
    flows: Collection[Flow], nodes: Sequence[NodeName], roles: NodeRoles = OWN_ROLES
) -> frozenset[NodeName]:
    """Return the nodes that are not in the largest group whose members all reach each other.

    Ties go to the group with the most nodes that decide: where these are, the cluster goes on.
    """
    groups = sorted(joined_groups(flows, nodes), key=lambda g: (-len(g), -_rank(g, roles)))
    return frozenset(nodes) - groups[0]


def joined_groups(flows: Collection[Flow], nodes: Sequence[NodeName]) -> list[frozenset[NodeName]]:
    """Return the groups whose members all reach each other, be it over others.

    These are the strongly connected components of what is not cut; one that reaches another comes
    after it. Of nodes given in one order the groups come in one order.
    """
    # An eighth of a second, which only those pay who draw or make a partition.
    import networkx as nx  # noqa: PLC0415

    joined: nx.DiGraph[NodeName] = nx.DiGraph()
    joined.add_nodes_from(nodes)
    joined.add_edges_from(flow for flow in permutations(nodes, 2) if flow not in flows)
    return [frozenset(group) for group in nx.strongly_connected_components(joined)]


def _rank(group: Collection[NodeName], roles: NodeRoles) -> int:
    return sum(any(one.decides for one in kinds_of_node(node, roles)) for node in group)


def _members(party: Party, scene: Scene, draw: random.Random) -> list[NodeName]:
    nodes = [node for target in party.targets for node in resolve(target, scene, draw)]
    return list(dict.fromkeys([*nodes, *([CLIENTS] if party.clients else [])]))


def _between(groups: Sequence[Sequence[NodeName]]) -> frozenset[Flow]:
    twice = {node for one, other in permutations(groups, 2) for node in set(one) & set(other)}
    if twice:
        raise HarnessError(f"{', '.join(sorted(twice))} is in two groups of the partition")
    return frozenset(flow for one, other in permutations(groups, 2) for flow in product(one, other))


def _both_ways(ones: Collection[NodeName], others: Collection[NodeName]) -> list[Flow]:
    return [flow for one, other in product(ones, others) for flow in ((one, other), (other, one))]


def _pool(among: str, scene: Scene) -> Sequence[NodeName]:
    if among == ALL:
        return scene.nodes
    return scene.roles.among(scene.nodes, among.removesuffix("s"))


def _shaped(shape: Shape, pool: Sequence[NodeName], draw: random.Random) -> frozenset[Flow]:
    smallest = {Shape.ONE: 2, Shape.HALVES: 2, Shape.BRIDGE: 3, Shape.MAJORITY_RING: 5}[shape]
    if len(pool) < smallest:
        raise HarnessError(f"a {shape} needs {smallest} nodes or more, and there are {len(pool)}")
    order = draw.sample(list(pool), len(pool))
    match shape:
        case Shape.ONE:
            return frozenset(_both_ways(order[:1], order[1:]))
        case Shape.HALVES:
            return frozenset(_both_ways(order[: len(order) // 2], order[len(order) // 2 :]))
        case Shape.BRIDGE:
            middle = len(order) // 2
            return frozenset(_both_ways(order[:middle], order[middle + 1 :]))
        case Shape.MAJORITY_RING:
            return _majority_ring(order)


def _majority_ring(order: Sequence[NodeName]) -> frozenset[Flow]:
    """Cut all but the nearest neighbours on the ring: each node reaches a majority with itself."""
    count = len(order)
    reach = (count // 2 + 1) // 2
    return frozenset(
        (order[one], order[other])
        for one, other in permutations(range(count), 2)
        if min((one - other) % count, (other - one) % count) > reach
    )
