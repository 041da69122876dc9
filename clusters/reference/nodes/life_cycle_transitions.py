"""The broker's state machine (KIP-631) as one table: states, what moves them, and where to.

The states' numbers are those that heartbeats carry; there is no transition that is not here.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from fencepost.clusters.protocol.broker_states import BrokerState


class Trigger(Enum):
    """The triggers that move a broker from one state to another."""

    STARTED_CLEAN = "started after a clean stop, or for the first time"
    STARTED_UNCLEAN = "started after a crash"
    RECOVERED = "logs are recovered"
    REGISTERED = "registration accepted"
    REFUSED = "registration refused"
    UNFENCED = "controller says RUNNING"
    FENCED = "controller says FENCED"
    LEASE_OVER = "lease ran out"
    EPOCH_REFUSED = "broker epoch refused"
    STOPPED = "asked to stop"
    LET_GO = "controller lets it go"


_DOWN: Final = BrokerState.NOT_RUNNING
_REGISTERING: Final = BrokerState.REGISTERING
_RECOVERING: Final = BrokerState.RECOVERING_FROM_UNCLEAN_SHUTDOWN
_RUNNING: Final = BrokerState.RUNNING
_FENCED: Final = BrokerState.FENCED
_LEAVING: Final = BrokerState.PENDING_CONTROLLED_SHUTDOWN

TRANSITIONS: Final[Mapping[tuple[BrokerState, Trigger], BrokerState]] = {
    (_DOWN, Trigger.STARTED_CLEAN): _REGISTERING,
    (_DOWN, Trigger.STARTED_UNCLEAN): _RECOVERING,
    (_RECOVERING, Trigger.RECOVERED): _REGISTERING,
    (_RECOVERING, Trigger.STOPPED): _DOWN,
    (_REGISTERING, Trigger.REGISTERED): _FENCED,
    (_REGISTERING, Trigger.REFUSED): _DOWN,
    (_REGISTERING, Trigger.STOPPED): _DOWN,
    (_FENCED, Trigger.UNFENCED): _RUNNING,
    (_FENCED, Trigger.REFUSED): _DOWN,
    (_FENCED, Trigger.STOPPED): _DOWN,
    (_RUNNING, Trigger.FENCED): _FENCED,
    (_RUNNING, Trigger.LEASE_OVER): _FENCED,
    (_RUNNING, Trigger.EPOCH_REFUSED): _FENCED,
    (_RUNNING, Trigger.STOPPED): _LEAVING,
    (_LEAVING, Trigger.LET_GO): _DOWN,
    (_LEAVING, Trigger.FENCED): _DOWN,
    (_LEAVING, Trigger.LEASE_OVER): _DOWN,
    (_LEAVING, Trigger.EPOCH_REFUSED): _DOWN,
}
"""The transitions; anything else leaves the state as it is."""
