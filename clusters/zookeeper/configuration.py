"""The configuration of each server of an ensemble: a pure function of its spec.

Servers know each other by *host name*, and every JVM resolves names with a hosts file of its own: a
`Route` may give each (source, target) link an address of its own, and what listens there can tell
the link by it. (An address in zoo.cfg would not do: of two servers that elect, one tells the other
where to call back.) A server has three ports: for clients, for followers while it leads, and for
elections; all are bound to the address of its place alone.
"""

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fencepost.clusters.abilities import LinkEnd, Route, direct
from fencepost.clusters.hosts.place import LOOPBACK
from fencepost.clusters.link_protocol import LinkProtocol
from fencepost.clusters.port import CLIENTS, NodeName
from fencepost.clusters.zookeeper.system import ZooKeeperSpec

CONFIGURATION: Final = "zoo.cfg"
"""A server's configuration, by its name in the node's directory."""
HOSTS: Final = "hosts"
"""The file by which a server finds the others."""
MYID: Final = "myid"
"""The file of a data directory that states whose it is."""
_FOLLOWS_S: Final = 0.5
"""A follower dials the server that it voted for five times, every 100 ms (`connectToLeader`): that
one may learn a moment later that it leads, and listens only then.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleServer:
    """A server of the ensemble."""

    name: NodeName
    number: int
    """ZooKeeper's id of it: `myid`."""
    client_port: int
    quorum_port: int
    """The port on which it listens for followers while it leads."""
    election_port: int
    address: str = LOOPBACK
    """The address on which it listens."""

    @property
    def host(self) -> str:
        """The host name by which the others know it."""
        return f"{self.name}.quorum"


def configuration(
    spec: ZooKeeperSpec, server: EnsembleServer, *, servers: tuple[EnsembleServer, ...], data: str
) -> dict[str, str]:
    """The server's zoo.cfg. Settings of the spec win over the defaults."""
    return {
        **_defaults(spec),
        **spec.settings,
        "dataDir": data,
        "clientPort": str(server.client_port),
        "clientPortAddress": server.address,
        # Else one server would run without elections, epochs and a quorum's log.
        "standaloneEnabled": "false",
        "4lw.commands.whitelist": "*",
        **{f"server.{one.number}": _found_at(one) for one in servers},
    }


def hosts_file(
    source: NodeName, *, servers: tuple[EnsembleServer, ...], route: Route = direct
) -> str:
    """Return the names of all servers as this node resolves them; the JVM uses no other source."""
    own = "".join(f"{LOOPBACK} {host}\n" for host in ("localhost", socket.gethostname()))
    return own + server_names(source, servers=servers, route=route)


def server_names(
    source: NodeName, *, servers: tuple[EnsembleServer, ...], route: Route = direct
) -> str:
    """Return the lines of a node's hosts file by which it finds the servers."""
    found = {
        one.host: (None if one.name == source else route(source, one.name)) or one.address
        for one in servers
    }
    return "".join(f"{address} {host}\n" for host, address in found.items())


def links_between(
    servers: tuple[EnsembleServer, ...], *, clients: Sequence[NodeName] = (CLIENTS,)
) -> tuple[LinkEnd, ...]:
    """Return the links: each server to every other one (election, following), clients to each."""
    between = [
        LinkEnd(
            source=source.name,
            target=target.name,
            port=port,
            address=target.address,
            protocol=protocol,
            redials_s=_FOLLOWS_S if protocol is LinkProtocol.ZOOKEEPER_QUORUM else 0.0,
        )
        for target in servers
        # Only a leader listens for followers, so probes of a link are sent where all listen.
        for port, protocol in (
            (target.election_port, LinkProtocol.ZOOKEEPER_ELECTION),
            (target.quorum_port, LinkProtocol.ZOOKEEPER_QUORUM),
        )
        for source in servers
        if source is not target
    ]
    outside = [
        LinkEnd(
            source=client,
            target=target.name,
            port=target.client_port,
            address=target.address,
            protocol=LinkProtocol.ZOOKEEPER_CLIENT,
        )
        for target in servers
        for client in clients
    ]
    return (*between, *outside)


def _found_at(server: EnsembleServer) -> str:
    return f"{server.host}:{server.quorum_port}:{server.election_port}"


def _defaults(spec: ZooKeeperSpec) -> Mapping[str, str]:
    return {
        "tickTime": str(spec.tick_ms),
        # 10 s to take over what a leader has, 2 s without a word until a server is given up.
        "initLimit": str(max(1, 10_000 // spec.tick_ms)),
        "syncLimit": str(max(1, 2_000 // spec.tick_ms)),
        "admin.enableServer": "false",
        # All clients of a run come from one address.
        "maxClientCnxns": "0",
        # 64 MiB by default for each log, of which a short run fills little.
        "preAllocSize": "4096",
        # 5 s by default: as long would a server wait for one that packets do not reach.
        "cnxTimeout": "1000",
    }
