"""A voter is led through every transition of its table, by messages, time and its disk."""

from quorum_desk import Desk
from tours import tour

from fencepost.clusters.node_port.effects import TICK_NS
from fencepost.clusters.reference.nodes.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    VoteRequest,
    VoteResponse,
)
from fencepost.clusters.reference.nodes.quorum.transitions import (
    TRANSITIONS,
    VoterEvent,
    VoterState,
)

OTHER, THIRD = 1002, 1003
NEXT_EPOCH = {VoterEvent.HEARD_EPOCH, VoterEvent.HEARD_LEADER, VoterEvent.TIMED_OUT}
"""What a voter of this course hears or does in the next epoch alone."""


class Course:
    """A voter, and what the two others say to it."""

    def __init__(self) -> None:
        self.desk = Desk()

    def take(self, event: VoterEvent) -> None:
        """Have happen what the event stands for; a new epoch is one higher."""
        desk, epoch = self.desk, self.desk.part.epoch
        match event:
            case VoterEvent.HEARD_EPOCH:
                desk.give(EndQuorumEpochRequest(1, epoch + 1, OTHER, ()))
            case VoterEvent.HEARD_LEADER:
                desk.give(BeginQuorumEpochRequest(1, epoch + 1, OTHER))
            case VoterEvent.GRANTED:
                end = desk.part.log.end
                desk.give(VoteRequest(1, epoch, THIRD, epoch, end), source=THIRD)
                (answer,) = desk.sync()
                assert answer.granted
            case VoterEvent.TIMED_OUT:
                self.time_out(epoch)
            case VoterEvent.ELECTED:
                asked = next(one for one in desk.sync() if isinstance(one, VoteRequest))
                desk.give(VoteResponse(asked.correlation, OTHER, epoch, -1, granted=True))
            case VoterEvent.RESIGNED:
                desk.call("resign", desk.now)
            case VoterEvent.LEADER_RESIGNED:
                desk.give(EndQuorumEpochRequest(1, epoch, desk.part.leader_id, ()))

    def time_out(self, epoch: int) -> None:
        """Let time go by until the voter stands, in the next epoch."""
        for _ in range(1000):
            if self.desk.part.epoch > epoch:
                return
            self.desk.wait(TICK_NS)
        raise AssertionError(self.desk.part.state)


def test_a_voter_takes_every_transition() -> None:
    course = Course()
    taken = {}
    for old, event, new in tour(TRANSITIONS, VoterState.UNATTACHED):
        epoch = course.desk.part.epoch
        assert course.desk.part.state is old
        course.take(event)
        assert course.desk.part.state is new, (old, event)
        assert course.desk.part.epoch - epoch == (event in NEXT_EPOCH)
        taken[old, event] = new
    assert taken == TRANSITIONS
