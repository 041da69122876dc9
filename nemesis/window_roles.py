"""The parties of a drawn window: who leads, who follows, who stands by, who decides."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from clusters.kafka_port import Role, role_of
from clusters.port import OWN_ROLES, NodeName, NodeRoles


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRoles:
    """The parties, as they are when the play is drawn."""

    key: str
    leader: NodeName
    follower: NodeName
    third: NodeName | None
    controllers: tuple[NodeName, ...]


def draw_roles(
    draw: random.Random,
    key: str,
    replicas: Sequence[int],
    nodes: Sequence[NodeName],
    roles: NodeRoles = OWN_ROLES,
) -> WindowRoles:
    """Draw who is who around `key`, whose replicas are these brokers, the leader first."""
    leader, follower = replicas[0], draw.choice(replicas[1:])
    others = [n for n in nodes if role_of(n) is Role.BROKER and n not in _names(leader, follower)]
    return WindowRoles(
        key=key,
        leader=NodeName(f"broker-{leader}"),
        follower=NodeName(f"broker-{follower}"),
        third=draw.choice(others) if others else None,
        controllers=roles.among(nodes, Role.CONTROLLER),
    )


def _names(*numbers: int) -> tuple[NodeName, ...]:
    return tuple(NodeName(f"broker-{number}") for number in numbers)
