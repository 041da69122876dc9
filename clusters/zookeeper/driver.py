"""Ensembles of any release of Apache ZooKeeper: prepared, built, and run as processes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from fencepost.clusters.abilities import LinkEnd
from fencepost.clusters.hosts.command import run_command
from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import LOOPBACK, Site
from fencepost.clusters.hosts.ports import ReservedPorts
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.port import CLIENTS, NodeName
from fencepost.clusters.processes.cluster import ProcessCluster
from fencepost.clusters.processes.hardships import WrongClocks
from fencepost.clusters.processes.node import ProcessNode
from fencepost.clusters.processes.node_tables import write_log_findings, write_settings
from fencepost.clusters.protocol.talking import Address
from fencepost.clusters.provision.cache import Progress
from fencepost.clusters.provision.class_archives import TRAINING_OPTION, Training, archives_of
from fencepost.clusters.provision.java import find_java
from fencepost.clusters.system import Wanted
from fencepost.clusters.zookeeper.ensemble import Ensemble
from fencepost.clusters.zookeeper.four_letter_words import is_answered_on
from fencepost.clusters.zookeeper.prepared import ZooKeeperPrepared
from fencepost.clusters.zookeeper.releases import fetch_release
from fencepost.clusters.zookeeper.software import HEAP
from fencepost.clusters.zookeeper.stored.tables import DiskReport, write_server_disks
from fencepost.clusters.zookeeper.system import SERVER, ZooKeeperSpec
from fencepost.clusters.zookeeper.view import EnsembleView
from fencepost.clusters.zookeeper.watch import EnsembleWatch
from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError

_TRAINED: Final = ZooKeeperSpec(servers=3, java_options=(TRAINING_OPTION,))
"""Three, so that their lists together have what a leader loads, and what a follower does."""


class ZooKeeperCluster(WrongClocks, ProcessCluster):
    """`clusters.system.Recorded`, with all the abilities of a cluster of processes.

    The site's ports are three for each server.
    """

    def __init__(self, spec: ZooKeeperSpec, *, prepared: ZooKeeperPrepared, site: Site) -> None:
        self._spec = spec
        self._prepared = prepared
        # A proxy that listens for a link uses the very port of the target.
        ports = ReservedPorts(LOOPBACK)
        self._ensemble = Ensemble(
            spec,
            prepared=prepared,
            host=site.host,
            # Absolute, since each process starts inside its own directory.
            home=site.directory.absolute(),
            ports=iter(ports.take(spec.port_count(), base=site.port_base)),
        )
        super().__init__(
            spec,
            site=site,
            nodes=self._ensemble.nodes,
            ports=ports,
            is_answered=is_answered_on(self._ensemble.client_ports),
        )

    @property
    def spec(self) -> ZooKeeperSpec:
        """The specification that it was built from."""
        return self._spec

    @property
    def versions(self) -> Mapping[str, str]:
        """Return the versions under test: release, digest of its jars, Java."""
        release, java = self._prepared.release, self._prepared.java
        return {
            "zookeeper": release.version,
            "zookeeper_release": release.name,
            "zookeeper_jars_sha256": release.digest,
            "java": java.version,
            "java_build": java.build,
            "java_source": java.source,
        }

    @property
    def node_ids(self) -> Mapping[NodeName, int]:
        """ZooKeeper's ids of all servers."""
        return {name: server.number for name, server in self._ensemble.servers.items()}

    @property
    def view_ids(self) -> Mapping[NodeName, int]:
        """ZooKeeper's ids of all servers, which all serve clients."""
        return self.node_ids

    def client_addresses(self) -> tuple[str, ...]:
        """Return where clients find each server, by number: `host:port`."""
        return tuple(
            f"{self._route(CLIENTS, name) or server.address}:{server.client_port}"
            for name, server in self._ensemble.servers.items()
        )

    def links(self) -> tuple[LinkEnd, ...]:
        """Return links: servers to each other, clients to servers; none to itself."""
        return self._ensemble.links(clients=(CLIENTS,))

    def view(self) -> EnsembleView:
        """Ask the servers for their state, within 2 s.

        Raises HarnessError if none answers.
        """
        now = self._ensemble.look(self._running(SERVER))
        if not now.servers:
            raise HarnessError("no server answered")
        return now

    def leader_now(self) -> NodeName | None:
        """The server that leads, by its own word; None if none does."""
        return self._ensemble.leader(self._running(SERVER))

    def watch(self, raw: Path, *, topics: Sequence[str]) -> EnsembleWatch:  # noqa: ARG002 -- the port's
        """Record in `raw`, while entered, what the servers say of themselves."""
        return EnsembleWatch(raw, clock=self._clock, running=lambda: self._running(SERVER))

    def testify(self, raw: Path, *, topics: Sequence[str]) -> DiskReport:  # noqa: ARG002 -- the port's
        """Record in `raw` what each server was told, and what lies on its disk."""
        write_settings(raw, {name: node.settings for name, node in self._nodes.items()})
        skewed = {skew.node for skew in self._hardships.clock_skews()}
        logs: dict[str, Iterable[Path]] = {name: self.logs(name) for name in self._nodes}
        write_log_findings(raw, logs, clock=self._clock, skewed=skewed)
        return write_server_disks({name: self.data_of(name) for name in self._nodes}, raw)

    def _first_members(self) -> tuple[NodeName, ...]:
        return tuple(self._ensemble.servers)

    def _configure(self, node: ProcessNode) -> None:
        self._ensemble.configure(node, route=self._route)

    def _await_role(self, role: str, members: Sequence[NodeName]) -> None:  # noqa: ARG002 -- all of it
        self._ensemble.await_led(lambda: self._running(role))

    def _address(self, node: NodeName) -> Address:
        """Return the address at which the harness finds a server: always the direct one."""
        return self._ensemble.address(node)


class ZooKeeperDriver:
    """`clusters.system.Driver`."""

    cluster = ZooKeeperCluster

    def prepare(
        self, spec: ZooKeeperSpec, _wanted: Wanted, say: Callable[[str], None]
    ) -> ZooKeeperPrepared:
        """Prepare its release, and an archive of its classes."""
        java = find_java()
        # One of its own: the run has none yet, and nothing of this must outlive the harness either.
        with Warden(run_id="prepare") as warden:
            release = fetch_release(spec.release, java=java, warden=warden, progress=say)
            ready = ZooKeeperPrepared(java=java, release=release)
            archive = _class_archive(ready, warden=warden, progress=say)
        return replace(ready, class_archive=archive)

    def build(
        self,
        spec: ZooKeeperSpec,
        prepared: ZooKeeperPrepared,
        *,
        site: Site,
        rules_off: Sequence[str],
    ) -> ZooKeeperCluster:
        """The ensemble, with nothing of it running yet."""
        assert not rules_off, "refused before"
        return ZooKeeperCluster(spec, prepared=prepared, site=site)


DRIVER: Final = ZooKeeperDriver()


def _class_archive(ready: ZooKeeperPrepared, *, warden: Warden, progress: Progress) -> Path | None:
    def train(draft: Path) -> None:
        host, clock = LocalHost(warden), Clock.start()
        cluster = ZooKeeperCluster(
            _TRAINED, prepared=ready, site=Site(host=host, directory=draft, clock=clock)
        )
        try:
            cluster.start()
        finally:
            cluster.stop()

    training = Training(
        title=f"ZooKeeper {ready.version}",
        release=ready.release,
        java=ready.java,
        heap=HEAP,
        nodes={SERVER: tuple(map(str, _TRAINED.nodes))},
        run=train,
    )
    run = partial(run_command, warden=warden)
    return archives_of(training, run=run, progress=progress).get(SERVER)
