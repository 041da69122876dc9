"""The configuration of each broker of the ZooKeeper generation: a pure function of its spec."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from fencepost.clusters.abilities import Route, direct
from fencepost.clusters.kafka.configuration import KafkaNode, broker_defaults, broker_listeners
from fencepost.clusters.kafka_zookeeper.system import KafkaZooKeeperSpec
from fencepost.clusters.provision.releases import version_numbers
from fencepost.clusters.zookeeper.configuration import EnsembleServer
from fencepost.history.failure import UsageError

_SESSION: Final = "zookeeper.session.timeout.ms"
SESSION_TIMEOUT_MS: Final = 3000
"""The time after which a broker that is silent loses its znodes; 18 s in Kafka's own default."""
_CONTROL_PLANE_SINCE: Final = (2, 2)
_DEFAULTS: Final = {
    _SESSION: str(SESSION_TIMEOUT_MS),
    # The session's, by default: a broker that starts would end where the ensemble elects.
    "zookeeper.connection.timeout.ms": "60000",
    # 5 s by default, three times: brokers that stop together have no controller to ask.
    "controlled.shutdown.retry.backoff.ms": "500",
}


def properties(
    spec: KafkaZooKeeperSpec,
    node: KafkaNode,
    *,
    servers: Iterable[EnsembleServer],
    data: Path,
    version: str,
    route: Route = direct,
) -> dict[str, str]:
    """The broker's server.properties. Brokers' settings win over the common ones, over defaults."""
    return {
        **broker_defaults(spec.brokers, version=version),
        **_DEFAULTS,
        **spec.settings,
        **spec.broker_settings,
        **broker_listeners(node, route=route),
        "broker.id": str(node.node_id),
        "log.dirs": str(data),
        **found_servers(servers),
    }


def found_servers(servers: Iterable[EnsembleServer]) -> dict[str, str]:
    """Return the setting by which a node of Kafka's finds the ensemble."""
    return {"zookeeper.connect": ",".join(f"{one.host}:{one.client_port}" for one in servers)}


def refuse_control_plane(spec: KafkaZooKeeperSpec, version: str) -> None:
    """Raise UsageError if brokers of this version have no such listener as the spec asks for."""
    if spec.control_plane_listener and version_numbers(version) < _CONTROL_PLANE_SINCE:
        raise UsageError(
            f"Kafka {version} has no control.plane.listener.name: it came with 2.2 (KIP-291)"
        )


def session_timeout_ms(spec: KafkaZooKeeperSpec) -> int:
    """Return the timeout of brokers' sessions."""
    return int({**_DEFAULTS, **spec.settings, **spec.broker_settings}[_SESSION])
