"""Nodes on disks of their own: what a power cut and a full, failed or stalled disk do to them.

Real processes on real file systems: of the reference cluster, which start in a second, and one
cluster of Kafka.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from clusters.hosts.disks.image import missing
from clusters.hosts.ledger import Ledger
from clusters.hosts.local_host import LocalHost
from clusters.hosts.warden import Warden
from clusters.kafka.cluster import KafkaCluster
from clusters.kafka.preparation import prepare
from clusters.port import (
    ClusterSpec,
    Disks,
    DiskTrouble,
    FlippedPart,
    NodeName,
    NodeState,
    TopicSpec,
)
from clusters.processes.cluster import ProcessCluster
from clusters.reference.processes import ReferenceCluster
from history.clock import Clock
from history.failure import HarnessError

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"no image disks: {missing()}")

ONE, TWO, THREE = (NodeName(f"broker-{number}") for number in (1, 2, 3))
BROKERS = (ONE, TWO, THREE)
TOPIC = TopicSpec(name="t", assignment=((1, 2, 3),), settings={"min.insync.replicas": "2"})

Until = Callable[..., bool]


@contextmanager
def started(make: Callable[..., ProcessCluster], directory: Path) -> Iterator[ProcessCluster]:
    with (
        Ledger(run_id="disks", directory=directory / "ledgers") as ledger,
        Warden(run_id="disks", will=ledger.will) as warden,
        LocalHost(warden, ledger=ledger) as host,
    ):
        cluster = make(host=host, directory=directory / "nodes", clock=Clock.start())
        try:
            cluster.start()
            cluster.create_topics([TOPIC])
            yield cluster
        finally:
            cluster.stop()
    assert not [path for path in directory.glob("nodes/*/disk") if path.is_mount()]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    spec = ClusterSpec(
        disks=Disks.IMAGE,
        settings={"broker.session.timeout.ms": "2000", "replica.lag.time.max.ms": "1500"},
    )
    with started(
        lambda **where: ReferenceCluster(spec, **where), tmp_path_factory.mktemp("reference")
    ) as it:
        yield it


def is_whole(cluster: ProcessCluster) -> bool:
    try:
        view = cluster.view()
    except HarnessError:
        return False
    # The others may still list a broker by the registration of its dead predecessor.
    return view.serving == {1, 2, 3} and len(view.partitions["t-0"].isr) == 3


def send(cluster: ProcessCluster, count: int) -> None:
    """Have so many records acknowledged by all replicas."""
    settings = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "acks": "all",
        "message.timeout.ms": 60000,
        "log_level": 0,
    }
    producer = Producer(settings)
    for number in range(count):
        producer.produce("t", f"{number}".encode() * 20, partition=0)
    assert producer.flush(60) == 0


def ends(cluster: ProcessCluster) -> list[int | None]:
    return [cluster.log_end(broker, "t-0") for broker in BROKERS]


def test_one_replica_without_power_gets_again_what_it_lost(
    reference: ProcessCluster, until: Until
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
    reference: ProcessCluster, until: Until
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
    reference: ProcessCluster, until: Until
) -> None:
    assert "error" in reference.trouble_disk(TWO, DiskTrouble.FAILED, stall_s=0)
    reference.mend_disk(TWO)
    assert reference.state(TWO) is NodeState.RUNNING
    assert until(lambda: is_whole(reference), timeout_s=60)


def test_a_node_whose_disk_is_stalled_can_be_killed(
    reference: ProcessCluster, until: Until
) -> None:
    reference.trouble_disk(THREE, DiskTrouble.STALLED, stall_s=0)
    reference.kill_node(THREE)
    assert reference.state(THREE) is NodeState.DOWN
    reference.mend_disk(THREE)
    assert reference.state(THREE) is NodeState.DOWN, "it was killed, and did not die of its disk"
    reference.start_node(THREE)
    assert until(lambda: is_whole(reference), timeout_s=60)


def test_a_bit_that_is_flipped_beyond_what_was_synced_costs_no_record(
    reference: ProcessCluster, until: Until
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
    spec = ClusterSpec(disks=Disks.IMAGE, settings={"broker.session.timeout.ms": "3000"})
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
