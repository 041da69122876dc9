"""Prepares and builds reference clusters of the ZooKeeper generation in virtual time."""

from collections.abc import Callable, Sequence
from typing import Final

from fencepost.clusters.provision.java import find_java
from fencepost.clusters.reference.driver import ReferencePrepared
from fencepost.clusters.reference.simulated.cluster import SimulatedCluster
from fencepost.clusters.reference.simulated.driver import SimulatedDriver
from fencepost.clusters.reference_zookeeper.configuration import stated_rules
from fencepost.clusters.reference_zookeeper.simulated.kit import build
from fencepost.clusters.reference_zookeeper.system import ReferenceZooKeeperSpec
from fencepost.clusters.system import Wanted


def _prepared(
    spec: ReferenceZooKeeperSpec, _wanted: Wanted, _say: Callable[[str], None]
) -> ReferencePrepared:
    """Prepare nothing but a Java for the checks."""
    level = spec.inter_broker_protocol
    return ReferencePrepared(java=find_java(), version=spec.release, level=level)


def _simulated(
    spec: ReferenceZooKeeperSpec, *, seed: int, rules_off: Sequence[str]
) -> SimulatedCluster:
    return build(spec, seed=seed, rules=stated_rules(spec).without(*rules_off))


DRIVER: Final = SimulatedDriver(_prepared, _simulated)
