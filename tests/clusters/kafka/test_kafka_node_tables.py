"""What is recorded of the nodes of a real cluster beside what lies in their logs."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from fencepost.clusters.kafka.cluster import KafkaCluster
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.history.cluster_tables import write_cluster_tables

RunCluster = Callable[..., AbstractContextManager[KafkaCluster]]

pytestmark = pytest.mark.kafka


def test_each_node_s_settings_are_recorded_and_a_calm_life_leaves_no_findings(
    tmp_path: Path, run_cluster: RunCluster
) -> None:
    raw, history = tmp_path / "raw", tmp_path / "history"
    raw.mkdir()
    history.mkdir()
    spec = KafkaSpec(brokers=1, controller_settings={"broker.session.timeout.ms": "4321"})
    with run_cluster(spec, leaves=True) as cluster:
        nodes = set(cluster.nodes)
    cluster.testify(raw, topics=())
    write_cluster_tables(raw, history)
    rows = pq.read_table(history / "node_settings.parquet").to_pylist()
    told = {row["node"]: row["value"] for row in rows if row["name"] == "broker.session.timeout.ms"}
    assert told == {"controller-1": "4321", "broker-1": "3000"}
    assert {row["node"] for row in rows} == nodes
    assert pq.read_table(history / "log_findings.parquet").num_rows == 0
