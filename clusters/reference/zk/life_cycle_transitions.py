"""The state machine of a broker of this generation as one table.

The states are those of the KRaft generation: FENCED is a broker that is registered, and that the
controller does not hold for active (INITIAL and INACTIVE of document Z); RUNNING is ACTIVE,
PENDING_CONTROLLED_SHUTDOWN is STOPPING. Below the new inter-broker protocol a broker is active as
soon as it is registered, and loses nothing with its session.
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
    REGISTERED = "registered in ZooKeeper"
    REFUSED = "its id cannot be had"
    ACTIVATED = "controller says ACTIVE"
    INACTIVATED = "controller says INACTIVE"
    INCARNATION_REFUSED = "incarnation id refused"
    SILENCE = "controller silent for the broker-side time-out"
    SESSION_LOST = "session expired"
    STOPPED = "asked to stop"
    LET_GO = "leads nothing that another could lead"
    GIVEN_UP = "waited for too long to be let go"


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
    (_FENCED, Trigger.ACTIVATED): _RUNNING,
    (_FENCED, Trigger.SESSION_LOST): _REGISTERING,
    (_FENCED, Trigger.STOPPED): _DOWN,
    (_RUNNING, Trigger.INACTIVATED): _FENCED,
    (_RUNNING, Trigger.INCARNATION_REFUSED): _FENCED,
    (_RUNNING, Trigger.SILENCE): _FENCED,
    (_RUNNING, Trigger.SESSION_LOST): _REGISTERING,
    (_RUNNING, Trigger.REFUSED): _DOWN,
    (_RUNNING, Trigger.STOPPED): _LEAVING,
    (_LEAVING, Trigger.LET_GO): _DOWN,
    (_LEAVING, Trigger.GIVEN_UP): _DOWN,
    (_LEAVING, Trigger.INACTIVATED): _DOWN,
    (_LEAVING, Trigger.INCARNATION_REFUSED): _DOWN,
    (_LEAVING, Trigger.SILENCE): _DOWN,
    (_LEAVING, Trigger.SESSION_LOST): _DOWN,
    (_LEAVING, Trigger.REFUSED): _DOWN,
}
"""The transitions; anything else leaves the state as it is."""
