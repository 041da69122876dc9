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

from clusters.kafka_port import ClusterView
from clusters.port import NodeName, role_name
from clusters.systems import kind_of_node
from history.failure import HarnessError, SpecError

__all__ = [
    "ByRole",
    "Choice",
    "NamedNodes",
    "NotNowError",
    "RoleOf",
    "Scene",
    "Share",
    "Target",
    "parse_target",
    "resolve",
    "target_data",
]


class Share(StrEnum):
    """The share of the nodes of a role."""

    ONE = "one"
    MINORITY = "minority"
    MAJORITY = "majority"
    ALL = "all"


class RoleOf(StrEnum):
    """A node by what it is to the cluster at that moment."""

    LEADER = "leader of"
    ISR_FOLLOWER = "isr follower of"
    ACTIVE_CONTROLLER = "active controller"


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
    """The node that leads a key, follows it in the ISR, or is the active controller."""

    role: RoleOf
    key: str | None = None


Target = NamedNodes | Choice | ByRole


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The state of the system against which a description is resolved."""

    nodes: tuple[NodeName, ...]
    broker_ids: Mapping[NodeName, int]
    view: Any
    """The `clusters.port.View` of the system; None: no node showed anything."""
    active_controller: NodeName | None

    @property
    def serving(self) -> list[NodeName]:
        """List the nodes that clients talk to."""
        return [node for node in self.nodes if kind_of_node(node).serves_clients]

    @property
    def deciding(self) -> list[NodeName]:
        """List the nodes of which a majority is needed for the cluster to go on."""
        return [node for node in self.nodes if kind_of_node(node).decides]


_FORMS = (
    "a node ({node}), a list of nodes, 'leader of KEY', 'isr follower of KEY', "
    "'active controller', or 'one|minority|majority|all {roles}'"
)
_CHOICE = re.compile(r"(one|minority|majority|all)(?: of)? (\w+?)s?")
_BY_KEY = re.compile(r"(leader of|isr follower of) (\S+)")


def parse_target(value: object, *, nodes: Sequence[NodeName], keys: Sequence[str]) -> Target:
    """Return the target that `value` describes; raise SpecError if no such node or key exists."""
    if isinstance(value, list):
        return NamedNodes(nodes=tuple(_node(item, nodes=nodes) for item in value))
    text = str(value).strip()
    if (found := _CHOICE.fullmatch(text)) and found[2] in map(role_name, nodes):
        return Choice(share=Share(found[1]), role=found[2])
    if found := _BY_KEY.fullmatch(text):
        return ByRole(role=RoleOf(found[1]), key=_key(found[2], keys=keys))
    if text == RoleOf.ACTIVE_CONTROLLER:
        return ByRole(role=RoleOf.ACTIVE_CONTROLLER)
    return NamedNodes(nodes=(_node(text, nodes=nodes),))


def target_data(target: Target) -> object:
    """Return the target as a play writes it; `parse_target` reads it back."""
    match target:
        case NamedNodes(nodes=nodes):
            return str(nodes[0]) if len(nodes) == 1 else [str(node) for node in nodes]
        case Choice(share=share, role=role):
            return f"{share} {role}" if share == "one" else f"{share} {role}s"
        case ByRole(role=role, key=key):
            return f"{role} {key}" if key else str(role)


class NotNowError(HarnessError):
    """A step cannot be done at this moment, but could be at another."""


def resolve(target: Target, scene: Scene, draw: random.Random) -> tuple[NodeName, ...]:
    """Return the nodes meant, now; raise NotNowError if the cluster has no such node."""
    if isinstance(target, NamedNodes):
        return target.nodes
    if isinstance(target, Choice):
        peers = [node for node in scene.nodes if role_name(node) == target.role]
        return tuple(sorted(draw.sample(peers, _share_count(target.share, len(peers)))))
    if target.role is RoleOf.ACTIVE_CONTROLLER:
        return (_known(scene.active_controller, "no controller says that it is active"),)
    return (_replica(target, scene, draw),)


def _share_count(share: Share, total: int) -> int:
    counts = {
        Share.ONE: 1,
        Share.MINORITY: max(1, (total - 1) // 2),
        Share.MAJORITY: total // 2 + 1,
        Share.ALL: total,
    }
    return min(total, counts[share])


def _replica(target: ByRole, scene: Scene, draw: random.Random) -> NodeName:
    shown: ClusterView | None = scene.view
    partition = shown.partitions.get(target.key or "") if shown else None
    if partition is None:
        raise NotNowError(f"{target.role} {target.key}: no broker told its metadata just now")
    if target.role is RoleOf.LEADER:
        candidates = [partition.leader] if partition.leader is not None else []
    else:
        candidates = [broker for broker in partition.isr if broker != partition.leader]
    by_id = {broker_id: node for node, broker_id in scene.broker_ids.items()}
    if not candidates:
        raise NotNowError(f"{target.role} {target.key}: there is none (isr {partition.isr})")
    return by_id[draw.choice(candidates)]


def _known(node: NodeName | None, otherwise: str) -> NodeName:
    if node is None:
        raise NotNowError(otherwise)
    return node


def _node(value: object, *, nodes: Sequence[NodeName]) -> NodeName:
    for node in nodes:
        if node == value:
            return node
    roles = "|".join(f"{role}s" for role in sorted(set(map(role_name, nodes))))
    forms = _FORMS.format(node=nodes[-1], roles=roles)
    raise SpecError(
        (), f"{value!r} is no target here; nodes: {', '.join(nodes)}; a target is {forms}"
    )


def _key(text: str, *, keys: Sequence[str]) -> str:
    if text not in keys:
        raise SpecError((), f"no such partition: {text!r}; there are: {', '.join(keys)}")
    return text
