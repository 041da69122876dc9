"""Random partitions: the cuts that a mix draws from, and the nodes that each of them takes away.

A partition is drawn as one of the shapes that users name, over nodes of the cluster at hand; a
shape that it has too few nodes for is not among them. Beside the step come the nodes that it cuts
off from the rest, or else the ones it is about: they count against the budget.
"""

import random
from collections.abc import Callable, Sequence
from typing import Final

from clusters.kafka_port import Role
from clusters.port import NodeName
from nemesis.targets import NamedNodes, Scene
from nemesis.topology import (
    Among,
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

__all__ = ["drawn_cut"]

_RING_MIN: Final = 5
_BRIDGE_MIN: Final = 3


def drawn_cut(scene: Scene, draw: random.Random) -> tuple[Flows, tuple[NodeName, ...]]:
    """Draw a partition over the nodes of `scene`, and name the nodes that it takes away."""
    flows = flows_of(draw.choice(_candidates(scene))(draw), scene, draw)
    lost = cut_off(flows, scene.nodes) or frozenset(_few_of(flows))
    return Flows(flows=flows), tuple(sorted(lost))


def _candidates(scene: Scene) -> Sequence[Callable[[random.Random], Cut]]:
    brokers, controllers = scene.of_role(Role.BROKER), scene.of_role(Role.CONTROLLER)
    found: list[Callable[[random.Random], Cut]] = [
        lambda draw: Isolate(party=_party(draw.choice(brokers))),
        lambda draw: Groups(groups=(_party(draw.choice(brokers)), _party(*controllers))),
        lambda draw: OneWay(sender=_party(draw.choice(brokers)), receiver=_party(*controllers)),
        lambda draw: OneWay(sender=_party(*controllers), receiver=_party(draw.choice(brokers))),
    ]
    if len(brokers) > 1:
        found += [
            lambda draw: Groups(groups=tuple(map(_party, draw.sample(brokers, 2)))),
            lambda _draw: Shaped(shape=Shape.HALVES, among=Among.BROKERS),
        ]
    if len(brokers) >= _BRIDGE_MIN:
        found.append(lambda _draw: Shaped(shape=Shape.BRIDGE, among=Among.BROKERS))
    if len(brokers) >= _RING_MIN:
        found.append(lambda _draw: Shaped(shape=Shape.MAJORITY_RING, among=Among.BROKERS))
    if len(controllers) > 1:
        found += [
            lambda draw: Isolate(party=_party(draw.choice(controllers))),
            lambda _draw: Shaped(shape=Shape.ONE, among=Among.CONTROLLERS),
        ]
    return found


def _party(*nodes: NodeName) -> Party:
    return Party(targets=(NamedNodes(nodes=nodes),))


def _few_of(flows: frozenset[tuple[NodeName, NodeName]]) -> tuple[NodeName, ...]:
    """Of a cut that leaves everybody connected somehow: the node that most of it is about."""
    ends = sorted({end for flow in flows for end in flow})
    counts = {node: sum(node in flow for flow in flows) for node in ends}
    return (max(ends, key=lambda node: counts[node]),)
