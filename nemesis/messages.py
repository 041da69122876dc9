"""The messages that random faults wait for: which there are, how often each, and who sends it.

A mix is not told which message matters. The ISR is where most windows are, so that what changes it
comes most often; a message that only a quorum of several controllers sends needs one.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from fencepost.clusters.kafka_port import Role
from fencepost.clusters.port import OWN_ROLES, NodeName, NodeRoles

_QUORUM_MIN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnMessage:
    """A message of Kafka's, as random faults draw it."""

    weight: int
    sender: Role
    """The role of the nodes that send it."""
    to_controller: bool = False
    """It goes to the active controller: where that is a broker, its own go over no link."""
    controllers_min: int = 0
    """The number of controllers that a cluster has in which it is sent; those on ZooKeeper: 0."""


MESSAGES: Final[Mapping[str, DrawnMessage]] = {
    "AlterPartition": DrawnMessage(weight=8, sender=Role.BROKER, to_controller=True),
    "BrokerRegistration": DrawnMessage(
        weight=2, sender=Role.BROKER, to_controller=True, controllers_min=1
    ),
    "BrokerHeartbeat": DrawnMessage(
        weight=1, sender=Role.BROKER, to_controller=True, controllers_min=1
    ),
    "Fetch": DrawnMessage(weight=2, sender=Role.BROKER),
    **dict.fromkeys(
        ("Vote", "BeginQuorumEpoch", "EndQuorumEpoch"),
        DrawnMessage(weight=1, sender=Role.CONTROLLER, controllers_min=_QUORUM_MIN),
    ),
}
"""The messages by Kafka's names."""


def drawn_message(
    draw: Random,
    *,
    nodes: Sequence[NodeName],
    roles: NodeRoles = OWN_ROLES,
    among: Collection[str] = (),
) -> str | None:
    """Draw one that these nodes can send; `among`: one of these. None if they send none of them."""
    sent = sent_by(nodes, roles)
    found = {name: MESSAGES[name].weight for name in sent if not among or name in among}
    return draw.choices(list(found), weights=list(found.values()))[0] if found else None


def sent_by(nodes: Sequence[NodeName], roles: NodeRoles = OWN_ROLES) -> tuple[str, ...]:
    """Return the messages that these nodes can send, in the order of MESSAGES."""
    controllers = len(roles.among(nodes, Role.CONTROLLER))
    return tuple(name for name, one in MESSAGES.items() if controllers >= one.controllers_min)
