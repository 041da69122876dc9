"""An ensemble in a world: its servers as hosts, and what they have written when all is over."""

from collections.abc import Iterator
from functools import partial

from fencepost.clusters.data_tree.transactions import Transaction
from fencepost.clusters.node_port.zookeeper import ZOOKEEPER
from fencepost.clusters.simulation.host import ProcessState, SimulatedHost
from fencepost.clusters.simulation.world import World
from fencepost.clusters.simulation.zookeeper.entries import LOG, LogEntry, transactions
from fencepost.clusters.simulation.zookeeper.quorum import EnsembleConsensus, Mode
from fencepost.clusters.simulation.zookeeper.server import ZooKeeperServer
from fencepost.clusters.simulation.zookeeper.timing import Timing


class SimulatedEnsemble:
    """`count` servers, numbered from 2001 on, all down."""

    def __init__(self, world: World, count: int = 1, *, timing: Timing | None = None) -> None:
        self._world = world
        self._timing = timing or Timing()
        self.numbers = tuple(ZOOKEEPER + number for number in range(1, count + 1))
        placed: dict[int, SimulatedHost] = {}
        self._quorum = EnsembleConsensus(placed, world.network)
        for number in self.numbers:
            placed[number] = self._place(number)
        self.hosts = tuple(placed.values())

    def start(self) -> None:
        """Start the servers that are down."""
        for host in self.hosts:
            if host.state is ProcessState.DOWN:
                self._world.start(host)

    @property
    def leader(self) -> SimulatedHost | None:
        """The server that leads and serves; of several that think so, that of the latest epoch."""
        found = [
            (node.member.epoch.number, host)
            for host, node in self._running()
            if node.member.mode is Mode.LEADING and node.member.is_serving
        ]
        return max(found, key=lambda one: one[0])[1] if found else None

    def server(self, host: SimulatedHost) -> ZooKeeperServer:
        """Return the node of a host that is up."""
        assert isinstance(host.node, ZooKeeperServer), host
        return host.node

    def log(self, host: SimulatedHost) -> tuple[LogEntry, ...]:
        """Return what is on the disk of a server, up or down."""
        return tuple(host.disk.batches(LOG))

    def committed(self) -> tuple[LogEntry, ...]:
        """Return the committed log as the servers that are up know it, else the longest disk's."""
        known = [self.log(host)[: node.member.applied] for host, node in self._running()]
        if not any(known):
            known = [self.log(host) for host in self.hosts]
        return max(known, key=lambda log: log[-1].zxid if log else 0)

    def transactions(self) -> Iterator[Transaction]:
        """Yield the committed transactions, in order."""
        return transactions(self.committed())

    def _running(self) -> list[tuple[SimulatedHost, ZooKeeperServer]]:
        return [(host, host.node) for host in self.hosts if isinstance(host.node, ZooKeeperServer)]

    def _place(self, number: int) -> SimulatedHost:
        name = f"zookeeper-{number - ZOOKEEPER}"
        build = partial(ZooKeeperServer, number, self._quorum, self._timing)
        return self._world.add(number, name, build)
