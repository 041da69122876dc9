"""Nodes on disks of their own: what a power cut and a full, failed or stalled disk do to them.

Real processes on real file systems: of the reference cluster, which start in a second, and one
cluster of Kafka.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from forgetful_clusters import BROKERS, ONE, THREE, TWO, ends, is_whole, quick_spec, send, started

from fencepost.clusters.hosts.disks.image import missing
from fencepost.clusters.kafka.cluster import KafkaCluster
from fencepost.clusters.kafka.preparation import prepare
from fencepost.clusters.kafka.processes import BrokerProcesses
from fencepost.clusters.kafka_port import FlippedPart, KafkaSpec
from fencepost.clusters.port import Disks, DiskTrouble, NodeState
from fencepost.clusters.reference.driver import ReferenceCluster
from fencepost.history.failure import HarnessError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(missing() is not None, reason=f"no image disks: {missing()}"),
]

Until = Callable[..., bool]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcesses]:
    spec = quick_spec(Disks.IMAGE)
    with started(
        lambda **where: ReferenceCluster(spec, **where), tmp_path_factory.mktemp("reference")
    ) as it:
        yield it


def test_one_replica_without_power_gets_again_what_it_lost(
    reference: BrokerProcesses, until: Until
) -> None:
    send(reference, 500)
    assert until(lambda: len(set(ends(reference))) == 1)
    (end,) = set(ends(reference))
    said = reference.cut_power([ONE])
    assert f"t-0 0..{(end or 0) - 1}" in said
    assert reference.log_end(ONE, "t-0") in (None, 0)
    assert reference.log_end(TWO, "t-0") == end
    reference.start_node(ONE)
    assert until(lambda: is_whole(reference), timeout_s=60)
    assert until(lambda: reference.log_end(ONE, "t-0") == end)


def test_a_node_that_dies_of_its_disk_is_back_once_that_is_mended(
    reference: BrokerProcesses, until: Until
) -> None:
    said = reference.trouble_disk(TWO, DiskTrouble.FULL, stall_s=0)
    assert "no block is free" in said
    with pytest.raises(HarnessError, match="full already"):
        reference.trouble_disk(TWO, DiskTrouble.FAILED, stall_s=0)
    assert until(lambda: reference.state(TWO) is NodeState.DOWN)
    reference.mend_disk(TWO)
    assert reference.state(TWO) is NodeState.RUNNING
    assert until(lambda: is_whole(reference), timeout_s=60)


def test_a_disk_that_failed_is_mended_under_a_node_that_may_still_run(
    reference: BrokerProcesses, until: Until
) -> None:
    assert "error" in reference.trouble_disk(TWO, DiskTrouble.FAILED, stall_s=0)
    reference.mend_disk(TWO)
    assert reference.state(TWO) is NodeState.RUNNING
    assert until(lambda: is_whole(reference), timeout_s=60)


def test_a_node_whose_disk_is_stalled_can_be_killed(
    reference: BrokerProcesses, until: Until
) -> None:
    reference.trouble_disk(THREE, DiskTrouble.STALLED, stall_s=0)
    reference.kill_node(THREE)
    assert reference.state(THREE) is NodeState.DOWN
    reference.mend_disk(THREE)
    assert reference.state(THREE) is NodeState.DOWN, "it was killed, and did not die of its disk"
    reference.start_node(THREE)
    assert until(lambda: is_whole(reference), timeout_s=60)


def test_a_bit_that_is_flipped_beyond_what_was_synced_costs_no_record(
    reference: BrokerProcesses, until: Until
) -> None:
    send(reference, 100)
    assert until(lambda: len(set(ends(reference))) == 1)
    (end,) = set(ends(reference))
    with pytest.raises(HarnessError, match="running: only a node that is down"):
        reference.flip_bit(ONE, FlippedPart.SEGMENT, seed=1)
    reference.kill_node(ONE)
    said = reference.flip_bit(ONE, FlippedPart.SEGMENT, seed=1)
    assert "of t-0/" in said
    reference.start_node(ONE)
    assert until(lambda: is_whole(reference), timeout_s=60)
    assert until(lambda: reference.log_end(ONE, "t-0") == end)


@pytest.mark.kafka
@pytest.mark.slow
def test_all_replicas_without_power_at_once_lose_what_they_acknowledged(
    tmp_path: Path, until: Until
) -> None:
    spec = KafkaSpec(disks=Disks.IMAGE, settings={"broker.session.timeout.ms": "3000"})
    prepared = prepare(spec, print)
    with started(lambda **where: KafkaCluster(spec, prepared=prepared, **where), tmp_path) as it:
        send(it, 2000)
        assert until(lambda: ends(it) == [2000, 2000, 2000])
        said = it.cut_power(BROKERS, torn_seed=5)
        assert said.count("t-0 ") == 3
        assert "3 nodes within" in said
        assert all((end or 0) < 2000 for end in ends(it))
        for broker in BROKERS:
            it.start_node(broker)
        assert until(lambda: is_whole(it), timeout_s=90)
        assert it.log_end(ONE, "t-0") is not None
