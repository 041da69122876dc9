"""The states that the controller keeps of brokers (Z02)."""

from enum import IntEnum


class ControlledState(IntEnum):
    """The state of a broker, as heartbeats name it."""

    INITIAL = 0
    """The broker has not reached the controller yet."""
    INACTIVE = 1
    """It is left out of the metadata, and treated as one that is absent."""
    ACTIVE = 2
    STOPPING = 3
    """It serves, while its leaderships move to others."""
