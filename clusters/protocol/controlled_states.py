"""Numbers of the draft "Controller heartbeats": the states of brokers (Z02), and its error."""

from enum import IntEnum
from typing import Final

INVALID_INCARNATION_ID: Final = 1_000
"""The code of the error by that name, which Kafka does not have."""


class ControlledState(IntEnum):
    """The state of a broker, as heartbeats name it."""

    INITIAL = 0
    """The broker has not reached the controller yet."""
    INACTIVE = 1
    """It is left out of the metadata, and treated as one that is absent."""
    ACTIVE = 2
    STOPPING = 3
    """It serves, while its leaderships move to others."""
