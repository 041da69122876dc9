"""Proposals of ISRs to the controller: one request under way, all pending partitions in the next.

A request whose answer did not come may still arrive: it is sent again word for word, broker epochs
included, so that nothing is decided which was not proposed. Only an answer ends it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Protocol

from fencepost.clusters.node_port.effects import NOTE, SEND, Effects
from fencepost.clusters.node_port.notes import PROPOSED
from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.levels import LEVEL_EPOCHS
from fencepost.clusters.reference.nodes.messages.control import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from fencepost.clusters.reference.nodes.replicas.leader import Leader
from fencepost.clusters.reference.nodes.situation import Situation

_NONE: Final = int(Error.NONE)
_NOT_CONTROLLER: Final = int(Error.NOT_CONTROLLER)
_INELIGIBLE: Final = int(Error.INELIGIBLE_REPLICA)
_GIVEN_UP: Final = frozenset(
    {
        int(Error.UNKNOWN_TOPIC_OR_PARTITION),
        int(Error.UNKNOWN_TOPIC_ID),
        int(Error.FENCED_LEADER_EPOCH),
        int(Error.INVALID_UPDATE_VERSION),
        int(Error.INVALID_REQUEST),
        int(Error.NEW_LEADER_ELECTED),
    }
)
"""The errors after which a proposal waits for newer metadata: not dropped, not repeated."""
_VERSION: Final = 2
_VERSION_WITH_EPOCHS: Final = 3


class IsrProposals(Protocol):
    """The way by which a broker has ISRs decided: at most one proposal for each partition."""

    def propose(self, now: int, leader: Leader, isr: tuple[int, ...], effects: Effects) -> None:
        """Ask for this ISR, unless an earlier proposal of the partition is not answered yet."""

    def tick(self, now: int, effects: Effects) -> None:
        """Look at what is due."""


class RepeatedRequest:
    """The request to the controller that is under way: it is sent again until it is answered."""

    __slots__ = (
        "_asked_id",
        "_correlation",
        "_not_before_ns",
        "_request",
        "_sent_ns",
        "_situation",
    )

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._request: Any = None
        """Under way, until it is answered."""
        self._asked_id = -1
        """The controller to which it was sent; -1: it has to be sent again."""
        self._sent_ns = 0
        self._not_before_ns = 0
        self._correlation = 0

    def send(self, now: int, build: Callable[[int], Any], effects: Effects) -> None:
        """Send a new one if none is under way, by its correlation; or that one, if it was lost."""
        target = self._situation.controller_id
        if self._asked_id >= 0 or target < 0:
            return
        alarm = self._situation.alarm
        if now < self._not_before_ns:
            alarm.by(self._not_before_ns)
            return
        alarm.by(now + self._situation.configuration.request_timeout_ns)
        self._correlation += 1
        if self._request is None:
            self._request = build(self._correlation)
        else:
            self._request = replace(self._request, correlation=self._correlation)
        self._asked_id, self._sent_ns = target, now
        effects.append((SEND, target, self._request))

    def answered(self, now: int, response: Any) -> Any:
        """Return the request that is over with this answer; None: it goes on, or was another."""
        request = self._request
        if request is None or self._asked_id < 0 or response.correlation != request.correlation:
            return None
        self._asked_id = -1
        if response.error:
            self.back_off(now)
        if response.error == _NOT_CONTROLLER:
            return None
        self._request = None
        return request

    def unreachable(self, now: int, request: Any) -> None:
        """Prepare to send a request again, after a pause: it may have arrived."""
        known = self._request
        if known is not None and known.correlation == request.correlation and self._asked_id >= 0:
            self._asked_id = -1
            self.back_off(now)

    def is_awaited(self, now: int) -> bool:
        """Return whether an answer may still come in time; if so, there will be a tick."""
        if self._asked_id < 0:
            return False
        given_up_ns = self._sent_ns + self._situation.configuration.request_timeout_ns
        if now < given_up_ns:
            self._situation.alarm.by(given_up_ns)
            return True
        self._asked_id = -1
        return False

    def back_off(self, now: int) -> None:
        """Send nothing for a while."""
        self._not_before_ns = now + self._situation.configuration.retry_backoff_ns
        self._situation.alarm.by(self._not_before_ns)


def drop_proposal(now: int, leader: Leader, situation: Situation, effects: Effects) -> None:
    """Go back to the committed ISR: the controller is sure that it holds (KIP-903)."""
    # Rule refused_proposal_dropped.
    if situation.rules.refused_proposal_dropped:
        leader.propose(None)
        leader.advance(now, effects)


class Proposals:
    """A broker's, by AlterPartition."""

    __slots__ = ("_pending", "_request", "_situation")

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._request = RepeatedRequest(situation)
        self._pending: dict[PartitionKey, tuple[Leader, AlterPartitionItem]] = {}
        """The pending proposals, those under way included."""

    def propose(self, now: int, leader: Leader, isr: tuple[int, ...], effects: Effects) -> None:
        """Ask for this ISR, unless an earlier proposal of the partition is not answered yet."""
        if leader.key in self._pending:
            return
        leader.propose(isr)
        item = AlterPartitionItem(
            leader.key, leader.leader_epoch, leader.partition_epoch, isr, leader.epochs_of(isr)
        )
        self._pending[leader.key] = (leader, item)
        fetched = tuple(map(leader.fetched_epoch, isr))
        effects.append((NOTE, PROPOSED, leader.key, isr, leader.partition_epoch, fetched))
        self.send(now, effects)

    def send(self, now: int, effects: Effects) -> None:
        """Send what waits, if nothing is under way; or what is, once more, if it was lost."""
        if self._pending:
            self._request.send(now, self._new_request, effects)

    def answered(self, now: int, response: AlterPartitionResponse, effects: Effects) -> None:
        """The controller decided, or could not."""
        request = self._request.answered(now, response)
        if request is None:
            return
        if response.error:
            self._failed(request, response.error)
            return
        for item in response.items:
            self._decided(now, item, effects)
        self.send(now, effects)

    def unreachable(self, now: int, request: AlterPartitionRequest, _effects: Effects) -> None:
        """Prepare to send a request again, after a pause: it may have arrived."""
        self._request.unreachable(now, request)

    def tick(self, now: int, effects: Effects) -> None:
        """Send again what was not answered in time."""
        if not self._request.is_awaited(now):
            self.send(now, effects)

    def _new_request(self, correlation: int) -> AlterPartitionRequest:
        situation = self._situation
        with_epochs = situation.level >= LEVEL_EPOCHS
        items = tuple(item for _, item in self._pending.values())
        if not with_epochs:
            items = tuple(_without_epochs(item) for item in items)
        return AlterPartitionRequest(
            correlation,
            situation.node_id,
            situation.broker_epoch,
            _VERSION_WITH_EPOCHS if with_epochs else _VERSION,
            items,
        )

    def _failed(self, request: AlterPartitionRequest, error: int) -> None:
        """The request as a whole was refused; its items are sent anew with the present epoch."""
        if error in _GIVEN_UP:
            for item in request.items:
                self._pending.pop(item.key, None)

    def _decided(self, now: int, item: AlterPartitionItem, effects: Effects) -> None:
        leader, _ = self._pending.pop(item.key, (None, None))
        if leader is None or leader.ended:
            return
        if item.error == _NONE:
            if (
                item.leader_epoch == leader.leader_epoch
                and item.partition_epoch >= leader.partition_epoch
            ):
                leader.committed(item.isr, item.partition_epoch)
                leader.advance(now, effects)
        elif item.error == _INELIGIBLE:
            drop_proposal(now, leader, self._situation, effects)
        elif item.error not in _GIVEN_UP and leader.proposed is not None:
            self._request.back_off(now)
            self.propose(now, leader, leader.proposed, effects)


def _without_epochs(item: AlterPartitionItem) -> AlterPartitionItem:
    return AlterPartitionItem(item.key, item.leader_epoch, item.partition_epoch, item.isr, ())
