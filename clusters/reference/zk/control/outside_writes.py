"""Znodes that others than the controller write, and by which they tell it.

Tools write /brokers/topics by themselves: they make topics, and let them grow. Leaders below the
new inter-broker protocol write states by themselves, and then a sequential znode below
/isr_change_notification that names them; the controller reads the states, tells brokers for their
clients, and removes the znode.

Source: Kafka's `KafkaController.processTopicChange`, `processPartitionModifications`,
`processIsrChangeNotification`.
"""

from functools import partial

from clusters.node_port.effects import Effects
from clusters.node_port.storage import PartitionKey
from clusters.node_port.zookeeper import Delete, GetChildren, GetData, ZkOutcome
from clusters.reference.zk.control.change import StateChange
from clusters.reference.zk.control.leaders import begun
from clusters.reference.zk.control.parts import Parts
from clusters.reference.zk.control.reading import read_all, read_children
from clusters.reference.zk.control.work import Job, Plan, WorkPort
from clusters.reference.zk.control.writes import unit
from clusters.reference.zk.znodes import (
    ISR_CHANGES,
    TOPICS,
    TopicInfo,
    decoded_isr_change,
    state_path,
    topic_path,
)

__all__ = ["IsrNotifications", "Topics"]


class Topics:
    """The znodes of topics that one controller epoch watches."""

    __slots__ = ("_parts", "_watched")

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._watched: set[str] = set()

    def loaded(self) -> None:
        """All topics were read, and are watched."""
        self._watched = set(self._parts.context.assignments)

    def read(self, now: int, effects: Effects) -> None:
        """Read which topics there are, and watch for more; read those that are new."""
        then = self._listed
        read_all(self._parts.asking, now, [GetChildren(TOPICS, watch=True)], then, effects)

    def read_one(self, now: int, name: str, effects: Effects) -> None:
        """Read a topic that has changed, and watch it."""
        self._watched.discard(name)
        self._read(now, [name], effects)

    def _listed(self, now: int, outcomes: list[ZkOutcome], effects: Effects) -> None:
        names = outcomes[0].children
        self._watched &= set(names)
        self._read(now, [name for name in names if name not in self._watched], effects)

    def _read(self, now: int, names: list[str], effects: Effects) -> None:
        if not self._parts.work.is_over and names:
            self._watched |= set(names)
            reads = [GetData(topic_path(name), watch=True) for name in names]
            then = partial(self._found, names)
            read_all(self._parts.asking, now, reads, then, effects)

    def _found(
        self, names: list[str], now: int, outcomes: list[ZkOutcome], effects: Effects
    ) -> None:
        if not self._parts.work.is_over:
            found = dict(zip(names, outcomes, strict=True))
            self._parts.decide(now, tuple, effects, finish=partial(self._take, found))

    def _take(self, found: dict[str, ZkOutcome], now: int, effects: Effects) -> None:
        context = self._parts.context
        for name, one in found.items():
            if one.stat is None:
                self._watched.discard(name)
            elif one.stat.version > context.assignments_versions.get(name, -1):
                context.assign(name, TopicInfo.decoded(one.data), one.stat.version)
        self._parts.decide(now, lambda: begun(context, context.view()), effects)


class IsrNotifications:
    """The notifications that one controller epoch reads."""

    __slots__ = ("_parts", "_port")

    def __init__(self, parts: Parts, port: WorkPort) -> None:
        self._parts = parts
        self._port = port

    def read(self, now: int, effects: Effects) -> None:
        """Read those that are there, and watch for more."""
        read_children(self._parts.asking, now, ISR_CHANGES, self._found, effects)

    def _found(self, now: int, found: dict[str, ZkOutcome], effects: Effects) -> None:
        if self._parts.work.is_over or not found:
            return
        topics = self._parts.context.image.topics
        named = {one for outcome in found.values() for one in decoded_isr_change(outcome.data)}
        keys = [(topics[topic], index) for topic, index in sorted(named) if topic in topics]
        reads = [GetData(state_path(*one)) for one in sorted(named) if one[0] in topics]
        then = partial(self._states, tuple(found), keys)
        read_all(self._parts.asking, now, reads, then, effects)

    def _states(
        self,
        names: tuple[str, ...],
        keys: list[PartitionKey],
        now: int,
        outcomes: list[ZkOutcome],
        effects: Effects,
    ) -> None:
        context = self._parts.context

        def plan() -> Plan:
            paths = [f"{ISR_CHANGES}/{name}" for name in names]
            return Plan([unit(context, [Delete(path)]) for path in paths])

        def finish(now: int, _response: object, effects: Effects) -> None:
            found = (context.refresh(*one) for one in zip(keys, outcomes, strict=True))
            changes: list[StateChange] = [one for one in found if one is not None]
            self._port.changed(now, changes, effects)

        if not self._parts.work.is_over:
            self._parts.work.add(now, Job(plan, finish), effects)
