"""The states of a voter and what leads from one to another (KIP-595), as one table.

An epoch has at most one leader, and no voter leads twice in one epoch, also after a restart: one
that comes back having voted for itself waits, and stands in the next epoch.
"""

from enum import Enum
from typing import Final

__all__ = ["TRANSITIONS", "Event", "VoterState"]


class VoterState(Enum):
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


TRANSITIONS: Final[dict[tuple[VoterState, Event], VoterState]] = {
    **{(state, Event.HEARD_EPOCH): VoterState.UNATTACHED for state in VoterState},
    **{(state, Event.HEARD_LEADER): VoterState.FOLLOWER for state in VoterState},
    (VoterState.UNATTACHED, Event.GRANTED): VoterState.VOTED,
    (VoterState.VOTED, Event.GRANTED): VoterState.VOTED,
    (VoterState.UNATTACHED, Event.TIMED_OUT): VoterState.CANDIDATE,
    (VoterState.VOTED, Event.TIMED_OUT): VoterState.CANDIDATE,
    (VoterState.CANDIDATE, Event.TIMED_OUT): VoterState.CANDIDATE,
    (VoterState.FOLLOWER, Event.TIMED_OUT): VoterState.CANDIDATE,
    (VoterState.RESIGNED, Event.TIMED_OUT): VoterState.CANDIDATE,
    (VoterState.CANDIDATE, Event.ELECTED): VoterState.LEADER,
    (VoterState.LEADER, Event.RESIGNED): VoterState.RESIGNED,
    (VoterState.FOLLOWER, Event.LEADER_RESIGNED): VoterState.UNATTACHED,
}
"""The state after an event; a pair that is not here does not happen."""
