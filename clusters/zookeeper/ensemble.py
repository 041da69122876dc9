"""The servers of an ensemble as parts of a cluster of processes: its only ones, or some of them."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from fencepost.clusters.abilities import LinkEnd, Route
from fencepost.clusters.hosts.place import LOG, Host
from fencepost.clusters.port import NodeName
from fencepost.clusters.processes.node import ProcessNode
from fencepost.clusters.processes.properties import properties_file
from fencepost.clusters.protocol.talking import Address
from fencepost.clusters.zookeeper.configuration import (
    CONFIGURATION,
    HOSTS,
    EnsembleServer,
    configuration,
    hosts_file,
    links_between,
    server_names,
)
from fencepost.clusters.zookeeper.four_letter_words import ask_servers
from fencepost.clusters.zookeeper.prepared import ZooKeeperPrepared
from fencepost.clusters.zookeeper.software import ZooKeeperSoftware
from fencepost.clusters.zookeeper.system import SERVER, ZooKeeperSpec
from fencepost.clusters.zookeeper.view import EnsembleView
from fencepost.history.failure import HarnessError

_START_TIMEOUT_S: Final = 120.0
"""A start takes 2 to 4 s; on a machine that does much else, several times that."""
_POLL_S: Final = 0.02

Servers = Mapping[NodeName, Address]


class Ensemble:
    """Servers `ROLE-n` with the `myid` n. A server's directory has `zoo.cfg` and `hosts`.

    `home`: the directory of all nodes. Each server gets the next of the ports.
    """

    def __init__(
        self,
        spec: ZooKeeperSpec,
        *,
        prepared: ZooKeeperPrepared,
        host: Host,
        home: Path,
        ports: Iterator[int],
        role: str = SERVER,
    ) -> None:
        self._spec = spec
        names = [NodeName(f"{role}-{number}") for number in range(1, spec.servers + 1)]
        places = {name: host.place(name, directory=home / name) for name in names}
        self.servers: Final = {
            name: EnsembleServer(
                name=name,
                number=number,
                client_port=next(ports),
                quorum_port=next(ports),
                election_port=next(ports),
                address=places[name].address,
            )
            for number, name in enumerate(names, 1)
        }
        """Its servers by name."""
        self.nodes: Final = {
            name: ProcessNode(
                name,
                place=place,
                software=ZooKeeperSoftware(
                    number=self.servers[name].number, prepared=prepared, options=spec.java_options
                ),
                staging=home,
            )
            for name, place in places.items()
        }
        """Their nodes by name."""
        self._earlier: tuple[int | None, int] = (None, 0)
        """The leader of the last look, and what it had applied then."""

    @property
    def client_ports(self) -> frozenset[int]:
        """The ports on which servers listen for clients."""
        return frozenset(server.client_port for server in self.servers.values())

    def links(self, *, clients: Sequence[NodeName]) -> tuple[LinkEnd, ...]:
        """Return links: servers to each other, clients to servers; none to itself."""
        return links_between(tuple(self.servers.values()), clients=clients)

    def found_by(self, client: NodeName, *, route: Route) -> str:
        """Return the lines of a client's hosts file by which it finds the servers."""
        return server_names(client, servers=tuple(self.servers.values()), route=route)

    def address(self, node: NodeName) -> Address:
        """Return the address at which clients find a server that they reach directly."""
        server = self.servers[node]
        return (server.address, server.client_port)

    def configure(self, node: ProcessNode, *, route: Route) -> None:
        """Write what a server has to know of itself and of the others. A start reads it anew."""
        servers = tuple(self.servers.values())
        own = self.servers[node.name]
        settings = configuration(self._spec, own, servers=servers, data=str(node.data))
        files = {
            CONFIGURATION: properties_file(settings),
            HOSTS: hosts_file(own.name, servers=servers, route=route),
        }
        node.configure(settings, files)

    def look(self, running: Servers) -> EnsembleView:
        """Return what the servers that run say of themselves, within 2 s; nothing if none does."""
        now = self._shown(running)
        leader, applied = self._earlier
        self._earlier = now.leader, now.applied
        return replace(now, earlier=applied) if leader == now.leader else now

    def leader(self, running: Servers) -> NodeName | None:
        """The server that leads, by its own word; None if none does."""
        leader = self._shown(running).leader
        return next((name for name, one in self.servers.items() if one.number == leader), None)

    def await_led(self, running: Callable[[], Servers]) -> None:
        """Wait until one server leads and all others follow.

        Raises HarnessError if a server dies, or after two minutes.
        """
        numbers = frozenset(server.number for server in self.servers.values())
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not (now := self._shown(running())).is_whole(numbers):
            dead = [node for node in self.nodes.values() if node.process.exit_code is not None]
            if dead:
                raise HarnessError("; ".join(node.obituary() for node in dead))
            if time.monotonic() > deadline:
                logs = next(iter(self.nodes.values())).place.directory.parent / "*" / LOG
                raise HarnessError(
                    f"servers {sorted(numbers)} were not one ensemble {_START_TIMEOUT_S:.0f} s "
                    f"after the start: {sorted(now.taking_part)} take part; "
                    f"{'; '.join(now.incomplete)}; logs: {logs}"
                )
            time.sleep(_POLL_S)

    def _shown(self, running: Servers) -> EnsembleView:
        answers = ask_servers(running)
        shown = {self.servers[name].number: state for name, state in answers.items()}
        return EnsembleView(servers=shown)
