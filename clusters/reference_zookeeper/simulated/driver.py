"""Prepares and builds reference clusters of the ZooKeeper generation in virtual time."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Never

from clusters.provision.java import find_java
from clusters.reference.driver import ReferencePrepared
from clusters.reference_zookeeper.configuration import stated_rules
from clusters.reference_zookeeper.simulated.kit import SimulatedZkCluster, build
from clusters.reference_zookeeper.system import ReferenceZooKeeperSpec
from clusters.system import Wanted


class SimulatedZkDriver:
    """`clusters.system.Driver`, as far as virtual time has hosts, directories and clocks."""

    cluster = SimulatedZkCluster

    def prepare(
        self, spec: ReferenceZooKeeperSpec, _wanted: Wanted, _say: Callable[[str], None]
    ) -> ReferencePrepared:
        """Prepare nothing but a Java for the checks."""
        level = spec.inter_broker_protocol
        return ReferencePrepared(java=find_java(), version=spec.release, level=level)

    def simulate(
        self, spec: ReferenceZooKeeperSpec, *, seed: int, rules_off: Sequence[str]
    ) -> SimulatedZkCluster:
        """Return the cluster in a world of its own, not started yet."""
        return build(spec, seed=seed, rules=stated_rules(spec).without(*rules_off))

    def build(self, *_: Any, **__: Any) -> Never:
        """Never asked for: its nodes are no processes on a host."""
        raise NotImplementedError


DRIVER: Final = SimulatedZkDriver()
