"""A broker that leads two partitions, and asks for their ISRs."""

from typing import Any

from fencepost.clusters.node_port.effects import SEND, Effects
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.nodes.image import PartitionImage
from fencepost.clusters.reference.nodes.records import RegisterBrokerRecord
from fencepost.clusters.reference.nodes.replicas.leader import Leader
from fencepost.clusters.reference.nodes.replicas.log import PartitionLog
from fencepost.clusters.reference.nodes.replicas.producers import ProducerStates
from fencepost.clusters.reference.nodes.replicas.waiting import ParkedFetches
from fencepost.clusters.reference.zk.configuration import ZkConfiguration
from fencepost.clusters.reference.zk.isr_changes import IsrChanges
from fencepost.clusters.reference.zk.messages import IsrChangeResponse, PartitionState
from fencepost.clusters.reference.zk.rules import ZkRules
from fencepost.clusters.reference.zk.situation import ZkSituation

RETRY = 20 * MS
TIMEOUT = 30_000 * MS


class Asker:
    """Broker 1 leads t-0 and t-1 with ISR [1]; the controller is broker 9."""

    def __init__(self, **rules: bool) -> None:
        self.effects: Effects = []
        configuration = ZkConfiguration(node_id=1, is_controller=False, voters=(), cluster_id="c")
        self.situation = ZkSituation(configuration, ZkRules(**rules))
        self.situation.controller_id, self.situation.broker_epoch = 9, 100
        register = RegisterBrokerRecord(2, -1, 0, fenced=False, listeners=(), features=())
        self.situation.image.apply(0, 0, register)
        self.changes = IsrChanges(self.situation)
        self.leaders = tuple(self._leader(number) for number in (0, 1))

    def _leader(self, number: int) -> Leader:
        key = (7, number)
        state = PartitionState(key, "t", 1, 1, 3, (1,), 0, (1, 2))
        self.situation.assigned[key] = state
        fetches = ParkedFetches({}, self.situation.alarm)
        leader = Leader(PartitionLog(key, (), 0), ProducerStates(), self.situation, fetches)
        leader.begin(0, PartitionImage((1, 2), (1,), 1, 3, 0))
        leader.remotes[2].broker_epoch = 55
        return leader

    def propose(self, number: int = 0, *, now: int = 0) -> None:
        self.changes.propose(now, self.leaders[number], (1, 2), self.effects)

    def tick(self, now: int) -> None:
        self.changes.tick(now, self.effects)

    def answer(self, *errors: int, whole: int = 0, now: int = 1) -> None:
        results = tuple((error, None) for error in errors)
        response = IsrChangeResponse(self.sent()[-1].correlation, whole, None, results)
        self.changes.answered(now, response, self.effects)

    def sent(self) -> list[Any]:
        return [effect[2] for effect in self.effects if effect[0] == SEND]
