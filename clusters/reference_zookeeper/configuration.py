"""The properties of each broker of such a cluster: a pure function of its spec.

Settings by Kafka's names that a broker here has a use for are handed on.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from fencepost.clusters.abilities import Route
from fencepost.clusters.kafka.configuration import KafkaNode, broker_listeners
from fencepost.clusters.kafka_port import Role
from fencepost.clusters.kafka_zookeeper.configuration import SESSION_TIMEOUT_MS, found_servers
from fencepost.clusters.reference.shell.node_settings import HOSTS
from fencepost.clusters.reference.shell.property_values import RULES_OFF, rules_kept
from fencepost.clusters.reference.shell.zk_properties import HOST, KNOWN, PROTOCOL, parsed
from fencepost.clusters.reference.zk.rules import ZkRules
from fencepost.clusters.reference_zookeeper.system import ReferenceZooKeeperSpec
from fencepost.clusters.zookeeper.configuration import EnsembleServer
from fencepost.history.failure import UsageError

BROKER_ID: Final = "broker.id"
DISK_ID: Final = "fencepost.disk.broker.id"
"""Stated of a node, and told to none: the id that its disk had before its first start."""
_FOUND: Final = "-1"
"""Brokers are told no id: each has that of its disk, or finds one by its host's name."""

_DEFAULTS: Final[Mapping[str, str]] = {
    "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    # A fault shows within seconds, and the controller knows of it before the broker does (Z08).
    "broker.heartbeat.interval.ms": "300",
    "controller.heartbeat.timeout.ms": "2000",
    "broker.heartbeat.timeout.ms": "3000",
    "replica.lag.time.max.ms": "3000",
}
"""Settings by their names, unless a scenario says otherwise."""


def properties(
    spec: ReferenceZooKeeperSpec,
    node: KafkaNode,
    *,
    servers: Iterable[EnsembleServer],
    data: Path,
    hosts: Path,
    rules_off: Sequence[str],
    route: Route,
) -> dict[str, str]:
    """Return the broker's properties. Raises UsageError if what the spec sets cannot be."""
    if finds_ids(spec):
        words = "disks that have an id before the first start are in virtual time alone"
        raise UsageError(f"{BROKER_ID} {_FOUND}: {words}")
    found = {
        **settings_of(spec, broker_listeners(node, route=route)),
        BROKER_ID: str(node.node_id),
        "log.dirs": str(data),
        # All of them may listen on one address: each stands for a host of its own.
        HOST: node.host_as(Role.BROKER),
        HOSTS: str(hosts),
        **found_servers(servers),
    }
    if rules_off:
        found[RULES_OFF] = ",".join(filter(None, (found.get(RULES_OFF), *rules_off)))
    parsed(found)
    return found


def settings_of(spec: ReferenceZooKeeperSpec, listeners: Mapping[str, str]) -> dict[str, str]:
    """Return what every broker of a spec is told, by the names that mean something to it."""
    stated = {**_DEFAULTS, **spec.settings, **spec.broker_settings}
    known = {**stated, **listeners}
    return {
        **{name: value for name, value in known.items() if name in KNOWN},
        PROTOCOL: stated.get(PROTOCOL, spec.protocol_level),
    }


def finds_ids(spec: ReferenceZooKeeperSpec) -> bool:
    """Return whether brokers are told no id."""
    return {**spec.settings, **spec.broker_settings}.get(BROKER_ID) == _FOUND


def stated_rules(spec: ReferenceZooKeeperSpec) -> ZkRules:
    """Return the rules that every broker of such a cluster keeps, by its settings.

    Raises UsageError if a setting names a rule that there is not.
    """
    return rules_kept({**spec.settings, **spec.broker_settings}, ZkRules())


def ignored(spec: ReferenceZooKeeperSpec) -> tuple[str, ...]:
    """Return the settings of a spec that mean nothing here."""
    stated = {**spec.settings, **spec.broker_settings}
    return tuple(sorted(name for name in stated if name not in KNOWN))
