"""A cluster of Kafka's ZooKeeper generation, as processes: an ensemble, and brokers that use it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fencepost.clusters.hosts.place import Site
from fencepost.clusters.kafka.configuration import HOSTS, PROPERTIES, KafkaNode
from fencepost.clusters.kafka.launch import server_command
from fencepost.clusters.kafka_zookeeper.configuration import properties
from fencepost.clusters.kafka_zookeeper.prepared import KafkaZooKeeperPrepared
from fencepost.clusters.kafka_zookeeper.processes import BrokersOnZooKeeper, UnformattedFiles
from fencepost.clusters.kafka_zookeeper.system import KafkaZooKeeperSpec
from fencepost.clusters.port import NodeName
from fencepost.clusters.processes.hardships import WrongClocks
from fencepost.clusters.processes.node import ProcessNode, Software


class KafkaZooKeeperCluster(WrongClocks, BrokersOnZooKeeper):
    """`clusters.kafka_port.BrokerCluster` of releases of Kafka and of ZooKeeper."""

    def __init__(
        self, spec: KafkaZooKeeperSpec, *, prepared: KafkaZooKeeperPrepared, site: Site
    ) -> None:
        self._prepared = prepared
        super().__init__(spec, prepared=prepared.ensemble, version=prepared.version, site=site)

    @property
    def versions(self) -> Mapping[str, str]:
        """Return the versions under test: releases, digests of their jars, Java."""
        kafka, zookeeper = self._prepared.release, self._prepared.ensemble.release
        java = self._prepared.java
        return {
            "kafka": kafka.version,
            "kafka_release": kafka.name,
            "kafka_jars_sha256": kafka.digest,
            "zookeeper": zookeeper.version,
            "zookeeper_jars_sha256": zookeeper.digest,
            "java": java.version,
            "java_build": java.build,
            "java_source": java.source,
        }

    def _equip(self, nodes: tuple[KafkaNode, ...]) -> Mapping[NodeName, Software]:
        software = _BrokerSoftware(prepared=self._prepared, options=self._spec.java_options)
        return {node.name: software for node in nodes}

    def _properties(self, node: ProcessNode, *, nodes: tuple[KafkaNode, ...]) -> dict[str, str]:  # noqa: ARG002 -- brokers find each other by their znodes
        return properties(
            self._spec,
            self._listed[node.name],
            servers=self._ensemble.servers.values(),
            data=node.data,
            version=self._prepared.version,
            route=self._route,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _BrokerSoftware(UnformattedFiles):
    """`clusters.processes.node.Software` of one broker."""

    prepared: KafkaZooKeeperPrepared
    options: Sequence[str]
    """Extra options of its JVM."""

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
