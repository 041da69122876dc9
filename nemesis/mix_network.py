"""Random partitions and delays of links: what a mix draws from, and whom each of them takes away.

A partition is drawn as one of the shapes that users name, over nodes of the cluster at hand; a
shape that it has too few nodes for is not among them. Beside the step come the nodes that it cuts
off from the rest, or else the ones it is about: they count against the budget.
"""

import random
from collections.abc import Callable, Sequence
from typing import Final

from clusters.port import NodeName, Role, role_of
from nemesis.steps import Bandwidth, Lay, Means, Parties, Partition
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
from nemesis.wire.rules import Delay, Direction, Match

__all__ = ["drawn_bandwidth", "drawn_delay", "drawn_partition"]

_DELAY_MAX_MS: Final = (5.0, 20.0, 50.0, 200.0)
"""From a slow switch to a satellite, and far below every time-out."""
_BITS_PER_S: Final = (1_000_000, 5_000_000, 20_000_000)
"""From an old line out of town to a busy one; heartbeats pass through any of them in time."""
_RING_MIN: Final = 5
_BRIDGE_MIN: Final = 3


def drawn_partition(
    name: str, scene: Scene, draw: random.Random, *, by: Means | None = None
) -> tuple[Partition, tuple[NodeName, ...]]:
    """A partition drawn over the nodes of `scene`, and the nodes that it takes away."""
    cut = draw.choice(_candidates(scene))(draw)
    flows = flows_of(cut, scene, draw)
    lost = cut_off(flows, scene.nodes) or frozenset(_few_of(flows))
    return Partition(name=name, cut=Flows(flows=flows), by=by), tuple(sorted(lost))


def drawn_bandwidth(
    name: str, scene: Scene, draw: random.Random
) -> tuple[Bandwidth, tuple[NodeName, ...]]:
    """A bound on what one broker sends, and that broker: it may fall behind."""
    nodes = (draw.choice(_of(Role.BROKER, scene)),)
    rate = draw.choice(_BITS_PER_S)
    return Bandwidth(name=name, target=NamedNodes(nodes=nodes), bits_per_s=rate), nodes


def drawn_delay(name: str, scene: Scene, draw: random.Random) -> Lay:
    """Delays on the links that one node, or a whole role, dials, in one direction."""
    node = draw.choice(_of(Role.BROKER, scene))
    sources = draw.choice([(node,), tuple(_of(Role.BROKER, scene))])
    low, high = sorted(draw.choices(_DELAY_MAX_MS, k=2))
    return Lay(
        name=name,
        action=Delay(min_ms=low / 5, max_ms=high),
        match=Match(direction=draw.choice((Direction.REQUEST, Direction.RESPONSE))),
        source=Parties(target=NamedNodes(nodes=sources)),
    )


def _candidates(scene: Scene) -> Sequence[Callable[[random.Random], Cut]]:
    brokers, controllers = _of(Role.BROKER, scene), _of(Role.CONTROLLER, scene)
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


def _of(role: Role, scene: Scene) -> list[NodeName]:
    return [node for node in scene.nodes if role_of(node) is role]


def _party(*nodes: NodeName) -> Party:
    return Party(targets=(NamedNodes(nodes=nodes),))


def _few_of(flows: frozenset[tuple[NodeName, NodeName]]) -> tuple[NodeName, ...]:
    """Of a cut that leaves everybody connected somehow: the node that most of it is about."""
    ends = sorted({end for flow in flows for end in flow})
    counts = {node: sum(node in flow for flow in flows) for node in ends}
    return (max(ends, key=lambda node: counts[node]),)
