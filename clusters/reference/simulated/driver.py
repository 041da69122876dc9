"""Prepares reference clusters in virtual time; `harness.run.simulated` builds them in a world."""

from collections.abc import Sequence
from typing import Any, Final, Never

from clusters.kafka_port import KafkaSpec
from clusters.reference.driver import ReferenceDriver
from clusters.reference.nodes.rules import Rules
from clusters.reference.simulated.quorum_kit import SimulatedQuorumCluster, build


class SimulatedDriver:
    """`clusters.system.Driver`, as far as virtual time has hosts, directories and clocks."""

    cluster = SimulatedQuorumCluster
    prepare = ReferenceDriver.prepare

    def simulate(
        self, spec: KafkaSpec, *, seed: int, rules_off: Sequence[str]
    ) -> SimulatedQuorumCluster:
        """Return the cluster in a world of its own, not started yet."""
        return build(spec, seed=seed, rules=Rules().without(*rules_off))

    def build(self, *_: Any, **__: Any) -> Never:
        """Never asked for: its nodes are no processes on a host."""
        raise NotImplementedError


DRIVER: Final = SimulatedDriver()
