"""Processes whose metadata has been cut catch up by a snapshot that comes in many pieces."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.port import NodeName
from fencepost.clusters.reference.driver import ReferenceCluster
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError

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
    parts = {node: _parts(rows, node) for node in ("controller-1", "broker-1", "broker-2")}
    # Nobody hands a snapshot to the only controller. A broker that is slow may be handed one, as
    # the wiped one is; what it never had, another node had cut, and so kept.
    assert [first for first, _, _ in parts["controller-1"]] == [0]
    assert any(given for _, _, given in parts["broker-2"])
    for of_node in parts.values():
        assert all(given or first == 0 for first, _, given in of_node)
        assert [first for first, _, _ in of_node] == sorted(first for first, _, _ in of_node)
    last = max(end for of_node in parts.values() for _, end, _ in of_node)
    assert parts["controller-1"][0][1] == last


def _parts(rows: list[dict[str, Any]], node: str) -> list[tuple[int, int, bool]]:
    """Return a node's parts of the log: first and last offset, and if a snapshot goes before it."""
    parts: list[tuple[int, int, bool]] = []
    given: int | None = None
    for row in rows:
        if row["node"] != node:
            continue
        at = row["metadata_offset"]
        if row["snapshot"]:
            given = at
        elif parts and given is None and at == parts[-1][1] + 1:
            parts[-1] = (parts[-1][0], at, parts[-1][2])
        else:
            parts.append((at, at, given == at - 1))
            given = None
    return parts


def _serves(cluster: ReferenceCluster) -> bool:
    try:
        view = cluster.view()
    except HarnessError:
        return False
    return 2 in view.serving and len(view.topic_ids) == _TOPICS
