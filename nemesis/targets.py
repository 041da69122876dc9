"""The target of a step: named nodes, or a description resolved when the step is performed.

A description draws from the play's own random stream and looks at the metadata of that moment; the
nodes it resolved to are written into the performed play, so that a replay hits the same nodes.
"""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fencepost.clusters.port import OWN_ROLES, NodeName, NodeRole, NodeRoles
from fencepost.clusters.stage import Stage
from fencepost.clusters.systems import SYSTEMS, kinds_of_node
from fencepost.clusters.targets import DescribedTarget
from fencepost.history.failure import SpecError


class Share(StrEnum):
    """The share of the nodes of a role."""

    ONE = "one"
    MINORITY = "minority"
    MAJORITY = "majority"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedNodes:
    """A choice of named nodes."""

    nodes: tuple[NodeName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A number of nodes of a role, drawn from the seed."""

    share: Share
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ByRole:
    """A node by what it is to the system at that moment, in one of the system's own words."""

    role: DescribedTarget
    key: str = ""


Target = NamedNodes | Choice | ByRole


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The state of the system against which a description is resolved."""

    nodes: tuple[NodeName, ...]
    broker_ids: Mapping[NodeName, int]
    view: Any
    """The `clusters.port.SystemView` of the system; None: no node showed anything."""
    active_controller: NodeName | None
    down: frozenset[NodeName] = frozenset()
    """The nodes without a process by now; the view may show them yet."""
    roles: NodeRoles = OWN_ROLES

    @property
    def serving(self) -> list[NodeName]:
        """List the nodes that clients talk to."""
        return [node for node in self.nodes if any(one.serves_clients for one in self._kinds(node))]

    @property
    def deciding(self) -> list[NodeName]:
        """List the nodes of which a majority is needed for the cluster to go on."""
        return [node for node in self.nodes if any(one.decides for one in self._kinds(node))]

    def _kinds(self, node: NodeName) -> tuple[NodeRole, ...]:
        return kinds_of_node(node, self.roles)


_CHOICE = re.compile(r"(one|minority|majority|all)(?: of)? (\w+?)s?")


def parse_target(value: object, stage: Stage) -> Target:
    """Return the target that `value` describes; raise SpecError if no such node or key exists."""
    if isinstance(value, list):
        return NamedNodes(nodes=tuple(_node(item, stage) for item in value))
    text = str(value).strip()
    if (found := _CHOICE.fullmatch(text)) and found[2] in stage.node_roles.names(stage.nodes):
        return Choice(share=Share(found[1]), role=found[2])
    for role in SYSTEMS[stage.system].targets:
        if role.of_key and (key := text.removeprefix(f"{role.words} ")) != text:
            return ByRole(role=role, key=_key(key.strip(), keys=stage.keys))
        if text == role.words and not role.of_key:
            return ByRole(role=role)
    return NamedNodes(nodes=(_node(text, stage),))


def target_data(target: Target) -> object:
    """Return the target as a play writes it; `parse_target` reads it back."""
    match target:
        case NamedNodes(nodes=nodes):
            return str(nodes[0]) if len(nodes) == 1 else [str(node) for node in nodes]
        case Choice(share=share, role=role):
            return f"{share} {role}" if share == "one" else f"{share} {role}s"
        case ByRole(role=role, key=key):
            return f"{role.words} {key}" if key else role.words


def resolve(target: Target, scene: Scene, draw: random.Random) -> tuple[NodeName, ...]:
    """Return the nodes meant, now; raise VacantError if the system has no such node."""
    if isinstance(target, NamedNodes):
        return target.nodes
    if isinstance(target, Choice):
        peers = scene.roles.among(scene.nodes, target.role)
        return tuple(sorted(draw.sample(peers, _share_count(target.share, len(peers)))))
    return (target.role.find(scene, target.key, draw),)


def _share_count(share: Share, total: int) -> int:
    counts = {
        Share.ONE: 1,
        Share.MINORITY: max(1, (total - 1) // 2),
        Share.MAJORITY: total // 2 + 1,
        Share.ALL: total,
    }
    return min(total, counts[share])


def _node(value: object, stage: Stage) -> NodeName:
    for node in stage.nodes:
        if node == value:
            return node
    roles = "|".join(f"{role}s" for role in sorted(stage.node_roles.names(stage.nodes)))
    described = (
        f"'{role.words} KEY'" if role.of_key else f"'{role.words}'"
        for role in SYSTEMS[stage.system].targets
    )
    forms = (f"a node ({stage.nodes[-1]})", "a list of nodes", *described)
    raise SpecError(
        (),
        f"{value!r} is not a target here; nodes: {', '.join(stage.nodes)}; a target is "
        f"{', '.join(forms)}, or 'one|minority|majority|all {roles}'",
    )


def _key(text: str, *, keys: Sequence[str]) -> str:
    if text not in keys:
        raise SpecError((), f"no such partition: {text!r}; there are: {', '.join(keys)}")
    return text
