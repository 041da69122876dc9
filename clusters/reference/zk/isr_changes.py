"""IsrChange: the ISRs that a broker's leaders ask the controller for (Z09, Z10).

One request is under way, all pending partitions are in the next one. A request whose answer did not
come may still arrive: it is sent again word for word. Only an answer ends it. The request names the
leader epoch but no version of the state, so the controller cannot tell a late copy of an older
request of the same leader from a new one; nothing here can mend that.

A broker whose incarnation was refused asks for nothing before it is registered anew.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from clusters.node_port.effects import SEND, Effects
from clusters.node_port.storage import PartitionKey
from clusters.reference.nodes.errors import Error
from clusters.reference.nodes.replicas.leader import Leader
from clusters.reference.zk.messages import IsrChange, IsrChangeRequest, IsrChangeResponse
from clusters.reference.zk.situation import ZkSituation

__all__ = ["IsrChanges"]

_NONE: Final = int(Error.NONE)
_NOT_CONTROLLER: Final = int(Error.NOT_CONTROLLER)
_OLD_INCARNATION: Final = int(Error.INVALID_INCARNATION_ID)
_INELIGIBLE: Final = int(Error.INELIGIBLE_REPLICA)
_GIVEN_UP: Final = frozenset(
    {
        int(Error.NOT_LEADER_OR_FOLLOWER),
        int(Error.INVALID_REQUEST),
        int(Error.UNKNOWN_TOPIC_OR_PARTITION),
    }
)
"""The errors after which a change waits for a newer LeaderAndIsr: not dropped, not repeated."""


class IsrChanges:
    """A broker's: at most one for each partition."""

    __slots__ = (
        "_asked_id",
        "_correlation",
        "_not_before_ns",
        "_pending",
        "_refused_epoch",
        "_request",
        "_requested",
        "_sent_ns",
        "_situation",
    )

    def __init__(self, situation: ZkSituation) -> None:
        self._situation = situation
        self._pending: dict[PartitionKey, tuple[Leader, str, IsrChange]] = {}
        """(leader, topic, change) of those that are not decided, those under way included."""
        self._request: IsrChangeRequest | None = None
        """Under way, until it is answered."""
        self._requested: tuple[PartitionKey, ...] = ()
        """The partitions in it, in its order."""
        self._asked_id = -1
        """The controller to which it was sent; -1: it has to be sent again."""
        self._refused_epoch = -1
        """The broker epoch that was refused last."""
        self._sent_ns = 0
        self._not_before_ns = 0
        self._correlation = 0

    def propose(self, now: int, leader: Leader, isr: tuple[int, ...], effects: Effects) -> None:
        """Ask for this ISR, unless an earlier change of the partition is not decided yet."""
        if leader.key in self._pending:
            return
        leader.propose(isr)
        # Rule member_incarnations_checked.
        is_checked = self._situation.rules.member_incarnations_checked
        incarnations = leader.epochs_of(isr) if is_checked else ()
        change = IsrChange(leader.key[1], leader.leader_epoch, isr, incarnations)
        topic = self._situation.assigned[leader.key].topic
        self._pending[leader.key] = (leader, topic, change)
        self.send(now, effects)

    def send(self, now: int, effects: Effects) -> None:
        """Send what waits, if nothing is under way; or what is, once more, if it was lost."""
        situation = self._situation
        target = situation.controller_id
        if not self._pending or self._asked_id >= 0 or target < 0:
            return
        if situation.broker_epoch == self._refused_epoch:
            return
        if now < self._not_before_ns:
            situation.alarm.by(self._not_before_ns)
            return
        situation.alarm.by(now + situation.configuration.request_timeout_ns)
        self._correlation += 1
        if self._request is None:
            self._request = self._new_request()
        else:
            self._request = replace(self._request, correlation=self._correlation)
        self._asked_id, self._sent_ns = target, now
        effects.append((SEND, target, self._request))

    def answered(self, now: int, response: IsrChangeResponse, effects: Effects) -> None:
        """The controller decided, or could not."""
        request = self._request
        if request is None or self._asked_id < 0 or response.correlation != request.correlation:
            return
        self._asked_id = -1
        if response.error == _NOT_CONTROLLER:
            self._back_off(now)
            return
        self._request = None
        if response.error:
            self._back_off(now)
            if response.error == _OLD_INCARNATION:
                self._refused_epoch = request.incarnation_id
            return
        for key, (error, _) in zip(self._requested, response.results, strict=True):
            self._decided(now, key, error, effects)
        self.send(now, effects)

    def unreachable(self, now: int, request: IsrChangeRequest) -> None:
        """Prepare to send a request again, after a pause: it may have arrived."""
        known = self._request
        if known is not None and known.correlation == request.correlation and self._asked_id >= 0:
            self._asked_id = -1
            self._back_off(now)

    def tick(self, now: int, effects: Effects) -> None:
        """Send again what was not answered in time."""
        if self._asked_id >= 0:
            given_up_ns = self._sent_ns + self._situation.configuration.request_timeout_ns
            if now < given_up_ns:
                self._situation.alarm.by(given_up_ns)
                return
            self._asked_id = -1
        self.send(now, effects)

    def _new_request(self) -> IsrChangeRequest:
        situation = self._situation
        topics: dict[str, list[IsrChange]] = {}
        keys: dict[str, list[PartitionKey]] = {}
        for key, (_, topic, change) in self._pending.items():
            topics.setdefault(topic, []).append(change)
            keys.setdefault(topic, []).append(key)
        self._requested = tuple(key for found in keys.values() for key in found)
        return IsrChangeRequest(
            self._correlation,
            situation.node_id,
            situation.broker_epoch,
            1 if situation.rules.member_incarnations_checked else 0,
            _by_topic(topics),
        )

    def _decided(self, now: int, key: PartitionKey, error: int, effects: Effects) -> None:
        leader, _, change = self._pending.pop(key)
        if leader.ended:
            return
        if error == _NONE:
            # The answer names no version of the state; leaders that ask need none.
            leader.committed(change.isr, leader.partition_epoch)
            leader.advance(now, effects)
        elif error == _INELIGIBLE:
            self._drop(now, leader, effects)
        elif error not in _GIVEN_UP:
            self._back_off(now)
            self.propose(now, leader, change.isr, effects)

    def _drop(self, now: int, leader: Leader, effects: Effects) -> None:
        """Go back to the committed ISR: the controller is sure that it holds (KIP-903)."""
        # Rule refused_proposal_dropped.
        if self._situation.rules.refused_proposal_dropped:
            leader.propose(None)
            leader.advance(now, effects)

    def _back_off(self, now: int) -> None:
        self._not_before_ns = now + self._situation.configuration.retry_backoff_ns
        self._situation.alarm.by(self._not_before_ns)


def _by_topic(
    topics: Mapping[str, list[IsrChange]],
) -> tuple[tuple[str, tuple[IsrChange, ...]], ...]:
    return tuple((topic, tuple(changes)) for topic, changes in topics.items())
