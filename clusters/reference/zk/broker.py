"""A broker of the ZooKeeper generation, which has the controller's part in it.

Its replicas and its service to clients are those of the KRaft generation; its registration, its
life cycle, and the way in which it is told its partitions are its own. Which broker is the
controller, the controllers' parts of all brokers settle among themselves.

A fenced broker takes no new request, neither of clients nor of followers, but those of controllers
and to the controller. What is under way is completed (Z08).
"""

from collections.abc import Mapping
from typing import Any, Final

from clusters.node_port.alarm import Alarm
from clusters.node_port.effects import (
    CLOSE,
    EXIT,
    RECOVER,
    RECOVERED,
    SEND,
    START,
    STOP,
    SYNCED,
    TICK,
    UNREACHABLE,
    WRITE,
    Effects,
)
from clusters.node_port.storage import (
    CLEAN_STOP,
    META_PROPERTIES,
    Contents,
    MetaProperties,
)
from clusters.node_port.zookeeper import SessionEvent, WatchEvent, ZkResponse
from clusters.reference.nodes.configuration import MS
from clusters.reference.nodes.image import MetadataImage
from clusters.reference.nodes.messages import data
from clusters.reference.nodes.messages.client import ApiVersionsRequest
from clusters.reference.nodes.replicas.replicas import Replicas
from clusters.reference.nodes.serving.groups import CommitCodec, CommitValues
from clusters.reference.nodes.serving.producer_ids import ProducerIds
from clusters.reference.nodes.serving.server import Server
from clusters.reference.zk.clients import ClientsOfController, ProducerIdZnode, ToldMetadata
from clusters.reference.zk.configuration import InterBrokerProtocol, ZkConfiguration
from clusters.reference.zk.control.controller import Controller
from clusters.reference.zk.isr_changes import IsrChanges, IsrWrites
from clusters.reference.zk.life_cycle import ZkLifeCycle
from clusters.reference.zk.messages import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    IsrChangeRequest,
    IsrChangeResponse,
    LeaderAndIsrResponse,
    MetadataHeartbeatRequest,
    MetadataHeartbeatResponse,
    StopReplicaResponse,
    UpdateMetadataResponse,
)
from clusters.reference.zk.registration import ZkRegistration
from clusters.reference.zk.rules import ZkRules
from clusters.reference.zk.settings import Settings
from clusters.reference.zk.situation import ZkSituation
from clusters.reference.zk.told import TELLING, ControllerRequests

__all__ = ["ZkBrokerNode"]

_FETCH: Final = data.FetchRequest.kind
_FETCHED: Final = data.FetchResponse.kind
_PRODUCE: Final = data.ProduceRequest.kind
_VERSIONS: Final = ApiVersionsRequest.kind
_OF_BROKERS: Final = frozenset(
    {MetadataHeartbeatRequest.kind, IsrChangeRequest.kind, ControlledShutdownRequest.kind}
)
"""The requests of brokers to the controller."""
_TOLD: Final = frozenset(
    {LeaderAndIsrResponse.kind, StopReplicaResponse.kind, UpdateMetadataResponse.kind}
)
"""The responses of brokers to the controller."""
_BROKER: Final = "broker"
"""The first element of this module's sync tokens; the second is why the process ends."""


class ZkBrokerNode:
    """A broker, to be driven as `effects.Node` says.

    `codec` turns commits of groups' offsets into payloads of the kind that the shell stores.
    """

    __slots__ = (
        "_consume",
        "_disk_id",
        "_fetched",
        "_follow",
        "_is_over",
        "_isr_changes",
        "_produce",
        "_registration",
        "_responses",
        "_serves_anyway",
        "_settings",
        "_sources",
        "_told",
        "alarm",
        "controller",
        "life",
        "replicas",
        "server",
        "situation",
    )

    def __init__(
        self, configuration: ZkConfiguration, rules: ZkRules, *, codec: CommitCodec | None = None
    ) -> None:
        self.situation = situation = ZkSituation(configuration, rules)
        self.alarm: Alarm = situation.alarm
        self._isr_changes = IsrChanges(situation)
        speaks = situation.speaks_heartbeats
        self.replicas = Replicas(situation, self._isr_changes if speaks else IsrWrites(situation))
        self._settings = Settings(situation, self.replicas.configured)
        self._told = ControllerRequests(situation, self.replicas, self._settings.topic)
        self.controller = Controller(situation, situation.asking, local=self._told.take)
        self.server = self._new_server(codec or CommitValues())
        self.life = ZkLifeCycle(situation, self)
        self._registration = ZkRegistration(situation, self)
        # Rule fenced_serves_nobody.
        self._serves_anyway = not rules.fenced_serves_nobody
        self._is_over = False
        self._disk_id: int | None = None
        """The broker id on its disk, if there is one."""
        self._sources = self.server.clients.sources
        self._fetched = self.replicas.fetchers.fetched
        self._follow = self.server.fetching.follow
        self._consume = self.server.fetching.consume
        self._produce = self.server.producing.produce
        self._responses: Mapping[int, Any] = {
            MetadataHeartbeatResponse.kind: self.life.heard,
            ControlledShutdownResponse.kind: self.life.heard_of_shutdown,
            IsrChangeResponse.kind: self._isr_changes.answered,
        }

    @property
    def image(self) -> MetadataImage:
        """The metadata that this broker was told."""
        return self.situation.image

    @property
    def visible(self) -> MetadataImage:
        """The metadata that clients see: the same."""
        return self.situation.image

    @property
    def leads_for_others(self) -> bool:
        """Return whether it leads a partition that another member of its ISR could lead."""
        return any(len(leader.isr) > 1 for leader in self.replicas.leaders.values())

    def handle(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Take one event; append what is to be done to `effects`."""
        if self._is_over:
            if kind == SYNCED and message[0] == _BROKER:
                effects.append((EXIT, message[1]))
        elif kind == _FETCHED:
            self._fetched(now, message, effects)
        elif kind == TICK:
            self._tick(now, effects)
        elif kind > STOP and kind % 2 == 0:
            self._request(now, source, kind, message, effects)
        else:
            self._rarer(now, source, kind, message, effects)

    # Calls of its parts.

    def registered(self, now: int, effects: Effects) -> None:
        """It is registered; the situation has its id and its broker epoch."""
        self._settings.begin(effects)
        self.controller.registered(now, effects)
        self.life.registered(now, effects)

    def session_lost(self, now: int, effects: Effects) -> None:
        """Its session has expired, and its registration is gone."""
        self.controller.expired(now, effects)
        self.life.session_lost(effects)

    def refused(self, why: str, effects: Effects) -> None:
        """There is no id for it, or another process has it."""
        self.life.refused(why, effects)

    def ended(self, reason: str, effects: Effects) -> None:
        """The life is over: what the disk needs for a clean start is made durable, then EXIT."""
        self._is_over = True
        self._registration.close(effects)
        self.replicas.close(META_PROPERTIES, (_BROKER, reason), effects)

    # Events.

    def _request(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        if kind == _VERSIONS and message.by_node:
            self.server.negotiate(source, message, effects)
        elif kind in TELLING:
            self._be_told(now, source, message, effects)
        elif kind in _OF_BROKERS:
            self.controller.request(now, source, kind, message, effects)
        elif now >= self.life.serves_until_ns and not self._serves_anyway:
            effects.append((CLOSE, source))
        elif kind == _FETCH and message.replica_id >= 0:
            self._follow(now, source, message, effects)
        else:
            self._serve(now, source, kind, message, effects)

    def _serve(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """A client asks."""
        if source not in self._sources:
            self.server.clients.add(source)
        if kind == _PRODUCE:
            self._produce(now, source, message, effects)
        elif kind == _FETCH:
            self._consume(now, source, message, effects)
        else:
            self.server.request(now, source, kind, message, effects)

    def _be_told(self, now: int, source: int, message: Any, effects: Effects) -> None:
        """A controller tells something; before this broker is registered, it is meant for another.

        A request that was refused comes from a controller that does not know it yet.
        """
        if self.situation.broker_epoch < 0:
            effects.append((CLOSE, source))
            return
        controller_id = self.situation.controller_id
        effects.append((SEND, source, self._told.take(now, message, effects)))
        self._look_at_controller(now, controller_id)

    def _tick(self, now: int, effects: Effects) -> None:
        self.alarm.reset()
        self._registration.tick(now, effects)
        self.controller.tick(now, effects)
        self.life.tick(now, effects)
        if not self._is_over:
            self.replicas.tick(now, effects)
            self.server.tick(now, effects)

    def _rarer(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Responses but those to fetches, and events but ticks."""
        handler = self._responses.get(kind)
        if handler is not None:
            handler(now, message, effects)
        elif kind in (ZkResponse.kind, WatchEvent.kind, SessionEvent.kind):
            self._from_zookeeper(now, kind, message, effects)
        elif kind in _TOLD:
            self.controller.answered(now, source, kind, message, effects)
        elif kind == UNREACHABLE:
            self._unreachable(now, source, message, effects)
        elif kind == START:
            self._start(message, effects)
        elif kind == STOP:
            self.life.stop(now, effects)
        elif kind == RECOVERED:
            self.life.recovered(effects)
            self._loaded(message, effects)
            self.alarm.by(now)  # its replicas have deadlines from here on
        elif kind != SYNCED:
            self.server.answered(now, kind, message, effects)

    def _from_zookeeper(self, now: int, kind: int, message: Any, effects: Effects) -> None:
        asking, controller_id = self.situation.asking, self.situation.controller_id
        if kind == ZkResponse.kind:
            asking.answered(now, message, effects)
        elif kind == WatchEvent.kind:
            asking.watched(now, message, effects)
        else:
            asking.session(now, message, effects)
        self._look_at_controller(now, controller_id)

    def _look_at_controller(self, now: int, known_id: int) -> None:
        """Let what waits for another controller than before go out with the next tick."""
        if self.situation.controller_id != known_id:
            self.alarm.by(now)

    def _unreachable(self, now: int, source: int, request: Any, effects: Effects) -> None:
        """A request came back; whether it had arrived is not known."""
        kind = request.kind
        if kind == _FETCH:
            self.replicas.fetchers.unreachable(now, request)
        elif kind in (MetadataHeartbeatRequest.kind, ControlledShutdownRequest.kind):
            self.life.unreachable(now, request)
        elif kind == IsrChangeRequest.kind:
            self._isr_changes.unreachable(now, request)
        elif kind in TELLING:
            self.controller.unreachable(now, source, request, effects)
        else:
            self.server.unreachable(now, request, effects)

    def _start(self, contents: Contents, effects: Effects) -> None:
        situation = self.situation
        meta: MetaProperties | None = contents.files.get(META_PROPERTIES)
        words = _unfit(situation, meta)
        if words:
            self._is_over = True
            effects.append((EXIT, words))
            return
        situation.incarnation_id = contents.incarnation_id
        self._disk_id = None if meta is None else meta.node_id
        is_used = bool(contents.logs or contents.topics)
        is_unclean = is_used and not contents.files.get(CLEAN_STOP, False)
        effects.append((WRITE, CLEAN_STOP, False))
        self.life.start(is_unclean=is_unclean, effects=effects)
        if is_unclean:
            effects.append((RECOVER,))
        else:
            self._loaded(contents, effects)

    def _loaded(self, contents: Contents, effects: Effects) -> None:
        """Register: the logs are known."""
        self.replicas.load(contents)
        self._registration.start(self._disk_id, effects)

    def _new_server(self, codec: CommitCodec) -> Server:
        blocks = ProducerIdZnode(self.situation)
        producer_ids = ProducerIds(self.situation, blocks)
        blocks.give_to(producer_ids)
        return Server(
            self.situation,
            self.replicas,
            codec,
            visibility=ToldMetadata(self.situation),
            forwarding=ClientsOfController(self.situation, self.controller),
            producer_ids=producer_ids,
        )


def _unfit(situation: ZkSituation, meta: MetaProperties | None) -> str:
    """Return why a broker may not start with this configuration on this disk; empty if it may."""
    configuration = situation.zk_configuration
    if meta is not None and meta.cluster_id != configuration.cluster_id:
        expected = configuration.cluster_id
        return f"meta.properties: expected cluster {expected!r}, found {meta.cluster_id!r}"
    protocol, highest = configuration.inter_broker_protocol, configuration.inter_broker_protocol_max
    if protocol > highest:
        return f"inter.broker.protocol.version: expected at most {highest}, found {protocol}"
    broker_side_ms = configuration.broker_side_timeout_ns // MS
    controller_side_ms = configuration.controller_side_timeout_ns // MS
    is_gated = protocol < InterBrokerProtocol.HEARTBEATS
    # Rule timeouts_ordered.
    if broker_side_ms > controller_side_ms or is_gated or not situation.rules.timeouts_ordered:
        return ""
    return (
        "broker.heartbeat.timeout.ms has to be more than controller.heartbeat.timeout.ms: "
        f"found {broker_side_ms} and {controller_side_ms}"
    )
