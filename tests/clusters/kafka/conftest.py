"""Real clusters for tests marked `kafka`, each shared by as many tests as possible."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from waiting import kill_all

from fencepost.clusters.abilities import Route, direct
from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.cluster import KafkaCluster
from fencepost.clusters.kafka.preparation import prepare
from fencepost.clusters.kafka.prepared import KafkaPrepared
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.history.clock import Clock

RunCluster = Callable[..., AbstractContextManager[KafkaCluster]]


@pytest.fixture(scope="session")
def prepared() -> Callable[[KafkaSpec], KafkaPrepared]:
    """What a spec needs; its progress is shown when a test fails."""
    return lambda spec: prepare(spec, print)


@pytest.fixture(scope="session")
def run_cluster(
    tmp_path_factory: pytest.TempPathFactory, prepared: Callable[[KafkaSpec], KafkaPrepared]
) -> RunCluster:
    """Build a cluster in a directory of its own, start it unless told not to, and end it.

    `leaves`: its nodes take their leave from each other then, which takes seconds.
    """

    @contextmanager
    def run(
        spec: KafkaSpec,
        *,
        start: bool = True,
        port_base: int | None = None,
        route: Route = direct,
        directory: Path | None = None,
        leaves: bool = False,
    ) -> Iterator[KafkaCluster]:
        with Warden(run_id="test") as warden:
            cluster = KafkaCluster(
                spec,
                prepared=prepared(spec),
                site=Site(
                    host=LocalHost(warden),
                    directory=directory or tmp_path_factory.mktemp("nodes"),
                    clock=Clock.start(),
                    port_base=port_base,
                    route=route,
                ),
            )
            try:
                if start:
                    cluster.start()
                yield cluster
            finally:
                if not leaves:
                    kill_all(cluster)
                cluster.stop()

    return run
