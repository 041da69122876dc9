"""A cluster between ZooKeeper and KRaft, as processes: an ensemble, controllers and brokers."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kazoo.client import KazooClient

from clusters.abilities import LinkEnd, Route, direct
from clusters.hosts.place import Host
from clusters.kafka.configuration import KafkaNode, Listener, links_between
from clusters.kafka.configuration import properties as kraft_properties
from clusters.kafka.formatting import new_id
from clusters.kafka.metadata_watch import MetadataWatch
from clusters.kafka.software import KafkaSoftware
from clusters.kafka_migrating.prepared import KafkaMigratingPrepared
from clusters.kafka_migrating.system import KafkaMigratingSpec
from clusters.kafka_port import Role, role_of
from clusters.kafka_zookeeper.cluster import KafkaZooKeeperCluster
from clusters.kafka_zookeeper.configuration import found_servers
from clusters.port import NodeName
from clusters.processes.node import ProcessNode, Software
from clusters.witness.definitions import definitions_of
from clusters.witness.witness import WitnessReport, write_witness
from clusters.zookeeper.stored.tables import write_server_disks
from clusters.zookeeper.watch import EnsembleWatch
from history.clock import Clock
from history.failure import HarnessError

__all__ = ["KafkaMigratingCluster"]

_TIMEOUT_S: Final = 120.0
_POLL_S: Final = 0.05
_MIGRATES: Final = {"zookeeper.metadata.migration.enable": "true"}
_OF_QUORUM: Final = ("controller.quorum.voters", "controller.listener.names")
_TELLS_BROKERS: Final = {"inter.broker.listener.name": Listener.REPLICATION}


class KafkaMigratingCluster(KafkaZooKeeperCluster):
    """`clusters.kafka_port.BrokerCluster` whose controllers lead and write to ZooKeeper, too."""

    _spec: KafkaMigratingSpec

    def __init__(
        self,
        spec: KafkaMigratingSpec,
        *,
        prepared: KafkaMigratingPrepared,
        host: Host,
        directory: Path,
        clock: Clock,
        port_base: int | None = None,
        route: Route = direct,
    ) -> None:
        self._of_controllers = prepared.controllers
        self._cluster_id = new_id()
        super().__init__(
            spec,
            prepared=prepared.brokers,
            host=host,
            directory=directory,
            clock=clock,
            port_base=port_base,
            route=route,
        )

    @property
    def versions(self) -> Mapping[str, str]:
        """Return the versions under test: those of a cluster on ZooKeeper, metadata version."""
        level = self._of_controllers.bootstrap.metadata_version
        return {**super().versions, "metadata_version": level}

    def links(self) -> tuple[LinkEnd, ...]:
        """Return links: all to controllers, brokers and servers, clients to brokers."""
        every = tuple(self._listed.values())
        return (
            *links_between(every, dial_brokers=(Role.CONTROLLER, Role.BROKER)),
            *self._ensemble.links(clients=tuple(self._listed)),
        )

    @contextmanager
    def watch(self, raw: Path, *, topics: Sequence[str]) -> Iterator[None]:
        """Record in `raw`, while entered, what brokers, controllers and servers show."""
        shown = MetadataWatch(
            raw,
            clock=self._clock,
            topics=topics,
            brokers={name: self._address(name) for name in self._names(Role.BROKER)},
            controllers=lambda: self._running(Role.CONTROLLER),
            node_of=self.node_of,
            spoken=self._spoken,
        )
        servers = EnsembleWatch(
            raw, clock=self._clock, running=lambda: self._running(Role.ZOOKEEPER)
        )
        with shown, servers:
            yield

    def testify(self, raw: Path, *, topics: Sequence[str]) -> WitnessReport:
        """Record in `raw` what the disks hold: the controllers' metadata logs are the truth."""
        self._write_node_tables(raw)
        report = write_witness(
            {name: self.data_of(name) for name in self._listed},
            topics=topics,
            definitions=definitions_of(self._of_controllers.release.jars),
            raw=raw,
        )
        write_server_disks({name: self.data_of(name) for name in self._names(Role.ZOOKEEPER)}, raw)
        return report

    def _equip(self, nodes: tuple[KafkaNode, ...]) -> Mapping[NodeName, Software]:
        controllers = {
            node.name: KafkaSoftware(
                node=node,
                prepared=self._of_controllers,
                cluster_id=self._cluster_id,
                options=self._spec.java_options,
            )
            for node in nodes
            if node.role is Role.CONTROLLER
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
            self._await_migrated()

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

    def _await_migrated(self) -> None:
        """Wait until a controller of Kafka's own is the active one.

        Raises HarnessError if a node dies, or after two minutes.
        """
        deadline = time.monotonic() + _TIMEOUT_S
        while (leader := self.leader_now()) is None or role_of(leader) is not Role.CONTROLLER:
            dead = [node for node in self._nodes.values() if node.process.exit_code is not None]
            if dead:
                raise HarnessError("; ".join(node.obituary() for node in dead))
            if time.monotonic() > deadline:
                raise HarnessError(
                    f"{leader or 'nobody'} is the active controller {_TIMEOUT_S:.0f} s after "
                    "the start: the metadata did not migrate"
                )
            time.sleep(_POLL_S)
