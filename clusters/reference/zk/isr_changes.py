"""The ISRs that a broker's leaders want, decided by the controller (Z09, Z10) or written by them.

By IsrChange the controller is asked. One request is under way, all pending partitions are in the
next one. A request whose answer did not come may still arrive: it is sent again word for word. Only
an answer ends it. The request names the leader epoch but no version of the state, so the controller
cannot tell a late copy of an older request of the same leader from a new one; nothing here can mend
that. A broker whose incarnation was refused asks for nothing before it is registered anew.

Below the new inter-broker protocol leaders write ISRs, as Kafka's did before 2.7: the state's
znode, over the version that they know. The controller does not watch all states; it is told by a
sequential znode which of them have changed, every now and then.
"""

from collections.abc import Mapping
from typing import Final

from fencepost.clusters.node_port.alarm import NEVER_NS
from fencepost.clusters.node_port.effects import Effects
from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.node_port.zookeeper import Create, GetData, SetData, ZkError
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.replicas.leader import Leader
from fencepost.clusters.reference.nodes.replicas.proposals import RepeatedRequest, drop_proposal
from fencepost.clusters.reference.zk.messages import IsrChange, IsrChangeRequest, IsrChangeResponse
from fencepost.clusters.reference.zk.session_requests import SessionExpiredError
from fencepost.clusters.reference.zk.situation import ZkSituation
from fencepost.clusters.reference.zk.znodes import (
    ISR_CHANGE_PREFIX,
    PartitionStateInfo,
    encoded_isr_change,
    state_path,
)

_NONE: Final = int(Error.NONE)
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
_BAD_VERSION: Final = int(ZkError.BAD_VERSION)
_APART_NS: Final = 2_500 * MS
"""The least time between two notifications (`ReplicaManager.isrChangeNotificationConfig`)."""


class IsrChanges:
    """A broker's: at most one for each partition."""

    __slots__ = ("_pending", "_refused_epoch", "_request", "_requested", "_situation")

    def __init__(self, situation: ZkSituation) -> None:
        self._situation = situation
        self._pending: dict[PartitionKey, tuple[Leader, str, IsrChange]] = {}
        """(leader, topic, change) of those that are not decided, those under way included."""
        self._request = RepeatedRequest(situation)
        self._requested: tuple[PartitionKey, ...] = ()
        """The partitions in it, in its order."""
        self._refused_epoch = -1
        """The broker epoch that was refused last."""

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
        if self._pending and self._situation.broker_epoch != self._refused_epoch:
            self._request.send(now, self._new_request, effects)

    def answered(self, now: int, response: IsrChangeResponse, effects: Effects) -> None:
        """The controller decided, or could not."""
        request = self._request.answered(now, response)
        if request is None:
            return
        if response.error:
            if response.error == _OLD_INCARNATION:
                self._refused_epoch = request.incarnation_id
            return
        for key, (error, _) in zip(self._requested, response.results, strict=True):
            self._decided(now, key, error, effects)
        self.send(now, effects)

    def unreachable(self, now: int, request: IsrChangeRequest, _effects: Effects) -> None:
        """Prepare to send a request again, after a pause: it may have arrived."""
        self._request.unreachable(now, request)

    def tick(self, now: int, effects: Effects) -> None:
        """Send again what was not answered in time."""
        if not self._request.is_awaited(now):
            self.send(now, effects)

    def _new_request(self, correlation: int) -> IsrChangeRequest:
        situation = self._situation
        topics: dict[str, list[IsrChange]] = {}
        keys: dict[str, list[PartitionKey]] = {}
        for key, (_, topic, change) in self._pending.items():
            topics.setdefault(topic, []).append(change)
            keys.setdefault(topic, []).append(key)
        self._requested = tuple(key for found in keys.values() for key in found)
        return IsrChangeRequest(
            correlation,
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
            drop_proposal(now, leader, self._situation, effects)
        elif error not in _GIVEN_UP:
            self._request.back_off(now)
            self.propose(now, leader, change.isr, effects)


def _by_topic(
    topics: Mapping[str, list[IsrChange]],
) -> tuple[tuple[str, tuple[IsrChange, ...]], ...]:
    return tuple((topic, tuple(changes)) for topic, changes in topics.items())


class _Write:
    __slots__ = ("data", "isr", "leader", "path", "topic")

    def __init__(self, leader: Leader, topic: str, info: PartitionStateInfo) -> None:
        self.leader = leader
        self.topic = topic
        self.isr = info.isr
        self.data = info.encoded()
        self.path = state_path(topic, leader.key[1])


class IsrWrites:
    """A broker's writes of ISRs: at most one under way for each partition."""

    __slots__ = ("_changed", "_notified_ns", "_situation", "_writing")

    def __init__(self, situation: ZkSituation) -> None:
        self._situation = situation
        self._writing: dict[PartitionKey, _Write] = {}
        self._changed: dict[tuple[str, int], None] = {}
        """(topic, partition) of the states that the controller has not been told of."""
        self._notified_ns = -NEVER_NS

    def propose(self, now: int, leader: Leader, isr: tuple[int, ...], effects: Effects) -> None:
        """Write this ISR, unless an earlier one of the partition is still being written."""
        if leader.key in self._writing:
            return
        leader.propose(isr)
        state = self._situation.assigned[leader.key]
        info = PartitionStateInfo(
            state.controller_epoch, self._situation.node_id, leader.leader_epoch, isr
        )
        self._writing[leader.key] = write = _Write(leader, state.topic, info)
        self._situation.zookeeper.coroutines.run(now, self._write(write), effects)

    def tick(self, now: int, effects: Effects) -> None:
        """Tell the controller what has changed, if it is time."""
        if self._changed:
            self._notify(now, effects)

    async def _write(self, write: _Write) -> None:
        """Write; once more in each session that begins before it is answered."""
        is_answered = False
        while not is_answered:
            try:
                version = await self._version(write)
                is_answered = True
            except SessionExpiredError:
                continue
        coroutines = self._situation.zookeeper.coroutines
        self._end(coroutines.now, write, version, coroutines.effects)

    async def _version(self, write: _Write) -> int | None:
        """Return the version of the state that was written; None: it was not."""
        zookeeper = self._situation.zookeeper
        # Rule state_written_by_version.
        by_version = self._situation.rules.state_written_by_version
        version = write.leader.partition_epoch if by_version else -1
        response = await zookeeper.answer(SetData(write.path, write.data, version))
        if response.error == _BAD_VERSION:
            # Its own first try may have made that version.
            response = await zookeeper.answer(GetData(write.path))
            if not response.error and response.outcomes[0].data != write.data:
                return None
        stat = response.outcomes[0].stat if not response.error else None
        return None if stat is None else stat.version

    def _end(self, now: int, write: _Write, version: int | None, effects: Effects) -> None:
        """The write is in force under this version; or not (None), and LeaderAndIsr will come."""
        leader = write.leader
        self._writing.pop(leader.key, None)
        if version is None:
            return
        self._changed[write.topic, leader.key[1]] = None
        self._notify(now, effects)
        if not leader.ended:
            leader.committed(write.isr, version)
            leader.advance(now, effects)

    def _notify(self, now: int, effects: Effects) -> None:
        due_ns = self._notified_ns + _APART_NS
        if now < due_ns:
            self._situation.alarm.by(due_ns)
            return
        self._notified_ns = now
        changed, self._changed = tuple(self._changed), {}
        self._situation.zookeeper.coroutines.run(now, self._tell(changed), effects)

    async def _tell(self, changed: tuple[tuple[str, int], ...]) -> None:
        create = Create(ISR_CHANGE_PREFIX, encoded_isr_change(changed), sequential=True)
        try:
            await self._situation.zookeeper.answer(create)
        except SessionExpiredError:
            self._changed.update(dict.fromkeys(changed))
