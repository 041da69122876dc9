"""A real cluster between ZooKeeper and KRaft: its controllers lead, its brokers serve."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from waiting import kill_all

from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka_migrating.driver import DRIVER, KafkaMigratingCluster
from fencepost.clusters.kafka_migrating.system import KafkaMigratingSpec
from fencepost.clusters.system import Wanted
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.clock import Clock

pytestmark = pytest.mark.kafka

SPEC = KafkaMigratingSpec(brokers=2)
SERVER, CONTROLLER, FIRST, SECOND = SPEC.nodes


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaMigratingCluster]:
    with Warden(run_id="test") as warden:
        it = KafkaMigratingCluster(
            SPEC,
            prepared=DRIVER.prepare(SPEC, Wanted(), print),
            site=Site(
                host=LocalHost(warden),
                directory=tmp_path_factory.mktemp("nodes"),
                clock=Clock.start(),
            ),
        )
        try:
            it.start()
            it.create_topics([TopicSpec(name="t", replication_factor=2)])
            yield it
        finally:
            kill_all(it)
            it.stop()


def test_a_controller_of_kafkas_own_leads_and_the_znodes_have_what_it_decides(
    cluster: KafkaMigratingCluster,
) -> None:
    assert cluster.leader_now() == CONTROLLER
    view = cluster.view()
    assert view.controller == cluster.node_ids[CONTROLLER] == 1001
    assert view.brokers == {1, 2}
    assert set(view.partitions["t-0"].replicas) == {1, 2}


def test_controllers_dial_brokers_and_all_of_them_servers(cluster: KafkaMigratingCluster) -> None:
    ways = {(link.source, link.target) for link in cluster.links()}
    assert {
        (CONTROLLER, FIRST),
        (FIRST, CONTROLLER),
        (CONTROLLER, SERVER),
        (SECOND, SERVER),
    } <= ways


def test_the_metadata_log_is_the_controllers(
    cluster: KafkaMigratingCluster, tmp_path: Path
) -> None:
    report = cluster.testify(tmp_path, topics=["t"])
    assert report.replica_count == 2
    assert not report.damaged
    log = pq.read_table(tmp_path / "metadata_log.parquet").to_pydict()
    assert CONTROLLER in log["node"]
    assert {"ZkMigrationStateRecord", "TopicRecord"} <= set(log["type"])
