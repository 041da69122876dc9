"""The configuration of each node of a KRaft cluster: a pure function of its spec.

Each node has listeners of its own for each kind of traffic, so that each can be broken alone:
`CLIENT` for clients, `REPL` between brokers, `CONTROLLER` towards the controllers; on ZooKeeper, if
asked for, `CONTROL_PLANE` between brokers and the one that controls them. All but the first are
advertised by *host name*, and every JVM resolves names with a hosts file of its own: a `Route` may
give each (source, target) link an address of its own, and what listens there can tell the link by
it, at the very port that the target uses. The listeners themselves are bound to the address of the
node's place alone.

In a static quorum every node is told the voters (`controller.quorum.voters`), in a dynamic one
where to ask for them (`controller.quorum.bootstrap.servers`). From 3.9 on the quorum's answers say
where the leader is (KIP-853), and a node goes there: at once in a dynamic quorum, in a static one
(4.3.1) when a fetch has timed out. So controllers advertise their names, too; earlier releases
refuse that.
"""

import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from fencepost.clusters.abilities import LinkEnd, Route, direct
from fencepost.clusters.hosts.place import LOOPBACK
from fencepost.clusters.kafka_port import BrokersSpec, KafkaSpec, Quorum, Role, role_of
from fencepost.clusters.port import CLIENTS, NodeName, node_number
from fencepost.clusters.provision.releases import version_numbers
from fencepost.history.failure import UsageError

PROPERTIES: Final = "server.properties"
"""A node's configuration, by its name in the node's directory."""
HOSTS: Final = "hosts"
"""The file by which a node finds the others."""
_CONTROLLER_ID_BASE: Final = 1000
_CONTROLLERS_ADVERTISE: Final = (3, 9)
"""The first release that is told by which name its controllers are found."""
_HOST_SUFFIX: Final = {Role.CONTROLLER: "raft", Role.BROKER: "repl"}


class Listener(StrEnum):
    """The purpose of a listener; also its name in Kafka's configuration."""

    CLIENT = "CLIENT"
    REPLICATION = "REPL"
    CONTROLLER = "CONTROLLER"
    CONTROL_PLANE = "CONTROL_PLANE"


_LISTENERS: Final = {
    Role.CONTROLLER: (Listener.CONTROLLER,),
    Role.BROKER: (Listener.CLIENT, Listener.REPLICATION),
}

_RESERVED: Final = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "control.plane.listener.name",
        "controller.listener.names",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "listeners",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "node.id",
        "process.roles",
        "security.inter.broker.protocol",
        "zookeeper.connect",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaNode:
    """A node of the cluster: its name, Kafka's id of it, and its port for each of its listeners."""

    name: NodeName
    node_id: int
    ports: Mapping[Listener, int]
    address: str = LOOPBACK
    """The address on which it listens."""

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles of the node: those for whose listeners it has ports."""
        return tuple(role for role, own in _LISTENERS.items() if self.ports.keys() >= {*own})

    @property
    def votes(self) -> bool:
        """Return whether the node is a controller."""
        return Listener.CONTROLLER in self.ports

    @property
    def serves(self) -> bool:
        """Return whether the node is a broker."""
        return Listener.CLIENT in self.ports

    def host_as(self, role: Role) -> str:
        """The host name by which other nodes know it in this role."""
        return f"{self.name}.{_HOST_SUFFIX[role]}"


def nodes_of(spec: BrokersSpec, *, ports: Iterator[int]) -> tuple[KafkaNode, ...]:
    """The nodes of Kafka's own, controllers first, each with the next of the ports.

    Broker n has the id n, controller n the id 1000 + n. Spare ones follow on the others.
    """
    found = {node: _listeners_of(node, spec) for node in spec.nodes}
    return tuple(
        KafkaNode(
            name=node,
            node_id=node_number(node)
            + (_CONTROLLER_ID_BASE if role_of(node) is Role.CONTROLLER else 0),
            ports={listener: next(ports) for listener in own},
        )
        for node, own in found.items()
        if own
    )


def _listeners_of(node: NodeName, spec: BrokersSpec) -> tuple[Listener, ...]:
    roles = [role for role in _LISTENERS if spec.node_roles.has(node, role)]
    also = (Listener.CONTROL_PLANE,) if Role.BROKER in roles and spec.has_control_plane else ()
    return (*(listener for role in roles for listener in _LISTENERS[role]), *also)


def first_members(spec: BrokersSpec, nodes: Sequence[KafkaNode]) -> tuple[KafkaNode, ...]:
    """Return the nodes that make the cluster up when it starts: all but the spare ones."""
    return tuple(node for node in nodes if node.name not in spec.spares)


def refuse_impossible(spec: KafkaSpec) -> None:
    """Raise UsageError if the spec has no node of a role, or sets what the harness must decide."""
    if spec.controllers < 1 or spec.brokers < 1:
        raise UsageError(
            f"a cluster of {spec.controllers} controllers and {spec.brokers} brokers: "
            "there must be at least one of each"
        )
    if spec.spare_controllers and spec.quorum is Quorum.STATIC:
        raise UsageError(
            "spare controllers need `quorum: dynamic`: a static quorum's voters are fixed"
        )
    refuse_reserved(spec.settings, spec.controller_settings, spec.broker_settings)


def refuse_reserved(*settings: Mapping[str, str]) -> None:
    """Raise UsageError if one of them sets what the harness must decide."""
    for one in settings:
        if taken := sorted(_RESERVED.intersection(one)):
            raise UsageError(
                f"settings that the harness makes itself: {', '.join(taken)} (names, addresses "
                "and directories of the nodes); leave them out"
            )


def properties(
    spec: KafkaSpec,
    node: KafkaNode,
    *,
    nodes: tuple[KafkaNode, ...],
    data: Path,
    version: str,
    route: Route = direct,
) -> dict[str, str]:
    """The node's server.properties. The role's settings win over the common ones, over defaults."""
    return {
        **broker_defaults(spec.brokers, version=version),
        **_SESSIONS,
        **_WHOLE_METADATA_LOG,
        **spec.settings,
        **(spec.controller_settings if node.votes else {}),
        **(spec.broker_settings if node.serves else {}),
        **_quorum(spec, nodes=nodes),
        **_identity(node, data=data, version=version, route=route),
    }


def hosts_file(source: KafkaNode, *, nodes: tuple[KafkaNode, ...], route: Route = direct) -> str:
    """Return the names of all nodes as this one resolves them; the JVM uses no other source."""
    addresses = {
        node.host_as(role): _found_by(source.name, node, role, route=route)
        for node in nodes
        for role in node.roles
    }
    own = {"localhost": LOOPBACK, socket.gethostname(): LOOPBACK}
    return "".join(f"{address} {host}\n" for host, address in (own | addresses).items())


def links_between(
    nodes: tuple[KafkaNode, ...], *, dial_brokers: Sequence[Role] = (Role.BROKER,)
) -> tuple[LinkEnd, ...]:
    """Return the links by port: nodes to controllers, `dial_brokers` and clients to brokers.

    A broker that is a controller, too, dials itself as one; none dials itself as a broker.
    """
    between = [
        LinkEnd(
            source=source.name,
            target=target.name,
            port=target.ports[listener],
            address=target.address,
            role=Role.CONTROLLER if listener is Listener.CONTROLLER else Role.BROKER,
        )
        for target in nodes
        for source in nodes
        for listener in target.ports
        if _dials(source, target, listener, dial_brokers)
    ]
    outside = [
        LinkEnd(
            source=CLIENTS,
            target=target.name,
            port=target.ports[Listener.CLIENT],
            address=target.address,
            role=Role.BROKER,
        )
        for target in nodes
        if target.serves
    ]
    return (*between, *outside)


def _dials(
    source: KafkaNode, target: KafkaNode, listener: Listener, dial_brokers: Sequence[Role]
) -> bool:
    if listener is Listener.CONTROLLER:
        return source is not target or source.serves
    is_node = listener is not Listener.CLIENT
    return is_node and source is not target and not {*dial_brokers}.isdisjoint(source.roles)


def _found_by(source: NodeName, target: KafkaNode, role: Role, *, route: Route) -> str:
    dials_itself = role is Role.CONTROLLER and target.serves
    if source == target.name and not dials_itself:
        return target.address
    return route(source, target.name) or target.address


def _quorum(spec: KafkaSpec, *, nodes: tuple[KafkaNode, ...]) -> dict[str, str]:
    """Return the settings that name the voters, or where to ask for them."""
    controllers = [one for one in first_members(spec, nodes) if one.votes]
    found_at = [controller_address(one) for one in controllers]
    if spec.quorum is Quorum.DYNAMIC:
        return {"controller.quorum.bootstrap.servers": ",".join(found_at)}
    voters = (f"{one.node_id}@{at}" for one, at in zip(controllers, found_at, strict=True))
    return {"controller.quorum.voters": ",".join(voters)}


def _identity(node: KafkaNode, *, data: Path, version: str, route: Route) -> dict[str, str]:
    """Return the settings that say who the node is and where it is found."""
    common = {
        "node.id": str(node.node_id),
        "process.roles": ",".join(node.roles),
        "log.dirs": str(data),
        "controller.listener.names": Listener.CONTROLLER,
        **_listeners(node),
    }
    told = common | broker_listeners(node, route=route) if node.serves else common
    if not node.votes or version_numbers(version) < _CONTROLLERS_ADVERTISE:
        return told
    own = f"{Listener.CONTROLLER}://{controller_address(node)}"
    others = told.get("advertised.listeners")
    return told | {"advertised.listeners": f"{others},{own}" if others else own}


def controller_address(node: KafkaNode) -> str:
    """Return where other nodes find a controller: `host:port`."""
    return f"{node.host_as(Role.CONTROLLER)}:{node.ports[Listener.CONTROLLER]}"


def broker_listeners(node: KafkaNode, *, route: Route) -> dict[str, str]:
    """Return the settings that say where a broker is found, and by whom."""
    hosts = {Listener.CLIENT: _found_by(CLIENTS, node, Role.BROKER, route=route)}
    own = node.host_as(Role.BROKER)
    told = _listeners(node) | {
        "inter.broker.listener.name": Listener.REPLICATION,
        "advertised.listeners": ",".join(
            f"{listener}://{hosts.get(listener, own)}:{port}"
            for listener, port in node.ports.items()
            if listener is not Listener.CONTROLLER
        ),
    }
    if Listener.CONTROL_PLANE in node.ports:
        told["control.plane.listener.name"] = Listener.CONTROL_PLANE
    return told


def _listeners(node: KafkaNode) -> dict[str, str]:
    return {
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in Listener),
        "listeners": ",".join(
            f"{listener}://{node.address}:{port}" for listener, port in node.ports.items()
        ),
    }


_SESSIONS: Final = {
    # A restarted broker is refused until its old session has ended; a fault shows sooner.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "300",
}


_WHOLE_METADATA_LOG: Final = {
    # The log tells what was decided, from the first moment of the run on. A node deletes its
    # beginning behind a snapshot only by these, and one that lost its disk then fetches it whole.
    "metadata.max.retention.bytes": "-1",
    "metadata.max.retention.ms": "-1",
}


def broker_defaults(broker_count: int, *, version: str) -> dict[str, str]:
    """Return what the harness chooses for a broker, whatever keeps its metadata."""
    replication_factor = str(min(3, broker_count))
    isr_size_min = str(min(2, broker_count))
    chosen = {
        # A fault shows sooner.
        "replica.lag.time.max.ms": "3000",
        # The play says what is tested; a typo must not make a topic.
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": replication_factor,
        "transaction.state.log.replication.factor": replication_factor,
        "transaction.state.log.min.isr": isr_size_min,
        # 50 each by default: as many leaders to elect after every kill.
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.num.partitions": "4",
        "group.initial.rebalance.delay.ms": "0",
        # Several nodes share few cores and a small heap; the cleaner's buffer alone is 128 MiB.
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "4",
        "log.cleaner.dedupe.buffer.size": "8388608",
        # With the default of 64 KiB a large fetch is many turns through whatever stands between.
        "replica.socket.receive.buffer.bytes": "4194304",
        "socket.send.buffer.bytes": "-1",
        "socket.receive.buffer.bytes": "-1",
    }
    if version_numbers(version) >= (4, 0):
        chosen |= {
            "share.coordinator.state.topic.replication.factor": replication_factor,
            "share.coordinator.state.topic.min.isr": isr_size_min,
            "share.coordinator.state.topic.num.partitions": "4",
        }
    return chosen
