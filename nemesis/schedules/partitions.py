"""Random partitions: the cuts that a mix draws from, and the nodes that each of them takes away.

A partition is drawn as one of the shapes that users name, over nodes of the cluster at hand; a
shape that needs more nodes than the cluster has is left out.
"""

import random
from typing import Final

from fencepost.clusters.port import NodeName
from fencepost.clusters.systems import ROLES
from fencepost.nemesis.schedules.deeds import CutForm, CutOff
from fencepost.nemesis.schedules.draws import Among, EnoughNodes
from fencepost.nemesis.schedules.schedule import NamedPart, OneOf, Option, Pick, PickEach, then
from fencepost.nemesis.schedules.scope import DECIDING, ONE, SERVING, Scope
from fencepost.nemesis.targets import Scene
from fencepost.nemesis.topology import Flows, Shape, cut_off
from fencepost.nemesis.verbs.partition import Means, Partition

_OTHER: Final = "another node"
_RING_MIN: Final = 5
_BRIDGE_MIN: Final = 3
_OTHERS: Final = Among((SERVING,), but_not=(DECIDING,))
"""A node that does both is cut from those that decide by the cuts among these."""


def _serving(count_min: int) -> EnoughNodes:
    return EnoughNodes(Among((SERVING,)), count_min)


def partition(name: str = "", *, numbered: bool = False, by: Means | None = None) -> NamedPart:
    """Return the schedule of one partition over the nodes of a scene."""

    def cut(form: CutForm | Shape, *parties: str) -> CutOff:
        return CutOff(form, parties, name, numbered=numbered, by=by)

    two, other = _serving(2), Pick(ONE, _OTHERS)
    there = EnoughNodes(_OTHERS)
    peers = {role: Among((f"{role}s",)) for role, kind in ROLES.items() if kind.decides}
    drawn = OneOf(
        (
            Option(then(Pick(ONE, Among((SERVING,))), cut(CutForm.ISOLATED, ONE))),
            Option(then(other, cut(CutForm.APART, ONE, DECIDING)), given=there),
            Option(then(other, cut(CutForm.ONE_WAY, ONE, DECIDING)), given=there),
            Option(then(other, cut(CutForm.ONE_WAY, DECIDING, ONE)), given=there),
            Option(
                then(PickEach((ONE, _OTHER), Among((SERVING,))), cut(CutForm.APART, ONE, _OTHER)),
                given=two,
            ),
            Option(cut(Shape.HALVES, SERVING), given=two),
            Option(cut(Shape.BRIDGE, SERVING), given=_serving(_BRIDGE_MIN)),
            Option(cut(Shape.MAJORITY_RING, SERVING), given=_serving(_RING_MIN)),
            *(
                Option(part, given=EnoughNodes(among, 2))
                for role, among in peers.items()
                for part in (
                    then(Pick(ONE, among), cut(CutForm.ISOLATED, ONE)),
                    cut(Shape.ONE, f"{role}s"),
                )
            ),
        )
    )
    return NamedPart("partition", drawn)


def nodes_lost(cut: Partition, scene: Scene) -> tuple[NodeName, ...]:
    """Return the nodes that a partition cuts off from the rest, or else those that it is about."""
    assert isinstance(cut.cut, Flows)
    flows = cut.cut.flows
    return tuple(sorted(cut_off(flows, scene.nodes, scene.roles) or _few_of(flows)))


def drawn_cut(scene: Scene, draw: random.Random) -> tuple[Flows, tuple[NodeName, ...]]:
    """Draw a partition over the nodes of `scene`, and name the nodes that it takes away."""
    (cut,) = partition("drawn").unfold(Scope.of_scene(draw, scene))
    assert isinstance(cut, Partition)
    assert isinstance(cut.cut, Flows)
    return cut.cut, nodes_lost(cut, scene)


def _few_of(flows: frozenset[tuple[NodeName, NodeName]]) -> tuple[NodeName, ...]:
    """Return the node with the most cut flows, of a cut that leaves all nodes connected somehow."""
    ends = sorted({end for flow in flows for end in flow})
    counts = {node: sum(node in flow for flow in flows) for node in ends}
    return (max(ends, key=lambda node: counts[node]),)
