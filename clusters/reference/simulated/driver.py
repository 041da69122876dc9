"""Prepares reference clusters in virtual time; `harness.run.simulated` builds them in a world."""

from typing import Any, Final, Never

from clusters.reference.driver import ReferenceDriver
from clusters.reference.simulated.quorum_cluster import SimulatedQuorumCluster

__all__ = ["DRIVER", "SimulatedDriver"]


class SimulatedDriver:
    """`clusters.system.Driver`, as far as virtual time has hosts, directories and clocks."""

    cluster = SimulatedQuorumCluster
    prepare = ReferenceDriver.prepare

    def build(self, *_: Any, **__: Any) -> Never:
        """Never asked for: its nodes are no processes on a host."""
        raise NotImplementedError


DRIVER: Final = SimulatedDriver()
