"""All that has to be there before the first process of such a cluster starts."""

from dataclasses import dataclass
from pathlib import Path

from clusters.kafka.prepared import KafkaPrepared
from clusters.kafka_zookeeper.prepared import KafkaZooKeeperPrepared
from clusters.provision.files_read import topmost
from clusters.provision.java import Java
from clusters.provision.releases import Release

__all__ = ["KafkaMigratingPrepared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaMigratingPrepared:
    """The same release twice: for brokers that start from ZooKeeper, and for controllers."""

    brokers: KafkaZooKeeperPrepared
    controllers: KafkaPrepared

    level = None

    @property
    def java(self) -> Java:
        """The Java of all nodes."""
        return self.brokers.java

    @property
    def release(self) -> Release:
        """The release of Kafka."""
        return self.brokers.release

    @property
    def version(self) -> str:
        """The version of its release of Kafka."""
        return self.brokers.version

    @property
    def files_read(self) -> tuple[Path, ...]:
        """Return what its nodes' JVMs read."""
        return topmost([*self.brokers.files_read, *self.controllers.files_read])

    @property
    def carried(self) -> tuple[Path, ...]:
        """The directories of its jars, and how to log."""
        return tuple(dict.fromkeys((*self.brokers.carried, *self.controllers.carried)))
