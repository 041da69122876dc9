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
from functools import partial
from typing import Final

from clusters.node_port.effects import SEND, Effects
from clusters.node_port.zookeeper import Create, Delete, GetChildren, ZkOutcome
from clusters.reference.nodes.control.topics import deleted
from clusters.reference.nodes.errors import Error
from clusters.reference.nodes.messages.control import DeleteTopicsRequest, DeleteTopicsResponse
from clusters.reference.nodes.records import RemoveTopicRecord
from clusters.reference.zk.control.parts import Parts
from clusters.reference.zk.control.reading import read_all, read_children
from clusters.reference.zk.control.refusals import refuse
from clusters.reference.zk.control.work import Job, Plan
from clusters.reference.zk.control.writes import unit
from clusters.reference.zk.znodes import (
    CONFIG_CHANGES,
    DELETE_TOPICS,
    HOSTS,
    decoded_host,
    deletion_path,
    host_path,
)

__all__ = ["Deletions", "Garbage"]

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

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._awaited: dict[str, set[tuple[int, int]]] = {}
        """(broker id, partition) of the replicas that are still there, by topic."""
        self._waiting: list[_Waiting] = []

    def request(
        self, now: int, source: int, request: DeleteTopicsRequest, effects: Effects
    ) -> None:
        """A client wants topics deleted; it is answered once they are, or its time is over."""
        context = self._parts.context

        def plan() -> Plan:
            decision = deleted(context.view(), request)
            names = [one[0] for one in decision.response.topics if one[2] == _NONE]
            demands = [unit(context, [Create(deletion_path(name), b"")]) for name in names]
            fresh = [name not in context.deleting for name in names]
            units = [one for one, is_fresh in zip(demands, fresh, strict=True) if is_fresh]
            return Plan(units, decision.response)

        def finish(now: int, response: DeleteTopicsResponse, effects: Effects) -> None:
            self._waiting.append(_Waiting(source, response, now + request.timeout_ns))
            self._parts.situation.alarm.by(now + request.timeout_ns)
            self.begin(now, [one[0] for one in response.topics if one[2] == _NONE], effects)
            self._answer(effects)

        self._parts.work.add(now, Job(plan, finish, partial(refuse, source, request)), effects)

    def read(self, now: int, effects: Effects) -> None:
        """Read the demands, which tools write as well, and watch for more."""
        read_children(self._parts.asking, now, DELETE_TOPICS, self._found, effects)

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

    def _found(self, now: int, found: dict[str, ZkOutcome], effects: Effects) -> None:
        if self._parts.work.is_over:
            return
        context = self._parts.context
        known = [name for name in found if name in context.image.topics]
        unknown = [name for name in found if name not in context.image.topics]
        self.begin(now, known, effects)
        for name in unknown:
            context.deleting.pop(name, None)
            one = unit(context, [Delete(deletion_path(name))])
            self._parts.work.add(now, Job(partial(Plan, [one]), _nothing), effects)

    def _remove_if_gone(self, now: int, name: str, topic_id: int, effects: Effects) -> None:
        if self._awaited[name]:
            return

        def finish(_now: int, effects: Effects) -> None:
            self._awaited.pop(name, None)
            self._answer(effects)

        def records() -> list[RemoveTopicRecord]:
            known = self._parts.context.image.names
            return [RemoveTopicRecord(topic_id)] if topic_id in known else []

        self._parts.decide(now, records, effects, finish=finish)

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


def _nothing(_now: int, _response: object, _effects: Effects) -> None:
    pass


class Garbage:
    """The scans of one controller epoch."""

    __slots__ = ("_due_ns", "_parts")

    def __init__(self, parts: Parts) -> None:
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
                read_children(parts.asking, now, HOSTS, self._found, effects)
            read_all(parts.asking, now, [GetChildren(CONFIG_CHANGES)], self._listed, effects)
        parts.situation.alarm.by(self._due_ns)

    def _listed(self, now: int, outcomes: list[ZkOutcome], effects: Effects) -> None:
        if self._parts.work.is_over:
            return
        situation = self._parts.situation
        names, seen = outcomes[0].children, situation.seen_changes
        seen.add(now, names)
        last = seen.last_by(now - 2 * situation.zk_configuration.session_timeout_ns)
        old = [name for name in names if name <= last]
        deletes = [Delete(f"{CONFIG_CHANGES}/{name}") for name in old]
        removals = [unit(self._parts.context, [one]) for one in deletes]
        self._parts.work.add(now, Job(lambda: Plan(removals), _nothing), effects)

    def _found(self, now: int, found: dict[str, ZkOutcome], effects: Effects) -> None:
        if self._parts.work.is_over:
            return

        def plan() -> Plan:
            garbage = [name for name, one in found.items() if self._is_garbage(name, one)]
            removals = [
                unit(self._parts.context, [_removal(name, found[name])]) for name in garbage
            ]
            found.clear()  # Writes of meanwhile are for the next scan.
            return Plan(removals)

        self._parts.work.add(now, Job(plan, _nothing), effects)

    def _is_garbage(self, host: str, outcome: ZkOutcome) -> bool:
        context, broker_id = self._parts.context, decoded_host(outcome.data)
        return broker_id in context.image.brokers and context.hosts[broker_id] != host


def _removal(host: str, outcome: ZkOutcome) -> Delete:
    assert outcome.stat is not None, outcome
    return Delete(host_path(host), outcome.stat.version)
