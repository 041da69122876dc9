"""A cluster of processes of our own, as stock clients of Kafka see it and as a nemesis treats it.

The tests share one cluster, and each leaves it whole.
"""

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import kafka
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from fencepost.clusters.abilities import (
    Explains,
    Kills,
    Links,
    Measures,
    Pauses,
    Snapshots,
    Starts,
    Stops,
    Wipes,
)
from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import LOOPBACK, Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.configuration import Listener
from fencepost.clusters.kafka.observation import ask_metadata, view_of
from fencepost.clusters.kafka_port import Administers, KafkaSpec, LogEnds, Role, role_of
from fencepost.clusters.port import Cluster, NodeName, NodeState
from fencepost.clusters.reference.driver import ReferenceCluster
from fencepost.clusters.reference.shell.formatting import format_directory
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError, UsageError

pytestmark = pytest.mark.slow

ONE, TWO, CONTROLLER = NodeName("broker-1"), NodeName("broker-2"), NodeName("controller-1")
_QUIET = {"log_level": 0}

Until = Callable[..., bool]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, until: Until) -> Iterator[ReferenceCluster]:
    with Warden(run_id="reference") as warden:
        it = ReferenceCluster(
            KafkaSpec(settings={"replica.lag.time.max.ms": "2000"}),
            site=Site(
                host=LocalHost(warden),
                directory=tmp_path_factory.mktemp("nodes"),
                clock=Clock.start(),
            ),
        )
        try:
            it.start()
            it.create_topics([TopicSpec(name="t", assignment=((1, 2, 3), (2, 3, 1)))])
            assert until(lambda: is_whole(it))
            yield it
        finally:
            it.stop()


@pytest.fixture(autouse=True)
def _left_whole(request: pytest.FixtureRequest, until: Until) -> Iterator[None]:
    yield
    if "cluster" in request.fixturenames:
        it = request.getfixturevalue("cluster")
        assert until(lambda: is_whole(it), timeout_s=40)


def is_whole(it: ReferenceCluster) -> bool:
    """Asked of each broker."""
    brokers = [node for node in it.nodes if role_of(node) is Role.BROKER]
    ports = {node: it.port_of(node, Listener.CLIENT) for node in brokers}
    answers = ask_metadata({node: (LOOPBACK, port) for node, port in ports.items()})
    views = [view_of(answer, time_ns=0) for answer in answers.values()]
    return len(views) == 3 and all(
        view.brokers == {1, 2, 3}
        and all(len(seen.isr) == len(seen.replicas) for seen in view.partitions.values())
        for view in views
    )


def is_fenced(it: ReferenceCluster, broker_id: int) -> bool:
    """Until then a dead broker holds the others' metadata up, and so their answers (V03)."""
    try:
        return broker_id not in it.view().brokers
    except HarnessError:
        return False


def send(it: ReferenceCluster, *values: bytes, partition: int = 0) -> list[int]:
    """Send records to all replicas; their offsets."""
    config = {"bootstrap.servers": it.bootstrap_servers, "acks": "all", "linger.ms": 1}
    producer = Producer({**config, "message.timeout.ms": 20_000, **_QUIET})
    offsets: list[int] = []

    def sent(error: object, message: object) -> None:
        assert error is None, error
        offsets.append(message.offset())  # type: ignore[attr-defined]

    for value in values:
        producer.produce("t", value, partition=partition, on_delivery=sent)
    assert producer.flush(25) == 0
    return offsets


def read(it: ReferenceCluster, offset: int, count: int, *, partition: int = 0) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": it.bootstrap_servers, "group.id": "reader", **_QUIET})
    try:
        consumer.assign([TopicPartition("t", partition, offset)])
        found: list[bytes] = []
        for _ in range(100):
            found += [one.value() for one in consumer.consume(count - len(found), 0.2)]
            if len(found) >= count:
                break
        return found
    finally:
        consumer.close()


def test_it_has_every_ability_of_a_cluster_of_processes(cluster: ReferenceCluster) -> None:
    for ability in (
        Cluster,
        Administers,
        Explains,
        Kills,
        Links,
        LogEnds,
        Measures,
        Pauses,
        Snapshots,
        Starts,
        Stops,
        Wipes,
    ):
        assert isinstance(cluster, ability), ability


def test_librdkafka_writes_and_reads(cluster: ReferenceCluster, until: Until) -> None:
    values = [b"v%d" % number for number in range(500)]
    offsets = send(cluster, *values)
    assert offsets == list(range(offsets[0], offsets[0] + 500))
    assert read(cluster, offsets[0], 500) == values
    for broker in (ONE, TWO):
        assert until(lambda broker=broker: cluster.log_end(broker, "t-0") == offsets[-1] + 1)


def test_librdkafka_administers(cluster: ReferenceCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, **_QUIET})
    settings = {"min.insync.replicas": "2"}
    wanted = NewTopic("made", num_partitions=2, replication_factor=3, config=settings)
    (made,) = admin.create_topics([wanted]).values()
    made.result(10)
    listed = admin.list_topics(timeout=10)
    assert len(listed.topics["made"].partitions) == 2
    assert {one.id for one in listed.brokers.values()} == {1, 2, 3}
    (described,) = admin.describe_configs([ConfigResource("topic", "made")]).values()
    assert described.result(10)["min.insync.replicas"].value == "2"
    (gone,) = admin.delete_topics(["made"]).values()
    gone.result(10)
    assert "made" not in admin.list_topics(timeout=10).topics


def test_librdkafka_commits_offsets_and_finds_them_again(cluster: ReferenceCluster) -> None:
    config = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "keeper", **_QUIET}
    for _ in range(2):
        consumer = Consumer({**config, "enable.auto.commit": False})
        try:
            place = TopicPartition("t", 1, 42)
            consumer.commit(offsets=[place], asynchronous=False)
            (found,) = consumer.committed([TopicPartition("t", 1)], timeout=10)
            assert found.offset == 42
        finally:
            consumer.close()


def test_kafka_python_writes_reads_lists_and_commits(cluster: ReferenceCluster) -> None:
    servers = cluster.bootstrap_servers.split(",")
    producer = kafka.KafkaProducer(bootstrap_servers=servers, acks="all")
    sent = [producer.send("t", b"p%d" % number, partition=1) for number in range(50)]
    offsets = [one.get(timeout=20).offset for one in sent]
    producer.close(timeout=10)
    place = kafka.TopicPartition("t", 1)
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=servers, group_id="python", enable_auto_commit=False
    )
    try:
        consumer.assign([place])
        assert consumer.end_offsets([place]) == {place: offsets[-1] + 1}
        assert consumer.beginning_offsets([place]) == {place: 0}
        consumer.seek(place, offsets[0])
        found: list[bytes] = []
        for _ in range(100):
            found += [one.value for ones in consumer.poll(200).values() for one in ones]
            if len(found) == 50:
                break
        assert found == [b"p%d" % number for number in range(50)]
        consumer.commit()
        assert consumer.committed(place) == offsets[-1] + 1
    finally:
        consumer.close()


def test_a_killed_broker_comes_back_with_what_it_had(
    cluster: ReferenceCluster, until: Until
) -> None:
    (first,) = send(cluster, b"before")
    cluster.kill_node(ONE)
    assert cluster.state(ONE) is NodeState.DOWN
    assert until(lambda: is_fenced(cluster, 1))
    (second,) = send(cluster, b"without")
    cluster.start_node(ONE)
    assert until(lambda: is_whole(cluster), timeout_s=40)
    assert read(cluster, first, second - first + 1)[-1] == b"without"
    assert cluster.log_end(ONE, "t-0") == second + 1


def test_k09_a_stopped_broker_takes_its_leave(cluster: ReferenceCluster, until: Until) -> None:
    assert cluster.stop_node(TWO)
    assert (cluster.data_of(TWO) / ".kafka_cleanshutdown").exists()
    send(cluster, b"without two", partition=1)
    cluster.start_node(TWO)
    assert until(lambda: is_whole(cluster), timeout_s=40)


def test_a_wiped_broker_fetches_everything_anew(cluster: ReferenceCluster, until: Until) -> None:
    (offset,) = send(cluster, b"kept by the others", partition=1)
    cluster.kill_node(TWO)
    assert until(lambda: is_fenced(cluster, 2))
    cluster.wipe_node(TWO)
    assert cluster.log_end(TWO, "t-1") is None
    cluster.start_node(TWO)
    assert until(lambda: is_whole(cluster), timeout_s=40)
    assert cluster.log_end(TWO, "t-1") == offset + 1


def test_a_paused_controller_is_waited_for(cluster: ReferenceCluster, until: Until) -> None:
    cluster.pause_node(CONTROLLER)
    assert cluster.leader_now() is None
    cluster.resume_node(CONTROLLER)
    assert until(lambda: cluster.leader_now() == CONTROLLER)


def test_a_restarted_controller_knows_what_it_decided(
    cluster: ReferenceCluster, until: Until
) -> None:
    cluster.kill_node(CONTROLLER)
    cluster.start_node(CONTROLLER)
    assert until(lambda: cluster.leader_now() == CONTROLLER)
    assert until(lambda: is_whole(cluster), timeout_s=40)


def test_an_operator_moves_a_leader(cluster: ReferenceCluster) -> None:
    said = cluster.move_leader("t-0", 2, within_s=20)
    assert "leader 2" in said
    cluster.move_leader("t-0", 1, within_s=20)


def test_replicas_are_reassigned(cluster: ReferenceCluster) -> None:
    cluster.reassign("t-1", (3, 1), within_s=30)
    cluster.reassign("t-1", (2, 3, 1), within_s=30)


def test_the_witness_reads_the_disks(cluster: ReferenceCluster, tmp_path: Path) -> None:
    send(cluster, b"x" * 8)
    report = cluster.testify(tmp_path, topics=["t"])
    assert report.damages == []
    assert not report.unknown_type_counts
    assert report.replica_count == 6
    assert min(report.metadata_record_counts.values()) > 10


def test_what_cannot_be_is_refused(tmp_path: Path, warden: Warden) -> None:
    def built(**changes: object) -> ReferenceCluster:
        spec = KafkaSpec(**changes)  # type: ignore[arg-type]
        return ReferenceCluster(
            spec, site=Site(host=LocalHost(warden), directory=tmp_path, clock=Clock.start())
        )

    with pytest.raises(UsageError, match=r"metadata\.versions 1, 2, 3, found '3\.4'"):
        built(metadata_version="3.4")
    impossible = built(settings={"broker.session.timeout.ms": "never"})
    with pytest.raises(UsageError, match=r"registration\.lease\.timeout\.ms: expected a whole"):
        impossible.start()
    impossible.stop()


def _node(tmp_path: Path, port: int, **more: str) -> subprocess.CompletedProcess[str]:
    stated = {
        "process.roles": "controller",
        "controller.id": "1001",
        "controller.connect": f"1001@127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CONTROLLER://127.0.0.1:{port}",
        "log.dirs": str(tmp_path / "data"),
        **more,
    }
    path = tmp_path / "server.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in stated.items()))
    command = [sys.executable, "-m", "fencepost.clusters.reference", "--config", str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_k11_a_node_does_not_start_on_a_directory_that_is_not_formatted(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    ended = _node(tmp_path, _free_port())
    assert ended.returncode == 1
    assert "not formatted" in ended.stdout.splitlines()[-1]


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    format_directory(tmp_path / "data", node_id=1001, cluster_id="c")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = _node(tmp_path, port)
    assert ended.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in ended.stdout
    assert "Traceback" not in ended.stdout + ended.stderr


def test_k12_an_unknown_property_is_one_line(tmp_path: Path) -> None:
    ended = _node(tmp_path, 1, **{"no.such.name": "1"})
    assert ended.returncode == 1
    assert "no.such.name is not known" in ended.stdout
    assert "Traceback" not in ended.stdout + ended.stderr


def test_a_node_that_dies_is_named_with_its_last_words(tmp_path: Path, warden: Warden) -> None:
    cluster = ReferenceCluster(
        KafkaSpec(brokers=1),
        site=Site(host=LocalHost(warden), directory=tmp_path, clock=Clock.start()),
    )
    taken = cluster.port_of(NodeName("broker-1"), Listener.CLIENT)
    said = rf"broker-1 ended with exit code 1: .*cannot listen on {LOOPBACK}:{taken}"
    with socket.create_server((LOOPBACK, taken)), pytest.raises(HarnessError, match=said):
        cluster.start()
    cluster.stop()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
