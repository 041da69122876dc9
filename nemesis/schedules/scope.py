"""What a schedule knows while it unfolds: who is who, what was drawn, what it has broken so far.

A schedule names nodes by what they are to it: the leader, a follower, the one that it struck last.
Such a *party* is one node or several. Some are there from the start; a schedule names others as it
goes. `DOWN` is whatever it has struck and not mended.
"""

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from fencepost.clusters.port import OWN_ROLES, NodeName, NodeRoles, role_name
from fencepost.clusters.systems import ROLES
from fencepost.nemesis.targets import Scene
from fencepost.nemesis.verbs.step import OnNodes

NODES: Final = "nodes"
BROKERS: Final = "brokers"
CONTROLLERS: Final = "controllers"
ENSEMBLE: Final = "zookeepers"
SERVING: Final = "serving nodes"
DECIDING: Final = "deciding nodes"
REPLICAS: Final = "replicas"
FOLLOWERS: Final = "followers"
LEADER: Final = "leader"
CONTROLLER: Final = "controller"
"""A controller; of a cluster on ZooKeeper the broker that is it."""
DOWN: Final = "down"
FOLLOWER: Final = "follower"
THIRD: Final = "third broker"
STRUCK: Final = "struck node"
ONE: Final = "the node"
TARGET: Final = "target"


@dataclass(slots=True, kw_only=True)
class Scope:
    """The state of one unfolding. Every choice comes from `draw`, in the order of the schedule."""

    draw: random.Random
    parties: dict[str, tuple[NodeName, ...]] = field(default_factory=dict)
    key: str = ""
    """The partition that it is about, if it is about one."""
    scene: Scene | None = None
    """With a scene, the flows of a partition are resolved at once, and not when it is performed."""
    values: dict[str, object] = field(default_factory=dict)
    """What `Let` has drawn."""
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Bounds that a scenario states, by name."""
    faults: Collection[str] = ()
    """The kinds of fault of the mix that it is a part of."""
    label: str = ""
    """The name that rules, partitions and snapshots of no name of their own get."""
    down: dict[NodeName, type[OnNodes]] = field(default_factory=dict)
    """The nodes that were struck, each with the step that did it."""
    laid: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    cut_count: int = 0
    now_s: float = 0.0
    """The sum of all waits."""

    @classmethod
    def around(
        cls,
        draw: random.Random,
        *,
        key: str,
        replicas: Sequence[int],
        nodes: Sequence[NodeName] = (),
        roles: NodeRoles = OWN_ROLES,
        controller: NodeName | None = None,
    ) -> Self:
        """Return a scope around `key`, whose replicas are these broker numbers, the leader first.

        `controller`: the node that is it now; None: the first of this role.
        """
        members = tuple(NodeName(f"broker-{number}") for number in replicas)
        parties = _of_roles(nodes, roles)
        first = parties.get(CONTROLLERS, ())[:1] if controller is None else (controller,)
        around = {REPLICAS: members, LEADER: members[:1], FOLLOWERS: members[1:], CONTROLLER: first}
        return cls(draw=draw, key=key, parties={**parties, **around})

    @classmethod
    def of_scene(
        cls,
        draw: random.Random,
        scene: Scene,
        *,
        nodes: Sequence[NodeName] | None = None,
        label: str = "",
    ) -> Self:
        """Return a scope over the nodes of a scene, or over `nodes` and with its network."""
        among = scene.nodes if nodes is None else nodes
        ends = {SERVING: tuple(scene.serving), DECIDING: tuple(scene.deciding)}
        parties = {**_of_roles(among, scene.roles), **ends}
        return cls(draw=draw, scene=scene, parties=parties, label=label)

    def party(self, name: str) -> tuple[NodeName, ...]:
        """Return the nodes of this party; none if nobody is called so."""
        return tuple(self.down) if name == DOWN else self.parties.get(name, ())

    def node(self, name: str) -> NodeName:
        """Return the one node of this party."""
        (node,) = self.party(name)
        return node

    def number(self, name: str) -> int:
        """Return the number in the name of the one node of this party."""
        return int(self.node(name).rpartition("-")[2])

    def role_of(self, name: str) -> str:
        """Return the plural of the role of a party's nodes."""
        role = name.removesuffix("s")
        return name if role in ROLES else f"{role_name(self.party(name)[0])}s"


def _of_roles(nodes: Sequence[NodeName], roles: NodeRoles) -> dict[str, tuple[NodeName, ...]]:
    of_roles = {f"{role}s": roles.among(nodes, role) for role in roles.names(nodes)}
    return {NODES: tuple(nodes), **of_roles}
