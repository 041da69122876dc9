"""A broker's life cycle is led through every transition of its table, and goes where that says."""

from tours import tour

from fencepost.clusters.node_port.effects import SEND, Effects
from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.reference.nodes.configuration import MS, Configuration
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.life_cycle import LifeCycle
from fencepost.clusters.reference.nodes.life_cycle_transitions import TRANSITIONS, Trigger
from fencepost.clusters.reference.nodes.messages.control import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.clusters.reference.nodes.situation import Situation

LEASE_MS = 10_000
SAID = {
    Trigger.UNFENCED: BrokerState.RUNNING,
    Trigger.FENCED: BrokerState.FENCED,
    Trigger.LET_GO: BrokerState.NOT_RUNNING,
}


class Rest:
    """The rest of the broker, which takes what it is told."""

    def fenced(self, effects: Effects) -> None:
        pass

    def ended(self, reason: str, effects: Effects) -> None:
        pass

    def told_lowest(self, offset: int, effects: Effects) -> None:
        pass


class Course:
    """A broker, and the one controller that it hears of."""

    def __init__(self) -> None:
        self.now = 0
        self.begin()

    def begin(self) -> None:
        """Have a process that has not started yet."""
        configuration = Configuration(
            node_id=1,
            is_controller=False,
            voters=(1001,),
            cluster_id="c",
            registration_timeout_ns=1 << 60,
        )
        situation = Situation(configuration, Rules())
        situation.controller_id = 1001
        self.life = LifeCycle(situation, Rest())
        self.effects: Effects = []
        self.must_register = False
        """Its registration was lost, after the first."""

    def take(self, trigger: Trigger) -> None:
        """Have happen what the trigger stands for."""
        match trigger:
            case Trigger.STARTED_CLEAN | Trigger.STARTED_UNCLEAN:
                self.begin()
                unclean = trigger is Trigger.STARTED_UNCLEAN
                self.life.start(self.now, is_unclean=unclean, effects=self.effects)
            case Trigger.RECOVERED:
                self.life.recovered(self.now, self.effects)
            case Trigger.REGISTERED:
                self.register()
            case Trigger.REFUSED:
                self.outlast_lease()
                self.register(Error.DUPLICATE_BROKER_REGISTRATION)
            case Trigger.LEASE_OVER:
                self.outlast_lease()
            case Trigger.EPOCH_REFUSED:
                self.answer_heartbeat(error=Error.STALE_BROKER_EPOCH)
            case Trigger.STOPPED:
                self.life.stop(self.now, self.effects)
            case Trigger.UNFENCED | Trigger.FENCED | Trigger.LET_GO:
                self.answer_heartbeat(says=SAID[trigger])

    def register(self, error: Error = Error.NONE) -> None:
        asked = self.next_request(BrokerRegistrationRequest.kind)
        answer = BrokerRegistrationResponse(asked, error, 1001, 7, LEASE_MS)
        self.life.registered(self.now, answer, self.effects)

    def answer_heartbeat(
        self, *, says: BrokerState = BrokerState.FENCED, error: Error = Error.NONE
    ) -> None:
        if self.must_register:
            self.register()
        asked = self.next_request(BrokerHeartbeatRequest.kind)
        self.must_register = error is not Error.NONE
        answer = BrokerHeartbeatResponse(
            asked, error, 1001, next_state=says, lease_duration_ms=LEASE_MS
        )
        self.life.heard(self.now, answer, self.effects)

    def outlast_lease(self) -> None:
        self.must_register = True
        self.now += LEASE_MS * MS
        self.life.tick(self.now, self.effects)

    def next_request(self, kind: int) -> int:
        """The correlation of the next request of this kind; time goes by until it is sent."""
        del self.effects[:]
        for _ in range(250):
            for effect in self.effects:
                if effect[0] == SEND and effect[2].kind == kind:
                    return int(effect[2].correlation)
            self.now += 10 * MS
            self.life.tick(self.now, self.effects)
        raise AssertionError((self.life.state, kind))


def test_k07_a_broker_takes_every_transition() -> None:
    course = Course()
    taken = {}
    for old, trigger, new in tour(TRANSITIONS, BrokerState.NOT_RUNNING):
        assert course.life.state is old
        course.take(trigger)
        assert course.life.state is new, (old, trigger)
        taken[old, trigger] = new
    assert taken == TRANSITIONS
