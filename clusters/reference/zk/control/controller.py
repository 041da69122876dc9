"""The controller of the ZooKeeper generation: a part of every broker, active in one of them.

It takes part in the election as long as its broker is registered, and answers NOT_CONTROLLER unless
it has won and loaded everything. All that it knows is of one controller epoch, and is thrown away
with it.

The controller is the broker whose session made /controller. A broker that sees no /controller reads
/controller_epoch, and makes the one and raises the other in one multi, so that each epoch has one
controller. It learns by its watch that /controller names another session, and by its session's end
that its own znode is gone; until then a write of a newer controller keeps it from writing, which
checks the controller epoch.

Source: Kafka's `KafkaController` (`elect`), `registerControllerAndIncrementControllerEpoch`
(KAFKA-6082); the draft "Controller heartbeats, broker incarnation ids".
"""

import json
from typing import Any, Final, Protocol

from fencepost.clusters.node_port.effects import NOTE, Effects
from fencepost.clusters.node_port.notes import CONTROLLER_ELECTED
from fencepost.clusters.node_port.zookeeper import (
    Create,
    GetData,
    SessionEvent,
    SessionState,
    SetData,
    WatchEvent,
    ZkError,
    ZkOutcome,
)
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.control import DeleteTopicsRequest
from fencepost.clusters.reference.zk.configuration import InterBrokerProtocol
from fencepost.clusters.reference.zk.control.active import ActiveController
from fencepost.clusters.reference.zk.control.channels import ANSWERS, REQUESTS, Local
from fencepost.clusters.reference.zk.control.context import Context
from fencepost.clusters.reference.zk.control.refusals import refuse
from fencepost.clusters.reference.zk.control.requests import DECIDED
from fencepost.clusters.reference.zk.messages import (
    ControlledShutdownRequest,
    IsrChangeRequest,
    MetadataHeartbeatRequest,
)
from fencepost.clusters.reference.zk.session_requests import SessionRequests
from fencepost.clusters.reference.zk.situation import ZkSituation
from fencepost.clusters.reference.zk.znodes import (
    BROKER_IDS,
    CONTROLLER,
    CONTROLLER_EPOCH,
    DELETE_TOPICS,
    ISR_CHANGES,
    TOPICS,
)

_OF_DRAFT: Final = frozenset({MetadataHeartbeatRequest.kind, IsrChangeRequest.kind})
CONTROLLED: Final = DECIDED | _OF_DRAFT | {ControlledShutdownRequest.kind, DeleteTopicsRequest.kind}
"""The kinds of what is asked of a controller."""
ANSWERED: Final = ANSWERS
"""The kinds of brokers' answers to its requests."""
_NO_NODE: Final = int(ZkError.NO_NODE)


class Controller:
    """A broker's part in controlling the cluster."""

    __slots__ = ("_active", "_correlation", "_election", "_local", "_situation", "_zookeeper")

    def __init__(self, situation: ZkSituation, zookeeper: SessionRequests, *, local: Local) -> None:
        self._situation = situation
        self._zookeeper = zookeeper
        self._local = local
        self._correlation = 0
        self._active: ActiveController | None = None
        self._election = _Election(situation, zookeeper, self)
        for path in (BROKER_IDS, TOPICS, DELETE_TOPICS, ISR_CHANGES):
            zookeeper.on_watch(path, self._watched)
        for parent in (BROKER_IDS, TOPICS):
            zookeeper.on_watch(f"{parent}/", self._watched)

    @property
    def is_active(self) -> bool:
        """Return whether it has won the election and loaded everything."""
        return self._active is not None and self._active.is_loaded

    @property
    def context(self) -> Context | None:
        """Its knowledge as the controller; None: it has not won."""
        return None if self._active is None else self._active.context

    def registered(self, now: int, effects: Effects) -> None:
        """The broker is registered: take part in the election."""
        self._election.begin(now, effects)

    def expired(self, now: int, effects: Effects) -> None:
        """The broker's session is over: resign at once."""
        self._election.expired(now, effects)

    def request(self, now: int, source: int, message: Any, effects: Effects) -> None:
        """Take one of CONTROLLED."""
        known = self._situation.zk_configuration.inter_broker_protocol_max
        if message.kind in _OF_DRAFT and known < InterBrokerProtocol.HEARTBEATS:
            refuse(source, message, Error.UNSUPPORTED_VERSION, effects)
        elif self._active is None or not self._active.is_loaded:
            refuse(source, message, Error.NOT_CONTROLLER, effects)
        else:
            self._active.request(now, source, message, effects)

    def answered(self, now: int, message: Any, effects: Effects) -> None:
        """Take one of ANSWERED."""
        if self._active is not None:
            self._active.answered(now, message, effects)

    def unreachable(self, now: int, request: Any, _effects: Effects) -> None:
        """A request to a broker is lost."""
        if self._active is not None and request.kind in REQUESTS:
            self._active.unreachable(now, request)

    def tick(self, now: int, effects: Effects) -> None:
        """Look at what is due, and say when something will be."""
        if self._active is not None:
            self._active.tick(now, effects)

    # Calls of the election.

    def won(self, now: int, epoch: int, epoch_version: int, effects: Effects) -> None:
        """The broker is the controller of this epoch."""
        if self._active is not None:
            return
        effects.append((NOTE, CONTROLLER_ELECTED, epoch))
        context = Context(self._situation, epoch=epoch, epoch_version=epoch_version)
        self._active = ActiveController(
            context,
            self._zookeeper,
            local=self._local,
            correlation=self._correlation,
            deposed=self._deposed,
        )
        self._active.begin(now, effects)

    def lost(self, now: int, effects: Effects) -> None:
        """The broker is not the controller."""
        active, self._active = self._active, None
        if active is not None:
            self._correlation = active.correlation
            active.end(now, effects)

    def _deposed(self, now: int, effects: Effects) -> None:
        self.lost(now, effects)
        self._election.look(now, effects)

    def _watched(self, now: int, event: WatchEvent, effects: Effects) -> None:
        if self._active is not None:
            self._active.watched(now, event, effects)


class _ElectionPort(Protocol):
    """The rest of the controller."""

    def won(self, now: int, epoch: int, epoch_version: int, effects: Effects) -> None:
        """This broker is the controller of an epoch."""

    def lost(self, now: int, effects: Effects) -> None:
        """It is not, or not any more."""


class _Election:
    """A broker's part in the elections of its sessions."""

    __slots__ = (
        "_is_looking",
        "_is_outdated",
        "_port",
        "_session_id",
        "_situation",
        "_takes_part",
        "_zookeeper",
    )

    def __init__(
        self, situation: ZkSituation, zookeeper: SessionRequests, port: _ElectionPort
    ) -> None:
        self._situation = situation
        self._zookeeper = zookeeper
        self._port = port
        self._takes_part = False
        self._is_looking = False
        self._is_outdated = False
        """The watch has fired since the look began."""
        self._session_id = -1
        zookeeper.on_session(self._session)
        zookeeper.on_watch(CONTROLLER, self._watched)

    def begin(self, now: int, effects: Effects) -> None:
        """Take part: the broker is registered."""
        self._takes_part = True
        self.look(now, effects)

    def expired(self, now: int, effects: Effects) -> None:
        """The session is over, and with it all that was made in it."""
        self._takes_part = self._is_looking = False
        self._situation.controller_id = -1
        self._port.lost(now, effects)

    def look(self, now: int, effects: Effects) -> None:
        """Read who is the controller; the read sets the watch that leads here again."""
        if self._takes_part and not self._is_looking:
            self._is_looking = True
            self._zookeeper.coroutines.run(now, self._look(), effects)

    def _session(self, _now: int, event: SessionEvent, _effects: Effects) -> None:
        if event.state is SessionState.CONNECTED:
            self._session_id = event.session_id

    def _watched(self, now: int, _event: WatchEvent, effects: Effects) -> None:
        self._is_outdated = True
        self.look(now, effects)

    async def _look(self) -> None:
        coroutines = self._zookeeper.coroutines
        reads = (GetData(CONTROLLER, watch=True), GetData(CONTROLLER_EPOCH))
        self._is_outdated = True
        while self._is_outdated:
            # The epoch may be of a later controller than the one that was read.
            self._is_outdated = False
            controller, epoch = await self._zookeeper.read(reads)
        self._is_looking = False
        if controller.error == _NO_NODE:
            self._situation.controller_id = -1
            self._port.lost(coroutines.now, coroutines.effects)
            await self._stand(epoch)
            return
        assert controller.stat is not None, controller
        found_id = int(json.loads(controller.data)["brokerid"])
        self._heard_of(coroutines.now, found_id, epoch)
        if controller.stat.ephemeral_owner != self._session_id:
            self._port.lost(coroutines.now, coroutines.effects)
        elif epoch.stat is not None:
            version = epoch.stat.version
            self._port.won(coroutines.now, int(epoch.data), version, coroutines.effects)

    def _heard_of(self, now: int, controller_id: int, epoch: ZkOutcome) -> None:
        situation = self._situation
        if situation.controller_id != controller_id:
            situation.controller_id = controller_id
            situation.alarm.by(now)
        if not epoch.error:
            situation.controller_epoch = max(situation.controller_epoch, int(epoch.data))

    async def _stand(self, epoch: ZkOutcome) -> None:
        """Try to become the controller; whatever comes of it is seen by looking again."""
        if not self._takes_part:
            return
        if epoch.error == _NO_NODE:
            await self._zookeeper.answer(Create(CONTROLLER_EPOCH, b"0"))
        else:
            assert epoch.stat is not None, epoch
            controller_id = self._situation.node_id
            content = {"version": 1, "brokerid": controller_id, "timestamp": "0"}
            raised = str(int(epoch.data) + 1).encode()
            await self._zookeeper.answer(
                Create(CONTROLLER, json.dumps(content).encode(), ephemeral=True),
                SetData(CONTROLLER_EPOCH, raised, epoch.stat.version),
            )
        self.look(self._zookeeper.coroutines.now, self._zookeeper.coroutines.effects)
