"""Removals from ZooKeeper: topics whose deletion a znode demands, and garbage.

A topic is deleted by its brokers, and is gone once every replica is. Until then brokers hide it, it
has no leader, and no topic of its name is created. The controller waits for replicas on brokers
that are away.

Garbage are hosts whose id is registered by another host (H05), and notifications that are read. A
notification of changed settings is garbage once this broker has known of it, in office or not, for
twice the time-out of a session: brokers read it when their watch fires, and read all settings anew
when they were away for a session.

Source: Kafka's `TopicDeletionManager`, `ZkNodeChangeNotificationListener`
(`purgeObsoleteNotifications`); the draft "Broker id by host name", garbage collection.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from fencepost.clusters.node_port.effects import SEND, Effects
from fencepost.clusters.node_port.zookeeper import Create, Delete, GetChildren, ZkOutcome
from fencepost.clusters.reference.nodes.control.topics import deleted
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.control import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from fencepost.clusters.reference.nodes.records import RemoveTopicRecord
from fencepost.clusters.reference.zk.control.controller_state import ControllerState
from fencepost.clusters.reference.zk.control.job_queue import JobPlan
from fencepost.clusters.reference.zk.control.writes import unit
from fencepost.clusters.reference.zk.znodes import (
    CONFIG_CHANGES,
    DELETE_TOPICS,
    HOSTS,
    decoded_host,
    deletion_path,
    host_path,
)

_NONE: Final = int(Error.NONE)


class _Waiting:
    """A client's request, and its answer once all of its topics are gone."""

    __slots__ = ("deadline_ns", "response", "source")

    def __init__(self, source: int, response: DeleteTopicsResponse, deadline_ns: int) -> None:
        self.source = source
        self.response = response
        self.deadline_ns = deadline_ns


class Deletions:
    """The deletions of one controller epoch."""

    __slots__ = ("_awaited", "_parts", "_waiting")

    def __init__(self, parts: ControllerState) -> None:
        self._parts = parts
        self._awaited: dict[str, set[tuple[int, int]]] = {}
        """(broker id, partition) of the replicas that are still there, by topic."""
        self._waiting: list[_Waiting] = []

    async def request(self, source: int, request: DeleteTopicsRequest) -> None:
        """A client wants topics deleted; it is answered once they are, or its time is over."""
        parts, turn = self._parts, self._parts.coroutines
        response = await parts.answer(source, request, lambda: self._demands(request))
        deadline_ns = turn.now + request.timeout_ns
        self._waiting.append(_Waiting(source, response, deadline_ns))
        parts.situation.alarm.by(deadline_ns)
        names = [one[0] for one in response.topics if one[2] == _NONE]
        self.begin(turn.now, names, turn.effects)
        self._answer(turn.effects)

    def _demands(self, request: DeleteTopicsRequest) -> JobPlan:
        context = self._parts.context
        decision = deleted(context.view(), request)
        names = [one[0] for one in decision.response.topics if one[2] == _NONE]
        fresh = [name for name in names if name not in context.deleting]
        demands = [unit(context, [Create(deletion_path(name), b"")]) for name in fresh]
        return JobPlan(demands, decision.response)

    async def read(self) -> None:
        """Read the demands, which tools write as well, and watch for more."""
        parts, context, turn = self._parts, self._parts.context, self._parts.coroutines
        found = await parts.zookeeper.read_children(DELETE_TOPICS)
        known = [name for name in found if name in context.image.topics]
        unknown = [name for name in found if name not in context.image.topics]
        self.begin(turn.now, known, turn.effects)
        for name in unknown:
            context.deleting.pop(name, None)
            turn.spawn(parts.removed([Delete(deletion_path(name))]))

    def begin(self, now: int, names: Iterable[str], effects: Effects) -> None:
        """Have all replicas of these topics deleted."""
        context, channels = self._parts.context, self._parts.channels
        for name in names:
            topic_id = context.image.topics.get(name)
            if topic_id is None or name in self._awaited:
                continue
            context.deleting[name] = None
            self._awaited[name] = {
                (broker_id, key[1])
                for key in context.image.partitions_of(topic_id)
                for broker_id in context.image.partitions[key].replicas
            }
            channels.delete(name)
            self._remove_if_gone(now, name, topic_id, effects)
        channels.flush(now, effects)

    def deleted(
        self, now: int, broker_id: int, replicas: list[tuple[str, int]], effects: Effects
    ) -> None:
        """A broker has deleted these replicas: (topic, partition)."""
        for name, partition in replicas:
            awaited = self._awaited.get(name, set())
            if (broker_id, partition) in awaited:
                awaited.discard((broker_id, partition))
                topic_id = self._parts.context.image.topics[name]
                self._remove_if_gone(now, name, topic_id, effects)

    def tick(self, now: int, effects: Effects) -> None:
        """Answer those whose time is over; the deletions go on."""
        for one in self._waiting:
            if one.deadline_ns <= now:
                self._give_up(one, effects)
            else:
                self._parts.situation.alarm.by(one.deadline_ns)
        self._waiting = [one for one in self._waiting if one.deadline_ns > now]

    def abandon(self, effects: Effects) -> None:
        """Another controller goes on with the deletions."""
        for one in self._waiting:
            self._give_up(one, effects)
        self._waiting.clear()

    def _remove_if_gone(self, now: int, name: str, topic_id: int, effects: Effects) -> None:
        if not self._awaited[name]:
            self._parts.coroutines.run(now, self._remove(name, topic_id), effects)

    async def _remove(self, name: str, topic_id: int) -> None:
        known = self._parts.context.image.names
        await self._parts.decided(
            lambda: [RemoveTopicRecord(topic_id)] if topic_id in known else []
        )
        self._awaited.pop(name, None)
        self._answer(self._parts.coroutines.effects)

    def _answer(self, effects: Effects) -> None:
        """Answer those whose topics are all gone."""
        ready = [one for one in self._waiting if not self._left(one.response)]
        for one in ready:
            effects.append((SEND, one.source, one.response))
            self._waiting.remove(one)

    def _left(self, response: DeleteTopicsResponse) -> set[int]:
        """Return the ids of the topics that are still there."""
        wanted = {topic_id for _, topic_id, error in response.topics if error == _NONE}
        return wanted & self._parts.context.image.names.keys()

    def _give_up(self, one: _Waiting, effects: Effects) -> None:
        left = self._left(one.response)
        late = int(Error.REQUEST_TIMED_OUT)
        topics = tuple(
            (name, topic_id, late if topic_id in left else error)
            for name, topic_id, error in one.response.topics
        )
        effects.append((SEND, one.source, replace(one.response, topics=topics)))


class Garbage:
    """The scans of one controller epoch."""

    __slots__ = ("_due_ns", "_parts")

    def __init__(self, parts: ControllerState) -> None:
        self._parts = parts
        self._due_ns = 0

    def tick(self, now: int, effects: Effects) -> None:
        """Scan when it is time."""
        parts = self._parts
        interval_ns = parts.situation.zk_configuration.garbage_scan_interval_ns
        if not interval_ns:
            return
        if now >= self._due_ns:
            self._due_ns = now + interval_ns
            # Rule host_garbage_removed.
            if parts.situation.rules.host_garbage_removed:
                parts.coroutines.run(now, self._remove_hosts(), effects)
            parts.coroutines.run(now, self._remove_notifications(), effects)
        parts.situation.alarm.by(self._due_ns)

    async def _remove_notifications(self) -> None:
        parts, situation = self._parts, self._parts.situation
        (found,) = await parts.zookeeper.read([GetChildren(CONFIG_CHANGES)])
        names, seen, now = found.children, situation.seen_changes, parts.coroutines.now
        seen.add(now, names)
        last = seen.last_by(now - 2 * situation.zk_configuration.session_timeout_ns)
        await parts.removed([Delete(f"{CONFIG_CHANGES}/{name}") for name in names if name <= last])

    async def _remove_hosts(self) -> None:
        found = await self._parts.zookeeper.read_children(HOSTS)
        await self._parts.work.done(lambda: self._removals(found))

    def _removals(self, found: dict[str, ZkOutcome]) -> JobPlan:
        garbage = [name for name, one in found.items() if self._is_garbage(name, one)]
        removals = [unit(self._parts.context, [_removal(name, found[name])]) for name in garbage]
        found.clear()  # Writes of meanwhile are for the next scan.
        return JobPlan(removals)

    def _is_garbage(self, host: str, outcome: ZkOutcome) -> bool:
        context, broker_id = self._parts.context, decoded_host(outcome.data)
        return broker_id in context.image.brokers and context.hosts[broker_id] != host


def _removal(host: str, outcome: ZkOutcome) -> Delete:
    assert outcome.stat is not None, outcome
    return Delete(host_path(host), outcome.stat.version)
