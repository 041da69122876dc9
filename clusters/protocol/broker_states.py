"""The states of a broker (K07), with the numbers that heartbeats carry."""

from enum import IntEnum


class BrokerState(IntEnum):
    """The states of a broker's life. There is no 5."""

    NOT_RUNNING = 0
    REGISTERING = 1
    RECOVERING_FROM_UNCLEAN_SHUTDOWN = 2
    RUNNING = 3
    FENCED = 4
    PENDING_CONTROLLED_SHUTDOWN = 6
