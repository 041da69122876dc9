"""The states of a voter and what leads from one to another (KIP-595), as one table.

An epoch has at most one leader, and no voter leads twice in one epoch, also after a restart: one
that comes back having voted for itself waits, and stands in the next epoch.
"""

from enum import Enum
from typing import Final

__all__ = ["TRANSITIONS", "Event", "State"]


class State(Enum):
    """The state of a voter in its epoch."""

    UNATTACHED = "unattached"
    """It knows no leader, and has not voted since it came here."""
    VOTED = "voted"
    """It has given its vote, and waits for a leader."""
    CANDIDATE = "candidate"
    """It stands for election."""
    FOLLOWER = "follower"
    """It fetches from the leader."""
    LEADER = "leader"
    RESIGNED = "resigned"
    """It led in this epoch and will not again."""


class Event(Enum):
    """The events that move a voter."""

    HEARD_EPOCH = "heard of another epoch"
    HEARD_LEADER = "heard who leads"
    GRANTED = "granted a vote"
    TIMED_OUT = "heard nothing for too long"
    ELECTED = "has a majority of the votes"
    RESIGNED = "gave up to lead"
    LEADER_RESIGNED = "was told that the leader gave up"


TRANSITIONS: Final[dict[tuple[State, Event], State]] = {
    **{(state, Event.HEARD_EPOCH): State.UNATTACHED for state in State},
    **{(state, Event.HEARD_LEADER): State.FOLLOWER for state in State},
    (State.UNATTACHED, Event.GRANTED): State.VOTED,
    (State.VOTED, Event.GRANTED): State.VOTED,
    (State.UNATTACHED, Event.TIMED_OUT): State.CANDIDATE,
    (State.VOTED, Event.TIMED_OUT): State.CANDIDATE,
    (State.CANDIDATE, Event.TIMED_OUT): State.CANDIDATE,
    (State.FOLLOWER, Event.TIMED_OUT): State.CANDIDATE,
    (State.RESIGNED, Event.TIMED_OUT): State.CANDIDATE,
    (State.CANDIDATE, Event.ELECTED): State.LEADER,
    (State.LEADER, Event.RESIGNED): State.RESIGNED,
    (State.FOLLOWER, Event.LEADER_RESIGNED): State.UNATTACHED,
}
"""The state after an event; a pair that is not here does not happen."""
