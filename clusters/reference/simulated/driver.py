"""Prepares reference clusters in virtual time; `harness.run.simulated` builds them in a world."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Never, Protocol

from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.reference.driver import ReferenceDriver, ReferencePrepared
from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.clusters.reference.simulated.cluster import SimulatedCluster
from fencepost.clusters.reference.simulated.quorum_kit import build
from fencepost.clusters.system import Wanted


class Simulates(Protocol):
    """Makes a cluster of a spec in a world of its own, not started yet."""

    def __call__(self, spec: Any, *, seed: int, rules_off: Sequence[str]) -> SimulatedCluster:
        """Return the cluster."""


class SimulatedDriver:
    """`clusters.system.Driver`, as far as virtual time has hosts, directories and clocks."""

    cluster = SimulatedCluster

    def __init__(
        self,
        prepare: Callable[[Any, Wanted, Callable[[str], None]], ReferencePrepared],
        simulate: Simulates,
    ) -> None:
        self.prepare = prepare
        self.simulate = simulate

    def build(self, *_: Any, **__: Any) -> Never:
        """Never asked for: its nodes are no processes on a host."""
        raise NotImplementedError


def _simulated(spec: KafkaSpec, *, seed: int, rules_off: Sequence[str]) -> SimulatedCluster:
    return build(spec, seed=seed, rules=Rules().without(*rules_off))


DRIVER: Final = SimulatedDriver(ReferenceDriver().prepare, _simulated)
