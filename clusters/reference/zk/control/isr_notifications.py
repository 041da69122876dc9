"""/isr_change_notification: brokers below the new inter-broker protocol tell what they wrote.

Their leaders write states by themselves, and then a sequential znode that names them; the
controller reads the states, tells brokers for their clients, and removes the znode.

Source: Kafka's `KafkaController.processIsrChangeNotification`.
"""

from functools import partial

from clusters.node_port.effects import Effects
from clusters.node_port.storage import PartitionKey
from clusters.node_port.zookeeper import Delete, GetData, ZkOutcome
from clusters.reference.zk.control.change import Change
from clusters.reference.zk.control.parts import Parts
from clusters.reference.zk.control.reading import read_all, read_children
from clusters.reference.zk.control.work import Job, Plan, WorkPort
from clusters.reference.zk.control.writes import unit
from clusters.reference.zk.znodes import ISR_CHANGES, decoded_isr_change, state_path

__all__ = ["IsrNotifications"]


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
            changes: list[Change] = [one for one in found if one is not None]
            self._port.changed(now, changes, effects)

        if not self._parts.work.is_over:
            self._parts.work.add(now, Job(plan, finish), effects)
