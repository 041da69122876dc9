"""A cluster for a benchmark: on this machine, in a directory of its own, without the proxy."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusters.hosts.local_host import LocalHost
from clusters.hosts.place import Site
from clusters.hosts.warden import Warden
from clusters.port import ClusterSpec
from clusters.system import Make, Prepared
from history.clock import Clock

__all__ = ["Built", "built"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A cluster, and what it stands on."""

    cluster: Any
    directory: Path
    """The directory above the nodes' own."""
    warden: Warden
    clock: Clock


@contextmanager
def built(make: Make, spec: ClusterSpec, *, prepared: Prepared, name: str) -> Iterator[Built]:
    """Give the cluster with nothing of it running yet; stop it, and remove all, at the end."""
    with (
        tempfile.TemporaryDirectory(prefix="fencepost-bench-") as directory,
        Warden(run_id=f"bench-{name}") as warden,
    ):
        clock = Clock.start()
        cluster = make.driver.build(
            spec,
            prepared,
            site=Site(host=LocalHost(warden), directory=Path(directory, "nodes"), clock=clock),
            rules_off=(),
        )
        try:
            yield Built(cluster=cluster, directory=Path(directory), warden=warden, clock=clock)
        finally:
            cluster.stop()
