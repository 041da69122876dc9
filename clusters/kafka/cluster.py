"""A KRaft cluster of any release of Apache Kafka, as processes."""

from collections.abc import Mapping
from pathlib import Path

from clusters.hosts.place import Host
from clusters.kafka.configuration import Node, Route, direct, properties
from clusters.kafka.formatting import first_voters, new_id
from clusters.kafka.prepared import Prepared
from clusters.kafka.software import KafkaSoftware
from clusters.kafka.voters import Seat, checkpoint_of
from clusters.port import ClusterSpec, NodeName, Quorum, Role
from clusters.processes.cluster import ProcessCluster
from clusters.processes.node import ProcessNode
from clusters.processes.readiness import await_first_voters
from clusters.protocol.metadata_records import Definitions
from clusters.witness.definitions import definitions_of
from history.clock import Clock

__all__ = ["KafkaCluster"]


class KafkaCluster(ProcessCluster):
    """`clusters.port.Cluster` with all its abilities."""

    def __init__(
        self,
        spec: ClusterSpec,
        *,
        prepared: Prepared,
        host: Host,
        directory: Path,
        clock: Clock,
        port_base: int | None = None,
        route: Route = direct,
    ) -> None:
        self._prepared = prepared
        super().__init__(
            spec,
            host=host,
            directory=directory,
            clock=clock,
            software=lambda nodes: _software(spec, nodes, prepared=prepared),
            port_base=port_base,
            route=route,
        )

    @property
    def versions(self) -> Mapping[str, str]:
        """What is under test: release, digest of its jars, metadata version, Java."""
        release, java = self._prepared.release, self._prepared.java
        return {
            "kafka": release.version,
            "kafka_release": release.name,
            "kafka_jars_sha256": release.digest,
            "metadata_version": self._prepared.bootstrap.metadata_version,
            "java": java.version,
            "java_build": java.build,
            "java_source": java.source,
        }

    def _properties(self, node: ProcessNode, *, nodes: tuple[Node, ...]) -> dict[str, str]:
        return properties(
            self._spec,
            node.node,
            nodes=nodes,
            data=node.data,
            version=self._prepared.release.version,
            route=self._route,
        )

    def _definitions(self) -> Definitions:
        return definitions_of(self._prepared.release.jars)

    def _await_quorum(self) -> None:
        if self._spec.quorum is Quorum.DYNAMIC:
            await_first_voters(self._nodes, lambda: self._running(Role.CONTROLLER))


def _software(
    spec: ClusterSpec, nodes: tuple[Node, ...], *, prepared: Prepared
) -> dict[NodeName, KafkaSoftware]:
    cluster_id = new_id()
    seats = _seats(spec, nodes, template=prepared.bootstrap.voters)
    return {
        node.name: KafkaSoftware(
            node=node,
            prepared=prepared,
            cluster_id=cluster_id,
            options=spec.java_options,
            seat=seats.get(node.name),
        )
        for node in nodes
    }


def _seats(
    spec: ClusterSpec, nodes: tuple[Node, ...], *, template: bytes | None
) -> dict[NodeName, Seat]:
    """Where each controller sits in the first voter set; none in a static quorum."""
    if spec.quorum is Quorum.STATIC:
        return {}
    assert template is not None, "prepared for a static quorum"
    voters = first_voters(nodes)
    checkpoint = checkpoint_of(template, voters)
    controllers = (node.name for node in nodes if node.role is Role.CONTROLLER)
    return {
        name: Seat(directory_id=voter.directory_id, checkpoint=checkpoint)
        for name, voter in zip(controllers, voters, strict=True)
    }
