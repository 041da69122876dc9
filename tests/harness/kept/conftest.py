"""A run of our own nodes that is over: its disks, and how its nodes were started."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from manifests import MANIFEST

from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import LOOPBACK, Site
from fencepost.clusters.hosts.ports import ReservedPorts
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.port import NodeName
from fencepost.clusters.reference.driver import ReferenceCluster
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.harness.kept.keeping import end_kept
from fencepost.harness.kept.kept_cluster import discard_kept, kept_of
from fencepost.harness.run.starts import write_starts
from fencepost.history.clock import Clock
from fencepost.history.manifest import RunState, write_manifest
from fencepost.history.run_directory import RunDirectory


@pytest.fixture(autouse=True)
def _own_lock(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits for a run of somebody else's, or keeps one from starting."""
    monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def ports() -> Iterator[ReservedPorts]:
    """Hold the ports of the run while its cluster is down: nothing does so on a user's machine."""
    with closing(ReservedPorts(LOOPBACK)) as ports:
        yield ports


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory, ports: ReservedPorts) -> RunDirectory:
    """A run with a topic, after which two of three brokers were up."""
    results = tmp_path_factory.mktemp("results")
    run = RunDirectory.create(results, "smoke", datetime.now(UTC))
    with Warden(run_id="stored") as warden:
        site = Site(host=LocalHost(warden), directory=run.nodes, clock=Clock.start())
        cluster = ReferenceCluster(KafkaSpec(brokers=3), site=site)
        try:
            cluster.start()
            cluster.create_topics([TopicSpec(name="t", assignment=((1, 2),))])
            cluster.stop_node(NodeName("broker-3"))
            write_starts(run, cluster, ())
        finally:
            ports.hold(port for one in cluster.starts() for port in one.ports)
            cluster.stop()
    manifest = replace(MANIFEST, scenario="smoke", state=RunState.CHECKED, cluster="reference")
    write_manifest(run.manifest_path, manifest)
    run.verdict_path.write_text('{"validity": "invalid"}')
    return run


@pytest.fixture
def run(stored: RunDirectory, nothing_is_left_behind: None) -> Iterator[RunDirectory]:
    """The same, of which nothing is up or left when a test is over."""
    del nothing_is_left_behind  # it looks when this one has ended the cluster
    yield stored
    if kept_of(stored) is not None:
        end_kept(stored)
    discard_kept(stored)


@pytest.fixture
def results(run: RunDirectory) -> Path:
    return run.root.parent.parent
