"""Znodes that others than the controller write, and by which they tell it.

Tools write /brokers/topics by themselves: they make topics, and let them grow. Leaders below the
new inter-broker protocol write states by themselves, and then a sequential znode below
/isr_change_notification that names them; the controller reads the states, tells brokers for their
clients, and removes the znode.

Source: Kafka's `KafkaController.processTopicChange`, `processPartitionModifications`,
`processIsrChangeNotification`.
"""

from fencepost.clusters.node_port.zookeeper import Delete, GetChildren, GetData
from fencepost.clusters.reference.zk.control.controller_state import ControllerState
from fencepost.clusters.reference.zk.control.job_queue import WorkPort
from fencepost.clusters.reference.zk.control.leaders import begun
from fencepost.clusters.reference.zk.znodes import (
    ISR_CHANGES,
    TOPICS,
    TopicInfo,
    decoded_isr_change,
    state_path,
    topic_path,
)


class Topics:
    """The znodes of topics that one controller epoch watches."""

    __slots__ = ("_parts", "_watched")

    def __init__(self, parts: ControllerState) -> None:
        self._parts = parts
        self._watched: set[str] = set()

    def loaded(self) -> None:
        """All topics were read, and are watched."""
        self._watched = set(self._parts.context.assignments)

    async def read(self) -> None:
        """Read which topics there are, and watch for more; read those that are new."""
        (found,) = await self._parts.zookeeper.read([GetChildren(TOPICS, watch=True)])
        self._watched &= set(found.children)
        await self._read([name for name in found.children if name not in self._watched])

    async def read_one(self, name: str) -> None:
        """Read a topic that has changed, and watch it."""
        self._watched.discard(name)
        await self._read([name])

    async def _read(self, names: list[str]) -> None:
        if not names:
            return
        parts, context = self._parts, self._parts.context
        self._watched |= set(names)
        found = await parts.zookeeper.read(
            [GetData(topic_path(name), watch=True) for name in names]
        )
        await parts.decided(tuple)
        for name, one in zip(names, found, strict=True):
            if one.stat is None:
                self._watched.discard(name)
            elif one.stat.version > context.assignments_versions.get(name, -1):
                context.assign(name, TopicInfo.decoded(one.data), one.stat.version)
        await parts.decided(lambda: begun(context, context.view()))


class IsrNotifications:
    """The notifications that one controller epoch reads."""

    __slots__ = ("_parts", "_port")

    def __init__(self, parts: ControllerState, port: WorkPort) -> None:
        self._parts = parts
        self._port = port

    async def read(self) -> None:
        """Read those that are there, and watch for more."""
        parts, context = self._parts, self._parts.context
        found = await parts.zookeeper.read_children(ISR_CHANGES)
        if not found:
            return
        topics = context.image.topics
        named = {one for outcome in found.values() for one in decoded_isr_change(outcome.data)}
        keys = [(topics[topic], index) for topic, index in sorted(named) if topic in topics]
        reads = [GetData(state_path(*one)) for one in sorted(named) if one[0] in topics]
        states = await parts.zookeeper.read(reads)
        await parts.removed([Delete(f"{ISR_CHANGES}/{name}") for name in found])
        refreshed = (context.refresh(*one) for one in zip(keys, states, strict=True))
        changes = [one for one in refreshed if one is not None]
        self._port.changed(parts.coroutines.now, changes, parts.coroutines.effects)
