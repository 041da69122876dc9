"""A seeded storm of requests, delays, restarts and elections over one controller's desk."""

from collections.abc import Callable
from random import Random
from typing import Any

from desk import FEATURES, LEASE, Desk, registration
from judge import Judge

from fencepost.clusters.node_port.effects import SEND
from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.reference.nodes.configuration import S
from fencepost.clusters.reference.nodes.messages.control import (
    AllocateProducerIdsRequest,
    AlterConfigsRequest,
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterReassignmentsRequest,
    BrokerHeartbeatRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    NewTopic,
)

IDS = (1, 2, 3, 4)
TOPICS = ("a", "b")
WISHES = (BrokerState.RUNNING,) * 12 + (
    BrokerState.FENCED,
    BrokerState.PENDING_CONTROLLED_SHUTDOWN,
)


class Process:
    """A broker's process: what it is and has applied. It does what it likes."""

    def __init__(self, incarnation_id: int) -> None:
        self.incarnation_id = incarnation_id
        self.epoch = -1
        self.applied = 0


class Storm:
    """Run it; `judge.wrong` says what was not as it must be."""

    def __init__(self, seed: int, *off: str, level: int = 3) -> None:
        self.draws = Random(seed)
        self.desk = Desk(*off, level=level, request_timeout_ns=30 * S)
        self.incarnations = 0
        self.processes = {broker_id: self._process() for broker_id in IDS}
        self.judge = Judge(self.desk, self.processes.__getitem__)
        self.pending: list[tuple[int, Any]] = []
        """What is on its way: (source, request)."""
        self.asked: dict[int, Any] = {}
        self.source = 100
        self.seen = 0
        self._judge()
        self.desk.watch = self._judge
        self._settle()
        self.acts = self._mix()

    def run(self, steps: int) -> list[str]:
        """Step by step until something is wrong, or all steps are done."""
        for _ in range(steps):
            self.desk.commits = self.draws.random() < 0.8
            self.draws.choice(self.acts)()
            self._judge()
            if self.judge.wrong:
                break
        return self.judge.wrong

    def _settle(self) -> None:
        """Everybody is unfenced, and there is something to fight for."""
        for broker_id, process in self.processes.items():
            request = registration(broker_id, process.incarnation_id)
            self._send(request)
            self._arrive(*self.pending.pop())
            self._apply_of(broker_id, self.desk.image.offset)
            wish = BrokerState.RUNNING
            self._send(
                BrokerHeartbeatRequest(0, broker_id, process.epoch, process.applied, wish, 3)
            )
            self._arrive(*self.pending.pop())
        for topic in TOPICS:
            self._send(CreateTopicsRequest(0, (NewTopic(topic, 1, 3),), S))
            self._arrive(*self.pending.pop())

    def _mix(self) -> tuple[Callable[[], None], ...]:
        """What happens how often differs from storm to storm."""
        draws = self.draws
        return (
            *(self._heartbeat,) * draws.randint(8, 16),
            *(self._apply,) * draws.randint(4, 12),
            *(self._deliver,) * draws.randint(2, 14),
            *(self._propose,) * draws.randint(2, 10),
            *(self._pass_time,) * draws.randint(1, 5),
            *(self._restart,) * draws.randint(0, 3),
            *(self._register,) * draws.randint(0, 2),
            *(self._administer,) * draws.randint(0, 2),
            *(self._redeliver,) * draws.randint(0, 2),
            *(self._elect,) * draws.randint(0, 1),
        )

    def _process(self) -> Process:
        self.incarnations += 1
        return Process(self.incarnations)

    def _send(self, request: Any) -> None:
        self.source += 1
        self.pending.append((self.source, request))
        del self.pending[:-30]

    def _deliver(self) -> None:
        if self.pending:
            place = self.draws.randrange(len(self.pending))
            self._arrive(*self.pending.pop(place))

    def _redeliver(self) -> None:
        """A request comes, and stays under way: it comes twice."""
        if self.pending:
            _, request = self.draws.choice(self.pending)
            self.source += 1
            self._arrive(self.source, request)

    def _arrive(self, source: int, request: Any) -> None:
        self.asked[source] = request
        self.judge.arrives(source, request)
        self.desk.ask(request, source=source)

    def _any(self) -> tuple[int, Process]:
        broker_id = self.draws.choice(IDS)
        return broker_id, self.processes[broker_id]

    def _apply(self) -> None:
        broker_id, process = self._any()
        end = self.desk.image.offset
        behind = self.draws.random() < 0.2
        self._apply_of(broker_id, self.draws.randint(process.applied, end) if behind else end)

    def _apply_of(self, broker_id: int, offset: int) -> None:
        self.processes[broker_id].applied = offset

    def _heartbeat(self) -> None:
        broker_id, process = self._any()
        if process.epoch < 0:
            self._register()
            return
        wish = self.draws.choice(WISHES)
        request = BrokerHeartbeatRequest(0, broker_id, process.epoch, process.applied, wish, 3)
        self._send(request)
        if self.draws.random() < 0.7:
            self._arrive(*self.pending.pop())

    def _register(self) -> None:
        broker_id, process = self._any()
        features = (("metadata.version", 1, 2),) if self.draws.random() < 0.1 else FEATURES
        request = registration(
            broker_id, process.incarnation_id, broker_epoch=process.epoch, features=features
        )
        self._send(request)
        self._arrive(*self.pending.pop())

    def _restart(self) -> None:
        broker_id, _ = self._any()
        self.processes[broker_id] = self._process()

    def _propose(self) -> None:
        image = self.desk.image
        keys = [key for key, one in image.partitions.items() if one.leader >= 0]
        if not keys:
            return
        key = self.draws.choice(keys)
        now = image.partitions[key]
        sender = now.leader if self.draws.random() < 0.9 else self.draws.choice(now.replicas)
        isr = tuple(one for one in now.replicas if one == now.leader or self.draws.random() < 0.7)
        epochs = tuple(image.brokers[one].broker_epoch for one in isr)
        item = AlterPartitionItem(key, now.leader_epoch, now.partition_epoch, isr, epochs)
        epoch = image.brokers[sender].broker_epoch
        self._send(AlterPartitionRequest(0, sender, epoch, 3, (item,)))

    def _pass_time(self) -> None:
        self.desk.pass_time(int(self.draws.random() ** 3 * LEASE))

    def _elect(self) -> None:
        """Another controller, which may lack what was not committed."""
        quorum = self.desk.quorum
        self.desk.depose()
        if self.draws.random() < 0.5:
            quorum.log.truncate(quorum.log.high_watermark, [])
        self.desk.commits = True
        self._judge()
        self.desk.elect()

    def _administer(self) -> None:
        draws, image = self.draws, self.desk.image
        topic, broker_id = draws.choice(TOPICS), draws.choice(IDS)
        known = image.brokers.get(broker_id)
        wanted = tuple(draws.sample(IDS, draws.randint(1, 3)))
        self._send(
            draws.choice(
                (
                    CreateTopicsRequest(0, (NewTopic(topic, 2, draws.randint(1, 3)),), S),
                    CreateTopicsRequest(0, (NewTopic(topic, 2, draws.randint(1, 3)),), S),
                    DeleteTopicsRequest(0, ((topic, -1),), S) if draws.random() < 0.2 else None,
                    AlterConfigsRequest(0, ((4, "", "x", str(draws.randint(1, 3))),)),
                    AlterReassignmentsRequest(0, ((topic, 0, wanted),)),
                    AlterReassignmentsRequest(0, ((topic, 0, None),)),
                    ElectLeadersRequest(0, draws.random() < 0.1, None),
                    AllocateProducerIdsRequest(0, broker_id, known.broker_epoch if known else 0),
                )
            )
            or CreateTopicsRequest(0, (NewTopic(topic, 1, 1),), S)
        )
        self._arrive(*self.pending.pop())

    def _judge(self) -> None:
        for effect in self.desk.effects[self.seen :]:
            if effect[0] == SEND:
                self._answered(effect[1], effect[2])
        self.seen = len(self.desk.effects)
        self.judge.look()

    def _answered(self, source: int, response: Any) -> None:
        request: Any = self.asked.get(source)
        if response.kind == 21 and response.error == 0:
            process = self.processes[request.broker_id]
            if process.incarnation_id == request.incarnation_id:
                process.epoch = response.broker_epoch
