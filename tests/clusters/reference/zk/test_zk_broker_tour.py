"""A broker of this generation is led through every transition of its table."""

from tours import tour

from fencepost.clusters.node_port.effects import SEND, Effects
from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.protocol.controlled_states import ControlledState
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.zk.configuration import ZkConfiguration
from fencepost.clusters.reference.zk.life_cycle import ZkLifeCycle
from fencepost.clusters.reference.zk.life_cycle_transitions import TRANSITIONS, Trigger
from fencepost.clusters.reference.zk.messages import (
    MetadataHeartbeatRequest,
    MetadataHeartbeatResponse,
)
from fencepost.clusters.reference.zk.rules import ZkRules
from fencepost.clusters.reference.zk.situation import ZkSituation

CONTROLLER = 2


class Rest:
    """The rest of the broker: whether it leads, as a test wants it."""

    leads_for_others = False

    def ended(self, reason: str, effects: Effects) -> None:
        pass


class Course:
    """A broker, and the one controller that it hears of."""

    def __init__(self) -> None:
        self.now = 0
        self.begin()

    def begin(self) -> None:
        """Have a process that has not started yet."""
        self.configuration = ZkConfiguration(
            node_id=1, is_controller=False, voters=(), cluster_id="c"
        )
        situation = ZkSituation(self.configuration, ZkRules())
        situation.controller_id = CONTROLLER
        self.rest = Rest()
        self.life = ZkLifeCycle(situation, self.rest)
        self.effects: Effects = []

    def take(self, trigger: Trigger) -> None:
        """Have happen what the trigger stands for."""
        life, effects = self.life, self.effects
        match trigger:
            case Trigger.STARTED_CLEAN | Trigger.STARTED_UNCLEAN:
                self.begin()
                unclean = trigger is Trigger.STARTED_UNCLEAN
                self.life.start(is_unclean=unclean, effects=self.effects)
            case Trigger.RECOVERED:
                life.recovered(effects)
            case Trigger.REGISTERED:
                life.registered(self.now, effects)
            case Trigger.REFUSED:
                life.refused("", effects)
            case Trigger.ACTIVATED:
                self.answer(ControlledState.ACTIVE)
            case Trigger.INACTIVATED:
                self.answer(ControlledState.INACTIVE)
            case Trigger.INCARNATION_REFUSED:
                self.answer(ControlledState.INITIAL, Error.INVALID_INCARNATION_ID)
            case Trigger.SILENCE:
                self.now += self.configuration.broker_side_timeout_ns
                life.tick(self.now, effects)
            case Trigger.SESSION_LOST:
                life.session_lost(effects)
            case Trigger.STOPPED:
                life.stop(self.now, effects)
            case Trigger.LET_GO:
                self.answer(ControlledState.STOPPING)
            case Trigger.GIVEN_UP:
                self.outwait()

    def answer(self, says: ControlledState, error: Error = Error.NONE) -> None:
        """Answer the next heartbeat; time goes by until it is sent."""
        del self.effects[:]
        while not (asked := [one[2] for one in self.effects if one[0] == SEND]):
            self.now += 10 * MS
            self.life.tick(self.now, self.effects)
        assert isinstance(asked[0], MetadataHeartbeatRequest)
        heard = MetadataHeartbeatResponse(asked[0].correlation, error, None, says)
        self.life.heard(self.now, heard, self.effects)

    def outwait(self) -> None:
        """Have the controller answer for as long as the broker waits, and never let it go."""
        self.rest.leads_for_others = True
        begun = self.now
        while self.now < begun + self.configuration.request_timeout_ns:
            assert self.life.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
            self.answer(ControlledState.STOPPING)
            self.now += 100 * MS
        self.life.tick(self.now, self.effects)


def test_a_broker_takes_every_transition() -> None:
    course = Course()
    taken = {}
    for old, trigger, new in tour(TRANSITIONS, BrokerState.NOT_RUNNING):
        assert course.life.state is old
        course.take(trigger)
        assert course.life.state is new, (old, trigger)
        taken[old, trigger] = new
    assert taken == TRANSITIONS
