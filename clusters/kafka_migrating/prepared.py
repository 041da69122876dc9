"""All that has to be there before the first process of such a cluster starts."""

from dataclasses import dataclass
from pathlib import Path

from clusters.kafka.prepared import KafkaPrepared
from clusters.kafka_zookeeper.prepared import KafkaZooKeeperPrepared
from clusters.provision.files_read import topmost

__all__ = ["KafkaMigratingPrepared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaMigratingPrepared(KafkaZooKeeperPrepared):
    """The programs of brokers on ZooKeeper, and of controllers of the same release."""

    controllers: KafkaPrepared

    @property
    def files_read(self) -> tuple[Path, ...]:
        """Return what its nodes' JVMs read."""
        # Without arguments, `super` does not find a class that dataclass made anew for its slots.
        brokers = super(KafkaMigratingPrepared, self).files_read
        return topmost([*brokers, *self.controllers.files_read])
