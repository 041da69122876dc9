"""Prepares and builds reference clusters of the ZooKeeper generation."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from clusters.abilities import Route
from clusters.hosts.place import Host
from clusters.kafka.configuration import refuse_reserved
from clusters.reference.driver import portable_nodes
from clusters.reference_zookeeper.cluster import ReferenceZooKeeperCluster
from clusters.reference_zookeeper.prepared import ReferenceZooKeeperPrepared
from clusters.reference_zookeeper.system import ReferenceZooKeeperSpec
from clusters.system import Wanted
from clusters.zookeeper.driver import DRIVER as ENSEMBLES
from history.clock import Clock

__all__ = ["DRIVER", "ReferenceZooKeeperDriver"]


class ReferenceZooKeeperDriver:
    """`clusters.system.Driver`."""

    cluster = ReferenceZooKeeperCluster

    def prepare(
        self, spec: ReferenceZooKeeperSpec, wanted: Wanted, say: Callable[[str], None]
    ) -> ReferenceZooKeeperPrepared:
        """Prepare the release of the ensemble; copy this Python if brokers run where it is not."""
        refuse_reserved(spec.settings, spec.broker_settings)
        return ReferenceZooKeeperPrepared(
            ensemble=ENSEMBLES.prepare(spec.ensemble, wanted, say),
            version=spec.release,
            level=spec.inter_broker_protocol,
            portable=portable_nodes(say) if wanted.portable else None,
        )

    def build(
        self,
        spec: ReferenceZooKeeperSpec,
        prepared: ReferenceZooKeeperPrepared,
        *,
        host: Host,
        directory: Path,
        clock: Clock,
        rules_off: Sequence[str],
        port_base: int | None,
        route: Route,
    ) -> ReferenceZooKeeperCluster:
        """The cluster, with nothing of it running yet."""
        return ReferenceZooKeeperCluster(
            spec,
            prepared=prepared,
            host=host,
            directory=directory,
            clock=clock,
            rules_off=rules_off,
            port_base=port_base,
            route=route,
        )


DRIVER: Final = ReferenceZooKeeperDriver()
