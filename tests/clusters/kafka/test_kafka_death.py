"""kill -9 of a harness that holds a cluster leaves no JVM, also none that was paused."""

import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fencepost.clusters.hosts.process import process_state
from fencepost.clusters.port import NodeState

pytestmark = pytest.mark.kafka

HARNESS = """
import sys, time
from pathlib import Path
from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.cluster import KafkaCluster
from fencepost.clusters.kafka.preparation import prepare
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.history.clock import Clock

spec = KafkaSpec(brokers=2, release="3.4.1")
prepared = prepare(spec, lambda line: None)
with Warden(run_id="doomed") as warden:
    cluster = KafkaCluster(
        spec,
        prepared=prepared,
        site=Site(host=LocalHost(warden), directory=Path(sys.argv[1]), clock=Clock.start()),
    )
    cluster.start()
    cluster.pause_node("broker-2")
    print(cluster.bootstrap_servers, *(cluster.pid_of(node) for node in cluster.nodes), flush=True)
    time.sleep(600)
"""


def test_no_jvm_outlives_a_harness_that_is_killed(
    tmp_path: Path, until: Callable[..., bool]
) -> None:
    command = [sys.executable, "-c", HARNESS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as harness:
        try:
            assert harness.stdout is not None
            servers, *pids = harness.stdout.readline().split()
            assert len(pids) == 3
            assert process_state(int(pids[2])) is NodeState.PAUSED
        finally:
            harness.kill()
    assert until(lambda: all(process_state(int(pid)) is NodeState.DOWN for pid in pids))
    for server in servers.split(","):
        host, _, port = server.partition(":")
        with socket.socket() as again:
            again.bind((host, int(port)))
