"""The configurations of simulated brokers, by the very properties that a process would be told."""

from collections.abc import Mapping
from dataclasses import replace

from clusters.kafka_port import Role
from clusters.port import NodeName
from clusters.reference.shell.zk_properties import CONNECT, HOST, parsed
from clusters.reference.simulated.nodes import CLUSTER_ID
from clusters.reference.zk.configuration import ZkConfiguration
from clusters.reference_zookeeper.configuration import BROKER_ID, finds_ids, settings_of
from clusters.reference_zookeeper.system import ReferenceZooKeeperSpec

__all__ = ["configured", "told"]

_PORT = 9092


def told(spec: ReferenceZooKeeperSpec, node: NodeName, *, broker_id: int) -> Mapping[str, str]:
    """Return the properties of a broker."""
    servers = range(1, spec.zookeepers + 1)
    return {
        **settings_of(spec, {"listeners": f"CLIENT://{node}:{_PORT}"}),
        BROKER_ID: "-1" if finds_ids(spec) else str(broker_id),
        HOST: str(node),
        "log.dirs": str(node),
        CONNECT: ",".join(f"{Role.ZOOKEEPER}-{one}:2181" for one in servers),
    }


def configured(settings: Mapping[str, str], *, seed: int) -> ZkConfiguration:
    """Return what a broker with these properties is told. Raises UsageError."""
    configuration = parsed(settings).configuration
    assert isinstance(configuration, ZkConfiguration)
    return replace(configuration, cluster_id=CLUSTER_ID, seed=seed)
