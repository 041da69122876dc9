"""Brokers that are nothing but their part of the controller, over a ZooKeeper in memory.

Each registers, takes part in the election, and answers the controller's requests at once with NONE,
unless it is `deaf`. What it was told is kept by broker. Heartbeats are sent by the test.
"""

from functools import partial
from typing import Any

from zookeeper_double import Session, ZookeeperDouble

from fencepost.clusters.node_port.effects import CLOSE, NOTE, SEND
from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.node_port.zookeeper import (
    ZOOKEEPER,
    Create,
    Delete,
    SessionEvent,
    SessionState,
    SetData,
    WatchEvent,
    ZkResponse,
)
from fencepost.clusters.protocol.controlled_states import ControlledState
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.image import PartitionImage
from fencepost.clusters.reference.nodes.messages.control import CreateTopicsRequest, NewTopic
from fencepost.clusters.reference.zk.configuration import ZkConfiguration
from fencepost.clusters.reference.zk.control.context import Context
from fencepost.clusters.reference.zk.control.controller import ANSWERED, Controller
from fencepost.clusters.reference.zk.messages import (
    IsrChange,
    IsrChangeRequest,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    MetadataHeartbeatRequest,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from fencepost.clusters.reference.zk.rules import ZkRules
from fencepost.clusters.reference.zk.situation import ZkSituation
from fencepost.clusters.reference.zk.znodes import (
    BrokerInfo,
    PartitionStateInfo,
    broker_path,
    state_path,
)

CLIENT = -7
READY, LEGACY = 5, 4


class DeskBroker:
    """A broker: its session, its controller, and what it was told."""

    def __init__(self, desk: "Desk", broker_id: int, rules: ZkRules, **settings: Any) -> None:
        configuration = ZkConfiguration(
            node_id=broker_id,
            is_controller=False,
            voters=(),
            cluster_id="cluster",
            listeners=(("CLIENT", f"host-{broker_id}", 9092, 0),),
            **settings,
        )
        self.situation = ZkSituation(configuration, rules)
        self.controller = Controller(
            self.situation, self.situation.zookeeper, local=partial(desk.answer, broker_id)
        )
        self.session: Session | None = None
        self.told: list[Any] = []
        self.is_deaf = False
        self.error = Error.NONE
        """The error with which it answers what it is told."""


class Desk:
    """A cluster of such brokers, numbered from 1."""

    def __init__(
        self, brokers: int = 3, *without: str, begins: bool = True, **settings: Any
    ) -> None:
        self.now = 0
        self.double = ZookeeperDouble()
        self.rules = ZkRules().without(*without)
        self.settings = settings
        self.brokers: dict[int, DeskBroker] = {}
        self.notes: list[tuple[Any, ...]] = []
        self.answers: list[Any] = []
        """What clients and heartbeats were answered."""
        self.closed: list[int] = []
        self._correlation = 0
        self._asked: list[tuple[DeskBroker, int, Any]] = []
        for broker_id in range(1, brokers + 1):
            self.start(broker_id)
            if begins:
                self.heartbeat(broker_id)

    # Brokers.

    def start(self, broker_id: int, *, version: int = READY, **settings: Any) -> DeskBroker:
        """A broker's process begins: it registers, unless its id is taken, and stands."""
        broker = DeskBroker(self, broker_id, self.rules, **{**self.settings, **settings})
        self.brokers[broker_id] = broker
        self.connect(broker, version=version)
        return broker

    def connect(self, broker: DeskBroker, *, version: int = READY) -> None:
        """A broker opens a session, registers, and takes part in the election."""
        configuration = broker.situation.configuration
        broker.session = self.double.open()
        connected = SessionEvent(-1, SessionState.CONNECTED, broker.session.number)
        self._do(broker, broker.situation.zookeeper.session, connected)
        info = BrokerInfo(configuration.node_id, configuration.listeners, None, version)
        self.register(broker, info)
        self._do(broker, broker.controller.registered)
        self.settle()

    def register(self, broker: DeskBroker, info: BrokerInfo) -> None:
        """Make a registration that ends with the broker's session."""
        assert broker.session is not None
        path = broker_path(info.broker_id)
        operation = Create(path, info.encoded(), ephemeral=True)
        stat = self.double.write(operation, session=broker.session)[0].stat
        assert stat is not None
        broker.situation.broker_epoch = stat.czxid

    def expire(self, broker_id: int) -> None:
        """A broker's session is over, and its process is told."""
        broker = self.brokers[broker_id]
        assert broker.session is not None
        expired = SessionEvent(-1, SessionState.EXPIRED, broker.session.number)
        self.double.expire(broker.session)
        broker.session = None
        self._do(broker, broker.situation.zookeeper.session, expired)
        self._do(broker, broker.controller.expired)
        self.settle()

    def kill(self, broker_id: int) -> None:
        """A broker's process ends, and its session at once."""
        broker = self.brokers.pop(broker_id)
        assert broker.session is not None
        self.double.expire(broker.session)
        self.settle()

    def restart(self, broker_id: int, *, version: int = READY) -> DeskBroker:
        """A broker restarts so fast that its registration is replaced at once, unseen."""
        assert self.active.situation.node_id != broker_id
        broker = self.brokers.pop(broker_id)
        assert broker.session is not None
        self.double.sessions.pop(broker.session.number)
        self.double.write(Delete(broker_path(broker_id)))
        return self.start(broker_id, version=version)

    # What they ask.

    def heartbeat(
        self,
        broker_id: int,
        target: int = ControlledState.ACTIVE,
        *,
        incarnation: int | None = None,
        to: int | None = None,
    ) -> Any:
        """A broker's heartbeat to the active controller; returns the answer, or None so far."""
        if incarnation is None:
            incarnation = self.brokers[broker_id].situation.broker_epoch
        self._correlation += 1
        request = MetadataHeartbeatRequest(self._correlation, broker_id, incarnation, target)
        return self.ask(request, to=to)

    def isr_change(
        self,
        sender: int,
        isr: tuple[int, ...],
        *,
        topic: str = "t",
        incarnation: int | None = None,
        incarnations: tuple[int, ...] = (),
        leader_epoch: int | None = None,
    ) -> Any:
        """A leader asks for the ISR of partition 0; returns the answer."""
        if incarnation is None:
            incarnation = self.brokers[sender].situation.broker_epoch
        epoch = self.state(topic).leader_epoch if leader_epoch is None else leader_epoch
        self._correlation += 1
        items = (IsrChange(0, epoch, isr, incarnations),)
        version = 1 if incarnations else 0
        return self.ask(
            IsrChangeRequest(self._correlation, sender, incarnation, version, ((topic, items),))
        )

    def create(self, topic: str, *replicas: tuple[int, ...], **settings: str) -> Any:
        """A client creates a topic; returns the answer."""
        self._correlation += 1
        named = tuple((name.replace("_", "."), value) for name, value in settings.items())
        new = NewTopic(topic, -1, -1, tuple(replicas), named)
        return self.ask(CreateTopicsRequest(self._correlation, (new,), 1_000 * MS))

    def ask(self, request: Any, *, to: int | None = None) -> Any:
        """Ask the active controller, or another broker; returns the answer, or None so far."""
        broker = self.active if to is None else self.brokers[to]
        self._do(broker, broker.controller.request, CLIENT, request)
        self.settle()
        found = [one for one in self.answers if one.correlation == request.correlation]
        return found[-1] if found else None

    # Time, and what is under way.

    def settle(self) -> None:
        """Deliver all that is under way."""
        progress = True
        while progress:
            progress = False
            for broker in tuple(self.brokers.values()):
                if broker.session is not None and broker.session.inbox:
                    progress = True
                    self._deliver(broker, broker.session.inbox.popleft())
                progress |= self._answer_requests(broker)

    def advance(self, by_ms: int) -> None:
        """Time passes, and all brokers look at their deadlines."""
        self.now += by_ms * MS
        for broker in tuple(self.brokers.values()):
            self._do(broker, broker.controller.tick)
        self.settle()

    def answer(self, broker_id: int, _now: int, request: Any, _effects: Any) -> Any:
        """The answer of a broker to a request of the controller."""
        self.brokers[broker_id].told.append(request)
        error = int(self.brokers[broker_id].error)
        if isinstance(request, StopReplicaRequest):
            stopped = tuple((one.topic, one.partition, 0) for one in request.partitions)
            return StopReplicaResponse(request.correlation, 0, stopped)
        if isinstance(request, LeaderAndIsrRequest):
            return LeaderAndIsrResponse(request.correlation, error, ())
        assert isinstance(request, UpdateMetadataRequest), request
        return UpdateMetadataResponse(request.correlation, error)

    def _deliver(self, broker: DeskBroker, message: Any) -> None:
        zookeeper = broker.situation.zookeeper
        if isinstance(message, ZkResponse):
            self._do(broker, zookeeper.answered, message)
        else:
            assert isinstance(message, WatchEvent), message
            self._do(broker, zookeeper.watched, message)

    def _answer_requests(self, broker: DeskBroker) -> bool:
        """Answer what the controller in this broker has asked others."""
        asked, self._asked = self._asked, []
        progress = False
        for asker, target, request in asked:
            other = self.brokers.get(target)
            if asker is not broker or other is None or other.is_deaf:
                self._asked.append((asker, target, request))
                continue
            progress = True
            response = self.answer(target, self.now, request, [])
            assert response.kind in ANSWERED
            self._do(asker, asker.controller.answered, response)
        return progress

    def _do(self, broker: DeskBroker, act: Any, *arguments: Any) -> None:
        effects: list[tuple[Any, ...]] = []
        act(self.now, *arguments, effects)
        for effect in effects:
            if effect[0] == NOTE:
                self.notes.append((broker.situation.node_id, *effect[1:]))
            elif effect[0] == CLOSE:
                self.closed.append(effect[1])
            elif effect[0] == SEND and effect[1] == ZOOKEEPER:
                if broker.session is not None:
                    self.double.request(broker.session, effect[2])
            elif effect[0] == SEND and effect[1] == CLIENT:
                self.answers.append(effect[2])
            else:
                assert effect[0] == SEND, effect
                self._asked.append((broker, effect[1], effect[2]))

    # What there is to see.

    @property
    def active(self) -> DeskBroker:
        """The broker that is the active controller."""
        found = [one for one in self.brokers.values() if one.controller.is_active]
        assert len(found) == 1, [one.situation.node_id for one in found]
        return found[0]

    @property
    def context(self) -> Context:
        """What the active controller knows."""
        found = self.active.controller.context
        assert found is not None
        return found

    def state(self, topic: str = "t", partition: int = 0) -> PartitionStateInfo:
        """A partition's state as ZooKeeper has it."""
        return PartitionStateInfo.decoded(self.double.data(state_path(topic, partition)))

    def image(self, topic: str = "t", partition: int = 0) -> PartitionImage:
        """A partition as the active controller has it."""
        return self.context.image.partitions[self.key(topic, partition)]

    def key(self, topic: str = "t", partition: int = 0) -> PartitionKey:
        """A partition's key."""
        return self.context.image.topics[topic], partition

    def live(self, broker_id: int) -> tuple[int, ...]:
        """The brokers that a broker was told of last."""
        told = self.brokers[broker_id].told
        found = [one for one in told if isinstance(one, UpdateMetadataRequest)]
        return tuple(one.broker_id for one in found[-1].brokers)

    def led(self, broker_id: int, topic: str = "t", partition: int = 0) -> Any:
        """The state of a partition that a broker was told by LeaderAndIsr last; None: none."""
        states = [
            state
            for request in self.brokers[broker_id].told
            if isinstance(request, LeaderAndIsrRequest)
            for state in request.partitions
            if (state.topic, state.key[1]) == (topic, partition)
        ]
        return states[-1] if states else None

    def overwrite(self, state: PartitionStateInfo, *, topic: str = "t") -> None:
        """Another hand writes the state of partition 0."""
        self.double.write(SetData(state_path(topic, 0), state.encoded()))
