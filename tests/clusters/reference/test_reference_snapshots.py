"""Processes whose metadata has been cut catch up by a snapshot that comes in many pieces."""

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from clusters.hosts.local_host import LocalHost
from clusters.hosts.place import Site
from clusters.hosts.warden import Warden
from clusters.kafka_port import KafkaSpec, TopicSpec
from clusters.port import NodeName
from clusters.reference.driver import ReferenceCluster
from history.clock import Clock
from history.failure import HarnessError

pytestmark = pytest.mark.slow

TWO = NodeName("broker-2")
_TOPICS = 30


def test_k10_a_broker_without_metadata_gets_it_in_pieces(
    tmp_path: Path, until: Callable[..., bool]
) -> None:
    settings = {
        "fencepost.metadata.snapshot.records": "20",
        "fencepost.metadata.snapshot.fetch.max.bytes": "64",
    }
    with Warden(run_id="snapshots") as warden:
        cluster = ReferenceCluster(
            KafkaSpec(brokers=2, settings=settings),
            site=Site(host=LocalHost(warden), directory=tmp_path, clock=Clock.start()),
        )
        try:
            cluster.start()
            cluster.create_topics(
                [TopicSpec(name=f"t{one}", replication_factor=2) for one in range(_TOPICS)]
            )
            cluster.kill_node(TWO)
            cluster.wipe_node(TWO)
            cluster.start_node(TWO)
            assert until(lambda: _serves(cluster), timeout_s=40)
            (snapshot,) = tmp_path.glob("broker-2/disk/**/*.checkpoint")
            assert snapshot.stat().st_size > 64 * 10
        finally:
            cluster.stop()
        cluster.testify(tmp_path, topics=[])
    log = pq.read_table(tmp_path / "metadata_log.parquet")
    rows = log.select(["node", "snapshot", "metadata_offset"]).to_pylist()
    for node in ("controller-1", "broker-1", "broker-2"):
        found = [row for row in rows if row["node"] == node]
        logged = [row["metadata_offset"] for row in found if not row["snapshot"]]
        assert logged[0] == 0
        assert logged == sorted(logged)
        # What a wiped broker had cut is there; a snapshot marks what it never had again.
        if node == "broker-2":
            assert any(row["snapshot"] for row in found)
        else:
            assert logged == list(range(len(found)))


def _serves(cluster: ReferenceCluster) -> bool:
    try:
        view = cluster.view()
    except HarnessError:
        return False
    return 2 in view.serving and len(view.topic_ids) == _TOPICS
