"""ISRs below the new inter-broker protocol: written by their leaders, as Kafka did before 2.7.

A leader writes the state's znode over the version that it knows. The controller does not watch all
states; it is told by a sequential znode which of them have changed, every now and then.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from clusters.node_port.alarm import NEVER_NS
from clusters.node_port.effects import Effects
from clusters.node_port.storage import PartitionKey
from clusters.node_port.zookeeper import Create, GetData, SetData, ZkError
from clusters.reference.nodes.configuration import MS
from clusters.reference.nodes.replicas.leader import Leader
from clusters.reference.zk.asking import Answer
from clusters.reference.zk.situation import ZkSituation
from clusters.reference.zk.znodes import (
    ISR_CHANGE_PREFIX,
    PartitionStateInfo,
    encoded_isr_change,
    state_path,
)

__all__ = ["IsrWrites"]

_EXPIRED: Final = int(ZkError.SESSION_EXPIRED)
_BAD_VERSION: Final = int(ZkError.BAD_VERSION)
_APART_NS: Final = 2_500 * MS
"""The least time between two notifications (`ReplicaManager.isrChangeNotificationConfig`)."""


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
        self._write(now, write, effects)

    def tick(self, now: int, effects: Effects) -> None:
        """Tell the controller what has changed, if it is time."""
        if self._changed:
            self._notify(now, effects)

    def _write(self, _now: int, write: _Write, effects: Effects) -> None:
        # Rule state_written_by_version.
        by_version = self._situation.rules.state_written_by_version
        version = write.leader.partition_epoch if by_version else -1
        self._ask(SetData(write.path, write.data, version), write, self._written, effects)

    def _ask(
        self,
        operation: SetData | GetData,
        write: _Write,
        then: Callable[[_Write, int, Answer, Effects], None],
        effects: Effects,
    ) -> None:
        self._situation.asking.ask((operation,), partial(then, write), effects)

    def _written(self, write: _Write, now: int, answer: Answer, effects: Effects) -> None:
        response = answer.response
        if response.error == _EXPIRED:
            self._write(now, write, effects)
        elif response.error == _BAD_VERSION:
            # Its own first try may have made that version.
            self._ask(GetData(write.path), write, self._compared, effects)
        else:
            stat = response.outcomes[0].stat if not response.error else None
            self._end(now, write, None if stat is None else stat.version, effects)

    def _compared(self, write: _Write, now: int, answer: Answer, effects: Effects) -> None:
        response = answer.response
        if response.error == _EXPIRED:
            self._write(now, write, effects)
            return
        found = None if response.error else response.outcomes[0]
        is_own = found is not None and found.data == write.data
        stat = found.stat if found is not None and is_own else None
        self._end(now, write, None if stat is None else stat.version, effects)

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
        create = Create(ISR_CHANGE_PREFIX, encoded_isr_change(changed), sequential=True)
        self._situation.asking.ask((create,), partial(self._notified, changed), effects)

    def _notified(
        self, changed: tuple[tuple[str, int], ...], _now: int, answer: Answer, _effects: Effects
    ) -> None:
        if answer.response.error == _EXPIRED:
            self._changed.update(dict.fromkeys(changed))
