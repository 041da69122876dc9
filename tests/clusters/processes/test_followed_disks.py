"""Nodes of which it is followed what they sync: what a loss of power takes from them without root.

Real processes, as whoever runs the tests: of the reference cluster, which start in a second, and
one cluster of Kafka.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from forgetful_clusters import BROKERS, ONE, TWO, ends, is_whole, quick_spec, send, started

from fencepost.clusters.kafka.cluster import KafkaCluster
from fencepost.clusters.kafka.preparation import prepare
from fencepost.clusters.kafka.processes import BrokerProcesses
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.port import Disks, DiskTrouble, NodeState
from fencepost.clusters.reference.driver import ReferenceCluster
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.failure import HarnessError

pytestmark = pytest.mark.slow

Until = Callable[..., bool]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcesses]:
    spec = quick_spec(Disks.FOLLOWED)
    directory = tmp_path_factory.mktemp("followed")
    with started(lambda **where: ReferenceCluster(spec, **where), directory) as cluster:
        yield cluster


def test_one_replica_without_power_gets_again_what_it_lost(
    reference: BrokerProcesses, until: Until
) -> None:
    send(reference, 500)
    assert until(lambda: len(set(ends(reference))) == 1)
    (end,) = set(ends(reference))
    said = reference.cut_power([ONE])
    assert f"t-0 0..{(end or 0) - 1}" in said
    assert "followed" in said
    assert reference.state(ONE) is NodeState.DOWN
    assert reference.log_end(ONE, "t-0") in (None, 0)
    assert reference.log_end(TWO, "t-0") == end
    reference.start_node(ONE)
    assert until(lambda: is_whole(reference), timeout_s=60)
    assert until(lambda: reference.log_end(ONE, "t-0") == end)


def test_what_a_dead_process_left_unsynced_is_lost_with_the_power_of_its_node(
    reference: BrokerProcesses, until: Until
) -> None:
    send(reference, 100)
    assert until(lambda: len(set(ends(reference))) == 1)
    (end,) = set(ends(reference))
    reference.kill_node(ONE)
    assert reference.log_end(ONE, "t-0") == end
    reference.cut_power([ONE])
    assert reference.log_end(ONE, "t-0") != end
    reference.start_node(ONE)
    assert until(lambda: is_whole(reference), timeout_s=60)


def test_no_other_trouble_comes_to_such_a_disk(reference: BrokerProcesses) -> None:
    with pytest.raises(HarnessError, match="set `disks: image`"):
        reference.trouble_disk(TWO, DiskTrouble.FULL, stall_s=0)


def test_a_node_that_did_not_preload_the_library_loses_nothing_and_the_run_fails(
    tmp_path: Path,
) -> None:
    spec = quick_spec(Disks.FOLLOWED)
    with started(lambda **where: ReferenceCluster(spec, **where), tmp_path) as cluster:
        cluster.kill_node(ONE)
        cluster.cut_power([ONE])
        cluster._nodes[ONE].env = {}
        cluster.start_node(ONE)
        with pytest.raises(HarnessError, match="did not preload"):
            cluster.cut_power([ONE])


@pytest.mark.kafka
def test_kafka_loses_what_all_acknowledged_and_keeps_what_it_synced(
    tmp_path: Path, until: Until
) -> None:
    spec = KafkaSpec(disks=Disks.FOLLOWED, settings={"broker.session.timeout.ms": "3000"})
    synced = TopicSpec(name="synced", assignment=((1, 2, 3),), settings={"flush.messages": "1"})
    prepared = prepare(spec, print)
    with started(lambda **where: KafkaCluster(spec, prepared=prepared, **where), tmp_path) as it:
        it.create_topics([synced])
        send(it, 2000)
        send(it, 200, topic="synced")
        assert until(lambda: ends(it) == [2000, 2000, 2000])
        assert until(lambda: ends(it, "synced-0") == [200, 200, 200])
        said = it.cut_power(BROKERS)
        assert said.count("t-0 0..1999") == 3
        assert "3 nodes within" in said
        assert set(ends(it)) <= {None, 0}
        assert ends(it, "synced-0") == [200, 200, 200]
        for broker in BROKERS:
            it.start_node(broker)
        assert until(lambda: is_whole(it), timeout_s=90)
