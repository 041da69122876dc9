"""Clusters between ZooKeeper and KRaft, as processes: an ensemble, controllers and brokers."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kazoo.client import KazooClient

from fencepost.clusters.abilities import LinkEnd
from fencepost.clusters.kafka.configuration import KafkaNode, Listener, links_between
from fencepost.clusters.kafka.configuration import properties as kraft_properties
from fencepost.clusters.kafka.driver import DRIVER as CONTROLLERS
from fencepost.clusters.kafka.formatting import new_id
from fencepost.clusters.kafka.prepared import KafkaPrepared
from fencepost.clusters.kafka.readiness import await_migrated
from fencepost.clusters.kafka.software import KafkaSoftware
from fencepost.clusters.kafka_migrating.system import KafkaMigratingSpec
from fencepost.clusters.kafka_port import Role, role_of
from fencepost.clusters.kafka_zookeeper.cluster import KafkaZooKeeperCluster
from fencepost.clusters.kafka_zookeeper.configuration import found_servers
from fencepost.clusters.kafka_zookeeper.driver import DRIVER as BROKERS
from fencepost.clusters.kafka_zookeeper.driver import KafkaZooKeeperDriver
from fencepost.clusters.kafka_zookeeper.prepared import KafkaZooKeeperPrepared
from fencepost.clusters.kafka_zookeeper.system import KafkaZooKeeperSpec
from fencepost.clusters.port import NodeName
from fencepost.clusters.processes.node import ProcessNode, Software
from fencepost.clusters.provision.files_read import topmost
from fencepost.clusters.system import Wanted
from fencepost.clusters.witness.definitions import definitions_of
from fencepost.clusters.witness.witness import WitnessReport, write_witness
from fencepost.clusters.zookeeper.stored.tables import write_server_disks

_TIMEOUT_S: Final = 120.0
_MIGRATES: Final = {"zookeeper.metadata.migration.enable": "true"}
_OF_QUORUM: Final = ("controller.quorum.voters", "controller.listener.names")
_TELLS_BROKERS: Final = {"inter.broker.listener.name": Listener.REPLICATION}


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


class KafkaMigratingCluster(KafkaZooKeeperCluster):
    """`clusters.kafka_port.BrokerCluster` whose controllers lead and write to ZooKeeper, too."""

    _spec: KafkaMigratingSpec
    _prepared: KafkaMigratingPrepared

    @property
    def versions(self) -> Mapping[str, str]:
        """Return the versions under test: those of a cluster on ZooKeeper, metadata version."""
        level = self._prepared.controllers.bootstrap.metadata_version
        return {**super().versions, "metadata_version": level}

    def links(self) -> tuple[LinkEnd, ...]:
        """Return links: all to controllers, brokers and servers, clients to brokers."""
        every = tuple(self._listed.values())
        return (
            *links_between(every, dial_brokers=(Role.CONTROLLER, Role.BROKER)),
            *self._ensemble.links(clients=tuple(self._listed)),
        )

    def testify(self, raw: Path, *, topics: Sequence[str]) -> WitnessReport:
        """Record in `raw` what the disks hold: the controllers' metadata logs are the truth."""
        self._write_node_tables(raw)
        report = write_witness(
            {name: self.data_of(name) for name in self._listed},
            topics=topics,
            definitions=definitions_of(self._prepared.controllers.release.jars),
            raw=raw,
        )
        write_server_disks({name: self.data_of(name) for name in self._names(Role.ZOOKEEPER)}, raw)
        return report

    def _equip(self, nodes: tuple[KafkaNode, ...]) -> Mapping[NodeName, Software]:
        self._cluster_id = new_id()
        controllers = {
            node.name: KafkaSoftware(
                node=node,
                prepared=self._prepared.controllers,
                cluster_id=self._cluster_id,
                options=self._spec.java_options,
            )
            for node in nodes
            if node.votes
        }
        return {**super()._equip(nodes), **controllers}

    def _properties(self, node: ProcessNode, *, nodes: tuple[KafkaNode, ...]) -> dict[str, str]:
        in_kraft = kraft_properties(
            self._spec.kraft,
            self._listed[node.name],
            nodes=nodes,
            data=node.data,
            version=self._prepared.version,
            route=self._route,
        )
        if role_of(node.name) is Role.BROKER:
            quorum = {key: in_kraft[key] for key in _OF_QUORUM}
            return super()._properties(node, nodes=nodes) | quorum | _MIGRATES
        return (
            in_kraft | found_servers(self._ensemble.servers.values()) | _MIGRATES | _TELLS_BROKERS
        )

    def _await_role(self, role: str, members: Sequence[NodeName]) -> None:
        if role == Role.CONTROLLER:
            return  # they wait for the brokers
        super()._await_role(role, members)
        if role == Role.ZOOKEEPER:
            self._name_cluster()
        else:
            await_migrated(self._nodes, self.leader_now)

    def _name_cluster(self) -> None:
        """Write the id that the controllers were formatted for; else a broker makes one up."""
        servers = [self._ensemble.address(name) for name in self._names(Role.ZOOKEEPER)]
        client = KazooClient(hosts=",".join(f"{host}:{port}" for host, port in servers))
        client.start(timeout=_TIMEOUT_S)
        try:
            stated = json.dumps({"version": "1", "id": self._cluster_id})
            client.create("/cluster/id", stated.encode(), makepath=True)
        finally:
            client.stop()
            client.close()


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
