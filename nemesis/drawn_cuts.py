"""Random partitions: the cuts that a mix draws from, and the nodes that each of them takes away.

A partition is drawn as one of the shapes that users name, over nodes of the cluster at hand; a
shape that needs more nodes than the cluster has is left out. With the step come the nodes that it
cuts off from the rest, or else the nodes that it is about: they count against the budget.
"""

import random
from collections.abc import Callable, Sequence
from typing import Final

from clusters.port import NodeName, role_name
from clusters.systems import ROLES
from nemesis.targets import NamedNodes, Scene
from nemesis.topology import (
    Cut,
    Flows,
    Groups,
    Isolate,
    OneWay,
    Party,
    Shape,
    Shaped,
    cut_off,
    flows_of,
)

_RING_MIN: Final = 5
_BRIDGE_MIN: Final = 3


def drawn_cut(scene: Scene, draw: random.Random) -> tuple[Flows, tuple[NodeName, ...]]:
    """Draw a partition over the nodes of `scene`, and name the nodes that it takes away."""
    flows = flows_of(draw.choice(_candidates(scene))(draw), scene, draw)
    lost = cut_off(flows, scene.nodes, scene.roles) or frozenset(_few_of(flows))
    return Flows(flows=flows), tuple(sorted(lost))


def _candidates(scene: Scene) -> Sequence[Callable[[random.Random], Cut]]:
    serving, deciding = scene.serving, scene.deciding
    found: list[Callable[[random.Random], Cut]] = [
        lambda draw: Isolate(party=_party(draw.choice(serving))),
    ]
    # A node that does both is cut from those that decide by the cuts among these.
    others = [node for node in serving if node not in deciding]
    if others:
        found += [
            lambda draw: Groups(groups=(_party(draw.choice(others)), _party(*deciding))),
            lambda draw: OneWay(sender=_party(draw.choice(others)), receiver=_party(*deciding)),
            lambda draw: OneWay(sender=_party(*deciding), receiver=_party(draw.choice(others))),
        ]
    if len(serving) > 1:
        found += [
            lambda draw: Groups(groups=tuple(map(_party, draw.sample(serving, 2)))),
            lambda _draw: Shaped(shape=Shape.HALVES, among=_role_of(serving)),
        ]
    if len(serving) >= _BRIDGE_MIN:
        found.append(lambda _draw: Shaped(shape=Shape.BRIDGE, among=_role_of(serving)))
    if len(serving) >= _RING_MIN:
        found.append(lambda _draw: Shaped(shape=Shape.MAJORITY_RING, among=_role_of(serving)))
    for role in scene.roles.names(deciding):
        if ROLES[role].decides:
            found += _among_peers(role, scene.roles.among(deciding, role))
    return found


def _among_peers(role: str, deciding: Sequence[NodeName]) -> list[Callable[[random.Random], Cut]]:
    """Return the cuts of one from the others; none if there are no others of its role."""
    if len(deciding) == 1:
        return []
    return [
        lambda draw: Isolate(party=_party(draw.choice(deciding))),
        lambda _draw: Shaped(shape=Shape.ONE, among=f"{role}s"),
    ]


def _role_of(serving: Sequence[NodeName]) -> str:
    """Return the plural of the role for which they are named."""
    return f"{role_name(serving[0])}s"


def _party(*nodes: NodeName) -> Party:
    return Party(targets=(NamedNodes(nodes=nodes),))


def _few_of(flows: frozenset[tuple[NodeName, NodeName]]) -> tuple[NodeName, ...]:
    """Return the node with the most cut flows, of a cut that leaves all nodes connected somehow."""
    ends = sorted({end for flow in flows for end in flow})
    counts = {node: sum(node in flow for flow in flows) for node in ends}
    return (max(ends, key=lambda node: counts[node]),)
