"""A broker of the ZooKeeper generation, which has the controller's part in it.

Its replicas and its service to clients are those of the KRaft generation; its registration, its
life cycle, and the way in which it is told its partitions are its own. Which broker is the
controller, the controllers' parts of all brokers settle among themselves.

A fenced broker takes no new request, neither of clients nor of followers, but those of controllers
and to the controller. What is under way is completed (Z08).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from fencepost.clusters.node_port.effects import CLOSE, SEND, Effects
from fencepost.clusters.node_port.storage import META_PROPERTIES, Contents, MetaProperties
from fencepost.clusters.node_port.zookeeper import SessionEvent, WatchEvent, ZkResponse
from fencepost.clusters.reference.nodes.broker import BrokerNode, Handlers, end
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.nodes.replicas.replicas import Replicas
from fencepost.clusters.reference.nodes.serving.groups import CommitCodec, CommitValues
from fencepost.clusters.reference.nodes.serving.producer_ids import ProducerIds
from fencepost.clusters.reference.nodes.serving.server import Server
from fencepost.clusters.reference.zk.clients import (
    ClientsOfController,
    ProducerIdZnode,
    ToldMetadata,
)
from fencepost.clusters.reference.zk.configuration import InterBrokerProtocol, ZkConfiguration
from fencepost.clusters.reference.zk.control.controller import ANSWERED, Controller
from fencepost.clusters.reference.zk.controller_requests import TELLING, ControllerRequests
from fencepost.clusters.reference.zk.isr_changes import IsrChanges, IsrWrites
from fencepost.clusters.reference.zk.life_cycle import ZkLifeCycle
from fencepost.clusters.reference.zk.messages import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    IsrChangeRequest,
    IsrChangeResponse,
    MetadataHeartbeatRequest,
    MetadataHeartbeatResponse,
)
from fencepost.clusters.reference.zk.registration import ZkRegistration
from fencepost.clusters.reference.zk.rules import ZkRules
from fencepost.clusters.reference.zk.settings import Settings
from fencepost.clusters.reference.zk.situation import ZkSituation

_OF_BROKERS: Final = frozenset(
    {MetadataHeartbeatRequest.kind, IsrChangeRequest.kind, ControlledShutdownRequest.kind}
)
"""The requests of brokers to the controller."""


def zk_broker(
    configuration: ZkConfiguration, rules: ZkRules, *, codec: CommitCodec | None = None
) -> BrokerNode["ZkRegistrar"]:
    """Return a broker of the ZooKeeper generation.

    `codec` turns commits of groups' offsets into payloads of the kind that the shell stores.
    """
    situation = ZkSituation(configuration, rules)
    changes = IsrChanges(situation)
    replicas = Replicas(situation, changes if situation.speaks_heartbeats else IsrWrites(situation))
    registrar = ZkRegistrar(situation, replicas)
    blocks = ProducerIdZnode(situation)
    producer_ids = ProducerIds(situation, blocks)
    blocks.give_to(producer_ids)
    server = Server(
        situation,
        replicas,
        codec or CommitValues(),
        visibility=ToldMetadata(situation),
        forwarding=ClientsOfController(situation, registrar.controller),
        producer_ids=producer_ids,
    )
    isr = Handlers(
        answers={IsrChangeResponse.kind: changes.answered},
        lost={IsrChangeRequest.kind: changes.unreachable},
    )
    return BrokerNode(situation, replicas, server, registrar, isr=isr, follows_fenced=False)


class ZkRegistrar:
    """A broker that registers in ZooKeeper, and is told its partitions by whoever controls."""

    __slots__ = (
        "_disk_id",
        "_registration",
        "_replicas",
        "_settings",
        "_situation",
        "_told",
        "controller",
        "handlers",
        "life",
    )

    def __init__(self, situation: ZkSituation, replicas: Replicas) -> None:
        self._situation = situation
        self._replicas = replicas
        self._settings = Settings(situation, replicas.configured)
        self._told = ControllerRequests(situation, replicas, self._settings.topic)
        self.controller = Controller(situation, situation.zookeeper, local=self._told.take)
        self.life = ZkLifeCycle(situation, self)
        self._registration = ZkRegistration(situation, self)
        self._disk_id: int | None = None
        """The broker id on its disk, if there is one."""
        zookeeper = situation.zookeeper
        self.handlers = Handlers(
            answers={
                MetadataHeartbeatResponse.kind: self.life.heard,
                ControlledShutdownResponse.kind: self.life.heard_of_shutdown,
                ZkResponse.kind: partial(self._from_zookeeper, zookeeper.answered),
                WatchEvent.kind: partial(self._from_zookeeper, zookeeper.watched),
                SessionEvent.kind: partial(self._from_zookeeper, zookeeper.session),
                **dict.fromkeys(ANSWERED, self.controller.answered),
            },
            lost={
                MetadataHeartbeatRequest.kind: self.life.unreachable,
                ControlledShutdownRequest.kind: self.life.unreachable,
                **dict.fromkeys(TELLING, self.controller.unreachable),
            },
            requests={
                **dict.fromkeys(TELLING, self._be_told),
                **dict.fromkeys(_OF_BROKERS, self.controller.request),
            },
        )

    @property
    def leads_for_others(self) -> bool:
        """Return whether it leads a partition that another member of its ISR could lead."""
        return any(len(leader.isr) > 1 for leader in self._replicas.leaders.values())

    def unfit(self, contents: Contents) -> str:
        """Return why the broker may not start on this disk; empty if it may."""
        meta: MetaProperties | None = contents.files.get(META_PROPERTIES)
        self._disk_id = None if meta is None else meta.node_id
        return _unfit(self._situation, meta)

    def start(self, _now: int, _contents: Contents, effects: Effects, *, is_unclean: bool) -> None:
        """Begin; after a crash it registers once its logs are `recovered`."""
        self.life.start(is_unclean=is_unclean, effects=effects)
        if not is_unclean:
            self._registration.start(self._disk_id, effects)

    def recovered(self, _now: int, effects: Effects) -> None:
        """The logs are recovered: register."""
        self.life.recovered(effects)
        self._registration.start(self._disk_id, effects)

    def stop(self, now: int, effects: Effects) -> None:
        """The operating system asks the broker to end."""
        self.life.stop(now, effects)

    def tick(self, now: int, effects: Effects) -> None:
        """Look at what is due."""
        self._registration.tick(now, effects)
        self.controller.tick(now, effects)
        self.life.tick(now, effects)

    def overdue(self, _now: int, _effects: Effects) -> None:
        """Do nothing: the broker fences itself with a tick (Z08)."""

    def may_be_forgotten(self) -> bool:
        """Return that it may not: what it shows is what it was told."""
        return False

    # Calls of its parts.

    def registered(self, now: int, effects: Effects) -> None:
        """It is registered; the situation has its id and its broker epoch."""
        self._settings.begin(now, effects)
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
        """The life is over; an empty reason is a clean end."""
        self._registration.close(effects)
        end(self._situation, self._replicas, META_PROPERTIES, reason, effects)

    def _be_told(self, now: int, source: int, request: Any, effects: Effects) -> None:
        """A controller tells something; before this broker is registered, it is meant for another.

        A request that was refused comes from a controller that does not know it yet.
        """
        if self._situation.broker_epoch < 0:
            effects.append((CLOSE, source))
            return
        controller_id = self._situation.controller_id
        effects.append((SEND, source, self._told.take(now, request, effects)))
        self._look_at_controller(now, controller_id)

    def _from_zookeeper(
        self,
        take: Callable[[int, Any, Effects], None],
        now: int,
        message: Any,
        effects: Effects,
    ) -> None:
        controller_id = self._situation.controller_id
        take(now, message, effects)
        self._look_at_controller(now, controller_id)

    def _look_at_controller(self, now: int, known_id: int) -> None:
        """Let what waits for another controller than before go out with the next tick."""
        if self._situation.controller_id != known_id:
            self._situation.alarm.by(now)


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
