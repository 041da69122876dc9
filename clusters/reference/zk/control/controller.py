"""The controller of the ZooKeeper generation: a part of every broker, active in one of them.

It takes part in the election as long as its broker is registered, and answers NOT_CONTROLLER unless
it has won and loaded everything. All that it knows is of one controller epoch, and is thrown away
with it.

Source: Kafka's `KafkaController`; the draft "Controller heartbeats, broker incarnation ids".
"""

from typing import Any, Final

from clusters.node_port.effects import NOTE, Effects
from clusters.node_port.notes import CONTROLLER_ELECTED
from clusters.node_port.zookeeper import WatchEvent
from clusters.reference.nodes.errors import Error
from clusters.reference.nodes.messages.control import DeleteTopicsRequest
from clusters.reference.zk.asking import Asking
from clusters.reference.zk.configuration import InterBrokerProtocol
from clusters.reference.zk.control.active import ActiveController
from clusters.reference.zk.control.channels import ANSWERS, REQUESTS, Local
from clusters.reference.zk.control.context import Context
from clusters.reference.zk.control.election import Election
from clusters.reference.zk.control.refusals import refuse
from clusters.reference.zk.control.requests import DECIDED
from clusters.reference.zk.messages import (
    ControlledShutdownRequest,
    IsrChangeRequest,
    MetadataHeartbeatRequest,
)
from clusters.reference.zk.situation import ZkSituation
from clusters.reference.zk.znodes import BROKER_IDS, DELETE_TOPICS, ISR_CHANGES, TOPICS

__all__ = ["ANSWERED", "CONTROLLED", "Controller"]

_OF_DRAFT: Final = frozenset({MetadataHeartbeatRequest.kind, IsrChangeRequest.kind})
CONTROLLED: Final = DECIDED | _OF_DRAFT | {ControlledShutdownRequest.kind, DeleteTopicsRequest.kind}
"""The kinds of what is asked of a controller."""
ANSWERED: Final = ANSWERS
"""The kinds of brokers' answers to its requests."""


class Controller:
    """A broker's part in controlling the cluster."""

    __slots__ = ("_active", "_asking", "_correlation", "_election", "_local", "_situation")

    def __init__(self, situation: ZkSituation, asking: Asking, *, local: Local) -> None:
        self._situation = situation
        self._asking = asking
        self._local = local
        self._correlation = 0
        self._active: ActiveController | None = None
        self._election = Election(situation, asking, self)
        for path in (BROKER_IDS, TOPICS, DELETE_TOPICS, ISR_CHANGES):
            asking.on_watch(path, self._watched)
        for parent in (BROKER_IDS, TOPICS):
            asking.on_watch(f"{parent}/", self._watched)

    @property
    def is_active(self) -> bool:
        """Return whether it has won the election and loaded everything."""
        return self._active is not None and self._active.is_loaded

    @property
    def context(self) -> Context | None:
        """What it knows as the active controller."""
        return None if self._active is None else self._active.context

    def registered(self, now: int, effects: Effects) -> None:
        """The broker is registered: take part in the election."""
        self._election.begin(now, effects)

    def expired(self, _now: int, effects: Effects) -> None:
        """The broker's session is over: resign at once."""
        self._election.expired(effects)

    def request(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Take one of CONTROLLED."""
        known = self._situation.configuration.inter_broker_protocol_max
        if kind in _OF_DRAFT and known < InterBrokerProtocol.HEARTBEATS:
            refuse(source, message, Error.UNSUPPORTED_VERSION, effects)
        elif self._active is None or not self._active.is_loaded:
            refuse(source, message, Error.NOT_CONTROLLER, effects)
        else:
            self._active.request(now, source, message, effects)

    def answered(self, now: int, _source: int, _kind: int, message: Any, effects: Effects) -> None:
        """Take one of ANSWERED."""
        if self._active is not None:
            self._active.answered(now, message, effects)

    def unreachable(self, now: int, _source: int, request: Any, _effects: Effects) -> None:
        """A request to a broker is lost."""
        if self._active is not None and request.kind in REQUESTS:
            self._active.unreachable(now, request)

    def tick(self, now: int, effects: Effects) -> None:
        """Look at what is due, and say when something will be."""
        if self._active is not None:
            self._active.tick(now, effects)

    # What the election tells.

    def won(self, now: int, epoch: int, epoch_version: int, effects: Effects) -> None:
        """The broker is the controller of this epoch."""
        if self._active is not None:
            return
        effects.append((NOTE, CONTROLLER_ELECTED, epoch))
        context = Context(self._situation, epoch=epoch, epoch_version=epoch_version)
        self._active = ActiveController(
            context,
            self._asking,
            local=self._local,
            correlation=self._correlation,
            deposed=self._deposed,
        )
        self._active.begin(now, effects)

    def lost(self, effects: Effects) -> None:
        """The broker is not the controller."""
        active, self._active = self._active, None
        if active is not None:
            self._correlation = active.correlation
            active.end(effects)

    def _deposed(self, now: int, effects: Effects) -> None:
        self.lost(effects)
        self._election.look(now, effects)

    def _watched(self, now: int, event: WatchEvent, effects: Effects) -> None:
        if self._active is not None:
            self._active.watched(now, event, effects)
