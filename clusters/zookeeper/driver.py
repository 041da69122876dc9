"""Prepares and builds ensembles of Apache ZooKeeper."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from clusters.abilities import Route
from clusters.hosts.command import run_command
from clusters.hosts.local_host import LocalHost
from clusters.hosts.place import Host
from clusters.hosts.warden import Warden
from clusters.provision.cache import Progress
from clusters.provision.class_archives import TRAINING_OPTION, Training, archives_of
from clusters.provision.java import find_java
from clusters.system import Wanted
from clusters.zookeeper.cluster import ZooKeeperCluster
from clusters.zookeeper.prepared import ZooKeeperPrepared
from clusters.zookeeper.releases import fetch_release
from clusters.zookeeper.software import HEAP
from clusters.zookeeper.system import SERVER, ZooKeeperSpec
from history.clock import Clock

__all__ = ["DRIVER", "ZooKeeperDriver"]

_TRAINED: Final = ZooKeeperSpec(servers=3, java_options=(TRAINING_OPTION,))
"""Three, so that their lists together have what a leader loads, and what a follower does."""


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
        host: Host,
        directory: Path,
        clock: Clock,
        rules_off: Sequence[str],
        port_base: int | None,
        route: Route,
    ) -> ZooKeeperCluster:
        """The ensemble, with nothing of it running yet."""
        assert not rules_off, "refused before"
        return ZooKeeperCluster(
            spec,
            prepared=prepared,
            host=host,
            directory=directory,
            clock=clock,
            port_base=port_base,
            route=route,
        )


DRIVER: Final = ZooKeeperDriver()


def _class_archive(ready: ZooKeeperPrepared, *, warden: Warden, progress: Progress) -> Path | None:
    def train(draft: Path) -> None:
        host, clock = LocalHost(warden), Clock.start()
        cluster = ZooKeeperCluster(
            _TRAINED, prepared=ready, host=host, directory=draft, clock=clock
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
