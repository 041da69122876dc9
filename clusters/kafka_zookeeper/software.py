"""The software of a broker of the ZooKeeper generation: a release in a JVM, on any directory."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clusters.kafka.configuration import HOSTS, PROPERTIES
from clusters.kafka.launch import server_command
from clusters.kafka.software import KafkaFiles
from clusters.kafka_zookeeper.prepared import KafkaZooKeeperPrepared

__all__ = ["BrokerSoftware"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSoftware(KafkaFiles):
    """`clusters.processes.node.Software` of one broker."""

    prepared: KafkaZooKeeperPrepared
    options: Sequence[str]
    """Extra options of its JVM."""

    first_directory_id = None

    def command(self, directory: Path) -> list[str]:
        """The JVM's command line."""
        return server_command(
            java=self.prepared.java,
            release=self.prepared.release,
            properties=directory / PROPERTIES,
            hosts=directory / HOSTS,
            class_archive=self.prepared.class_archive,
            options=self.options,
        )

    def format(self, data: Path, *, directory_id: str | None) -> None:  # noqa: ARG002 -- the port's
        """Make an empty directory; the broker notes there what the znodes say of it."""
        data.mkdir(parents=True)

    def format_command(self, directory: Path) -> list[str] | None:  # noqa: ARG002 -- the port's
        """Do nothing: this generation formats nothing."""
        return None

    def directory_id(self, data: Path) -> str | None:  # noqa: ARG002 -- the port's
        """Return None: a directory has no id of its own."""
        return None
