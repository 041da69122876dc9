"""One real cluster for all tests of clients, and a workload on a topic of its own for each."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from waiting import kill_all

from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.cluster import KafkaCluster
from fencepost.clusters.kafka.preparation import prepare
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.clock import Clock
from fencepost.history.run_directory import RunDirectory
from fencepost.workloads.produce_poll import ProducePoll
from fencepost.workloads.produce_poll_spec import ProducePollSpec

_WHOLE_S = 60.0

Start = Callable[[ProducePollSpec], tuple[ProducePoll, RunDirectory]]


@pytest.fixture(scope="session")
def warden() -> Iterator[Warden]:
    with Warden(run_id="tests-workloads") as warden:
        yield warden


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, warden: Warden) -> Iterator[KafkaCluster]:
    """1 controller and 3 brokers of the newest release."""
    spec = KafkaSpec()
    cluster = KafkaCluster(
        spec,
        prepared=prepare(spec, lambda _: None),
        site=Site(
            host=LocalHost(warden), directory=tmp_path_factory.mktemp("nodes"), clock=Clock.start()
        ),
    )
    try:
        cluster.start()
        yield cluster
    finally:
        kill_all(cluster)
        cluster.stop()


@pytest.fixture(autouse=True)
def _whole(request: pytest.FixtureRequest) -> None:
    """Some tests pause or kill a broker: the next one begins when it is back."""
    if "cluster" not in request.fixturenames:
        return
    cluster: KafkaCluster = request.getfixturevalue("cluster")
    deadline_s = time.monotonic() + _WHOLE_S
    while len(cluster.view().brokers) < cluster.spec.brokers:
        assert time.monotonic() < deadline_s, cluster.view()
        time.sleep(0.05)


@pytest.fixture
def make_workload(
    request: pytest.FixtureRequest, tmp_path: Path, warden: Warden, cluster: KafkaCluster
) -> Iterator[Start]:
    """Makes a workload on a topic of four partitions; ended, whatever the test did."""
    made: list[ProducePoll] = []

    def make(spec: ProducePollSpec) -> tuple[ProducePoll, RunDirectory]:
        topic = TopicSpec(name=f"{request.node.name.replace('_', '-')[:60]}", partitions=4)
        cluster.create_topics([topic])
        run = RunDirectory.create(tmp_path, "test", datetime.now(UTC))
        workload = ProducePoll(
            spec,
            warden=warden,
            bootstrap_servers=cluster.bootstrap_servers,
            topics=[topic],
            run=run,
            clock=Clock.start(),
            seed=7,
        )
        made.append(workload)
        return workload, run

    yield make
    for workload in made:
        workload.stop(timeout_s=0)
