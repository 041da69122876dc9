"""Garbage: hosts whose id is registered by another host (H05), and notifications that are read.

A notification of changed settings is garbage once it has been there for a whole interval: brokers
read it when their watch fires, and read all settings anew when they were away for a session.

Source: the draft "Broker id by host name", garbage collection; Kafka's
`ZkNodeChangeNotificationListener.purgeObsoleteNotifications`.
"""

from clusters.node_port.effects import Effects
from clusters.node_port.zookeeper import Delete, GetChildren, ZkOutcome
from clusters.reference.zk.control.parts import Parts
from clusters.reference.zk.control.reading import read_all, read_children
from clusters.reference.zk.control.work import Job, Plan
from clusters.reference.zk.control.writes import unit
from clusters.reference.zk.znodes import CONFIG_CHANGES, HOSTS, decoded_host, host_path

__all__ = ["Garbage"]


class Garbage:
    """The scans of one controller epoch."""

    __slots__ = ("_due_ns", "_notifications", "_parts")

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._due_ns = 0
        self._notifications: frozenset[str] = frozenset()
        """Those that the last scan found."""

    def tick(self, now: int, effects: Effects) -> None:
        """Scan when it is time."""
        parts = self._parts
        interval_ns = parts.situation.configuration.garbage_scan_interval_ns
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
        names = frozenset(outcomes[0].children)
        old, self._notifications = names & self._notifications, names - self._notifications
        deletes = [Delete(f"{CONFIG_CHANGES}/{name}") for name in sorted(old)]
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
            found.clear()  # Whatever was written meanwhile is for the next scan.
            return Plan(removals)

        self._parts.work.add(now, Job(plan, _nothing), effects)

    def _is_garbage(self, host: str, outcome: ZkOutcome) -> bool:
        context, broker_id = self._parts.context, decoded_host(outcome.data)
        return broker_id in context.image.brokers and context.hosts[broker_id] != host


def _removal(host: str, outcome: ZkOutcome) -> Delete:
    assert outcome.stat is not None, outcome
    return Delete(host_path(host), outcome.stat.version)


def _nothing(_now: int, _response: object, _effects: Effects) -> None:
    pass
