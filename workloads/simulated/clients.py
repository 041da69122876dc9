"""Clients as hosts of a simulated world: placed, told to stop, waited for, and ended."""

from collections.abc import Sequence
from typing import Final, Protocol

from fencepost.clusters.node_port.effects import Node
from fencepost.clusters.reference.simulated.cluster import (
    CLIENTS_FROM,
    HARNESS_FROM,
    SimulatedCluster,
)
from fencepost.clusters.simulation.host import ProcessState, SimulatedHost

_STEP_NS: Final = 10_000_000


class Client(Node, Protocol):
    """A client: a node that can be told to end."""

    @property
    def idle(self) -> bool:
        """Return whether the client has nothing under way."""

    def give_up(self) -> None:
        """End its recording; what is open stays open."""


class Clients:
    """The clients of one workload, by name."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._hosts: dict[str, tuple[SimulatedHost, Client]] = {}

    def place(self, name: str, client: Client) -> None:
        """Start a client on a host of its own."""
        world = self._cluster.world
        taken = [number for number in world.hosts if CLIENTS_FROM <= number < HARNESS_FROM]
        host = world.add(max(taken, default=CLIENTS_FROM - 1) + 1, name, lambda: client, tick_ns=0)
        world.start(host)
        self._hosts[name] = (host, client)

    def wait(self, clients: Sequence[Client], *, within_ns: int) -> bool:
        """Let the world go on until these are idle; return whether they are."""
        end_ns = self._cluster.world.now_ns + within_ns
        while not all(client.idle for client in clients):
            if self._cluster.world.now_ns >= end_ns:
                return False
            self._cluster.run(_STEP_NS)
        return True

    def end(self, clients: Sequence[Client]) -> None:
        """End these for good, with their recordings."""
        for host, client in self._hosts.values():
            if any(client is one for one in clients) and host.state is not ProcessState.DOWN:
                client.give_up()
                self._cluster.world.kill(host)

    def end_all(self) -> None:
        """End the clients that have not ended, with their recordings."""
        self.end([client for _, client in self._hosts.values()])
