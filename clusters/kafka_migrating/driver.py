"""Prepares and builds clusters that migrate."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from clusters.abilities import Route
from clusters.hosts.place import Host
from clusters.kafka.driver import DRIVER as CONTROLLERS
from clusters.kafka_migrating.cluster import KafkaMigratingCluster
from clusters.kafka_migrating.prepared import KafkaMigratingPrepared
from clusters.kafka_migrating.system import KafkaMigratingSpec
from clusters.kafka_zookeeper.driver import DRIVER as BROKERS
from clusters.system import Wanted
from history.clock import Clock

__all__ = ["DRIVER", "KafkaMigratingDriver"]


class KafkaMigratingDriver:
    """`clusters.system.Driver`."""

    cluster = KafkaMigratingCluster

    def prepare(
        self, spec: KafkaMigratingSpec, wanted: Wanted, say: Callable[[str], None]
    ) -> KafkaMigratingPrepared:
        """Prepare what brokers on ZooKeeper need, and what controllers do."""
        return KafkaMigratingPrepared(
            brokers=BROKERS.prepare(spec, wanted, say),
            controllers=CONTROLLERS.prepare(spec.kraft, wanted, say),
        )

    def build(
        self,
        spec: KafkaMigratingSpec,
        prepared: KafkaMigratingPrepared,
        *,
        host: Host,
        directory: Path,
        clock: Clock,
        rules_off: Sequence[str],
        port_base: int | None,
        route: Route,
    ) -> KafkaMigratingCluster:
        """The cluster, with nothing of it running yet."""
        assert not rules_off, "refused before"
        return KafkaMigratingCluster(
            spec,
            prepared=prepared,
            host=host,
            directory=directory,
            clock=clock,
            port_base=port_base,
            route=route,
        )


DRIVER: Final = KafkaMigratingDriver()
