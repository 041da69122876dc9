"""Topics that others than the controller make or grow: tools write /brokers/topics by themselves.

Source: Kafka's `KafkaController.processTopicChange`, `processPartitionModifications`.
"""

from functools import partial

from clusters.node_port.effects import Effects
from clusters.node_port.zookeeper import GetChildren, GetData, ZkOutcome
from clusters.reference.zk.control.leaders import begun
from clusters.reference.zk.control.parts import Parts
from clusters.reference.zk.control.reading import read_all
from clusters.reference.zk.znodes import TOPICS, TopicInfo, topic_path

__all__ = ["Topics"]


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
