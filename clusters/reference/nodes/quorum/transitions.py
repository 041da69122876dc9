"""The states of a voter and what leads from one to another (KIP-595), as one table.

An epoch has at most one leader, and no voter leads twice in one epoch, also after a restart: one
that comes back having voted for itself waits, and stands in the next epoch.
"""

from enum import Enum
from typing import Final


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


class VoterEvent(Enum):
    """The events that move a voter."""

    HEARD_EPOCH = "heard of another epoch"
    HEARD_LEADER = "heard who leads"
    GRANTED = "granted a vote"
    TIMED_OUT = "heard nothing for too long"
    ELECTED = "has a majority of the votes"
    RESIGNED = "gave up to lead"
    LEADER_RESIGNED = "was told that the leader gave up"


TRANSITIONS: Final[dict[tuple[VoterState, VoterEvent], VoterState]] = {
    **{(state, VoterEvent.HEARD_EPOCH): VoterState.UNATTACHED for state in VoterState},
    **{(state, VoterEvent.HEARD_LEADER): VoterState.FOLLOWER for state in VoterState},
    (VoterState.UNATTACHED, VoterEvent.GRANTED): VoterState.VOTED,
    (VoterState.VOTED, VoterEvent.GRANTED): VoterState.VOTED,
    (VoterState.UNATTACHED, VoterEvent.TIMED_OUT): VoterState.CANDIDATE,
    (VoterState.VOTED, VoterEvent.TIMED_OUT): VoterState.CANDIDATE,
    (VoterState.CANDIDATE, VoterEvent.TIMED_OUT): VoterState.CANDIDATE,
    (VoterState.FOLLOWER, VoterEvent.TIMED_OUT): VoterState.CANDIDATE,
    (VoterState.RESIGNED, VoterEvent.TIMED_OUT): VoterState.CANDIDATE,
    (VoterState.CANDIDATE, VoterEvent.ELECTED): VoterState.LEADER,
    (VoterState.LEADER, VoterEvent.RESIGNED): VoterState.RESIGNED,
    (VoterState.FOLLOWER, VoterEvent.LEADER_RESIGNED): VoterState.UNATTACHED,
}
"""The state after an event; a pair that is not here does not happen."""
