"""The wishes of heartbeats, and what becomes of the broker: one table.

Source: KIP-631, the broker's state machine; Kafka's `BrokerHeartbeatManager`,
`calculateNextBrokerState`.
"""

from enum import Enum
from typing import Final

from clusters.reference.nodes.image import Registration
from clusters.reference.nodes.states import BrokerState

__all__ = ["HeartbeatDecision", "state_of", "step_for"]


class HeartbeatDecision(Enum):
    """The decision that the controller has to make for a heartbeat."""

    NOTHING = "nothing"
    UNFENCE = "unfence"
    """If it has caught up."""
    FENCE = "fence"
    LEAVE = "leave"
    """Its controlled shutdown begins."""
    LET_GO = "let go"
    """Fence it, once it leads nothing and the others know."""


_NOT_RUNNING: Final = BrokerState.NOT_RUNNING
_RUNNING: Final = BrokerState.RUNNING
_FENCED: Final = BrokerState.FENCED
_LEAVING: Final = BrokerState.PENDING_CONTROLLED_SHUTDOWN

_STEPS: Final[dict[tuple[int, int], HeartbeatDecision]] = {
    (_FENCED, _RUNNING): HeartbeatDecision.UNFENCE,
    (_FENCED, _FENCED): HeartbeatDecision.NOTHING,
    (_FENCED, _LEAVING): HeartbeatDecision.NOTHING,
    (_RUNNING, _RUNNING): HeartbeatDecision.NOTHING,
    (_RUNNING, _FENCED): HeartbeatDecision.FENCE,
    (_RUNNING, _LEAVING): HeartbeatDecision.LEAVE,
    (_LEAVING, _RUNNING): HeartbeatDecision.LET_GO,
    (_LEAVING, _FENCED): HeartbeatDecision.LET_GO,
    (_LEAVING, _LEAVING): HeartbeatDecision.LET_GO,
}
"""The steps by (the broker's state, the state it wants).

A broker that is let go stays so until it registers anew.
"""


def state_of(registration: Registration) -> BrokerState:
    """The state that a registration stands for."""
    if registration.in_controlled_shutdown:
        return _NOT_RUNNING if registration.fenced else _LEAVING
    return _FENCED if registration.fenced else _RUNNING


def step_for(registration: Registration, target_state: int) -> HeartbeatDecision:
    """Return what a heartbeat with this wish asks for."""
    return _STEPS.get((state_of(registration), target_state), HeartbeatDecision.NOTHING)
