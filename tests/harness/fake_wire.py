"""A wire in memory: rules match when a test says so, partitions block probes."""

from collections.abc import Collection

from fencepost.clusters.port import NodeName
from fencepost.history.failure import UsageError
from fencepost.nemesis.wire.rules import Flow, Hold, Rule
from fencepost.nemesis.wire.status import Delivery, RuleStatus, WireStatus


class FakeWire:
    def __init__(self) -> None:
        self.rules: dict[str, Rule] = {}
        self.matched: dict[str, int] = {}
        self.blocked: set[Flow] = set()
        self.leaky: set[Flow] = set()
        self.deaf: set[NodeName] = set()
        self.refuses = ""
        self.broken: tuple[str, ...] = ()
        self.calls: list[str] = []

    def add(self, rule: Rule) -> None:
        if self.refuses:
            raise UsageError(self.refuses)
        self.rules[rule.name] = rule
        self.matched[rule.name] = 0

    def release(self, name: str) -> Delivery:
        self.calls.append(f"release {name}")
        held = self._held(name)
        del self.rules[name]
        return Delivery(delivered=held, undeliverable=0)

    def discard(self, name: str) -> int:
        self.calls.append(f"discard {name}")
        held = self._held(name)
        del self.rules[name]
        return held

    def block(self, flows: Collection[Flow]) -> None:
        self.blocked |= set(flows)

    def unblock(self, flows: Collection[Flow] | None = None) -> None:
        self.blocked -= set(self.blocked if flows is None else flows)

    def status(self) -> WireStatus:
        rules = {
            name: RuleStatus(
                matched_count=count,
                held_count=self._held(name),
                held_now=self._held(name),
                delivered_count=0,
                undeliverable_count=0,
                first=f"first of {name}" if count else None,
                first_ns=1 if count else None,
            )
            for name, count in self.matched.items()
            if name in self.rules
        }
        return WireStatus(
            rules=rules,
            withheld_bytes={},
            connection_count={},
            broken=self.broken,
            broken_count=len(self.broken),
        )

    def probe(self, source: NodeName, target: NodeName, *, timeout_s: float) -> bool:  # noqa: ARG002  # the port
        cut = {(source, target), (target, source)} & self.blocked
        return (not cut and target not in self.deaf) or (source, target) in self.leaky

    def probe_directly(self, target: NodeName, *, timeout_s: float) -> bool:  # noqa: ARG002  # the port
        return target not in self.deaf

    def _held(self, name: str) -> int:
        rule = self.rules.get(name)
        return self.matched[name] if rule is not None and isinstance(rule.action, Hold) else 0
