"""The properties of each node of a reference cluster: a pure function of its spec.

A scenario is written for Kafka. Settings by Kafka's names that a node here has a use for are handed
on; what means nothing here (the JVM, sockets, the cleaner) is left out.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from fencepost.clusters.abilities import Route
from fencepost.clusters.kafka.configuration import KafkaNode, Listener, controller_address
from fencepost.clusters.kafka_port import KafkaSpec, Role
from fencepost.clusters.port import CLIENTS
from fencepost.clusters.reference.shell.node_settings import HOSTS, KEPT
from fencepost.clusters.reference.shell.properties import KNOWN, LEVEL, parsed
from fencepost.clusters.reference.shell.property_values import RULES_OFF
from fencepost.clusters.reference.specs import DEFAULTS, level_of, own_settings

_OF_PROCESSES: Final[Mapping[str, str]] = {
    # Half of Kafka's: a new quorum waits for it before its first election, and messages of this
    # machine arrive within milliseconds. In virtual time waiting costs nothing.
    "controller.quorum.election.timeout.ms": "500",
}
"""Settings of nodes that are processes, over DEFAULTS."""


def settings_of(
    spec: KafkaSpec,
    node: KafkaNode,
    *,
    nodes: tuple[KafkaNode, ...],
    data: Path,
    hosts: Path,
    kept: Path,
    rules_off: Sequence[str],
    route: Route,
) -> dict[str, str]:
    """The node's properties. Raises UsageError if what the spec sets cannot be."""
    stated = {**DEFAULTS, **_OF_PROCESSES, **own_settings(spec, *node.roles)}
    voters = ",".join(f"{one.node_id}@{controller_address(one)}" for one in nodes if one.votes)
    found = {
        **{name: value for name, value in stated.items() if name in KNOWN},
        "process.roles": ",".join(node.roles),
        "node.id": str(node.node_id),
        "controller.connect": voters,
        "controller.listener.names": Listener.CONTROLLER,
        "log.dirs": str(data),
        LEVEL: str(level_of(spec)),
        HOSTS: str(hosts),
        KEPT: str(kept),
        **_listeners(node, route=route),
    }
    if rules_off:
        found[RULES_OFF] = ",".join(rules_off)
    parsed(found)
    return found


def ignored(spec: KafkaSpec) -> tuple[str, ...]:
    """The settings of a spec that mean nothing here."""
    stated: Mapping[str, str] = {
        **spec.settings,
        **spec.controller_settings,
        **spec.broker_settings,
    }
    return tuple(sorted(name for name in stated if name not in KNOWN))


def _listeners(node: KafkaNode, *, route: Route) -> dict[str, str]:
    bound = ",".join(f"{listener}://{node.address}:{port}" for listener, port in node.ports.items())
    if not node.serves:
        return {"listeners": bound}
    advertised = {
        Listener.CLIENT: route(CLIENTS, node.name) or node.address,
        Listener.REPLICATION: node.host_as(Role.BROKER),
    }
    return {
        "listeners": bound,
        "advertised.listeners": ",".join(
            f"{listener}://{host}:{node.ports[listener]}" for listener, host in advertised.items()
        ),
        "inter.broker.listener.name": Listener.REPLICATION,
    }
