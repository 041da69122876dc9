"""Prepares and builds clusters that migrate."""

from collections.abc import Callable
from typing import Final

from clusters.kafka.driver import DRIVER as CONTROLLERS
from clusters.kafka_migrating.cluster import KafkaMigratingCluster
from clusters.kafka_migrating.prepared import KafkaMigratingPrepared
from clusters.kafka_migrating.system import KafkaMigratingSpec
from clusters.kafka_zookeeper.driver import DRIVER as BROKERS
from clusters.kafka_zookeeper.driver import KafkaZooKeeperDriver
from clusters.kafka_zookeeper.system import KafkaZooKeeperSpec
from clusters.system import Wanted

__all__ = ["DRIVER", "KafkaMigratingDriver"]


class KafkaMigratingDriver(KafkaZooKeeperDriver):
    """`clusters.system.Driver`."""

    cluster = KafkaMigratingCluster

    def prepare(
        self, spec: KafkaZooKeeperSpec, wanted: Wanted, say: Callable[[str], None]
    ) -> KafkaMigratingPrepared:
        """Prepare what brokers on ZooKeeper need, and what controllers do."""
        assert isinstance(spec, KafkaMigratingSpec), spec
        brokers = BROKERS.prepare(spec, wanted, say)
        return KafkaMigratingPrepared(
            release=brokers.release,
            ensemble=brokers.ensemble,
            class_archive=brokers.class_archive,
            controllers=CONTROLLERS.prepare(spec.kraft, wanted, say),
        )


DRIVER: Final = KafkaMigratingDriver()
