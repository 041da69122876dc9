"""Stock clients of Kafka and a cluster of processes: kcat, and what is not there, said clearly."""

import shutil
import subprocess
from collections.abc import Iterator

import kafka
import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from kafka.admin import KafkaAdminClient
from kafka.admin import NewTopic as KafkaPythonTopic
from kafka.errors import IncompatibleBrokerVersion, TransactionalIdAuthorizationFailedError

from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.reference.driver import ReferenceCluster
from fencepost.history.clock import Clock

pytestmark = pytest.mark.slow

needs_kcat = pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
_QUIET = {"log_level": 0}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where clients find a cluster of one broker that has the topic t."""
    with Warden(run_id="clients") as warden:
        cluster = ReferenceCluster(
            KafkaSpec(brokers=1),
            site=Site(
                host=LocalHost(warden),
                directory=tmp_path_factory.mktemp("nodes"),
                clock=Clock.start(),
            ),
        )
        try:
            cluster.start()
            admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, **_QUIET})
            admin.create_topics([NewTopic("t", 1, 1)])["t"].result(20)
            yield cluster.bootstrap_servers
        finally:
            cluster.stop()


def kcat(servers: str, *arguments: str, said: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["kcat", "-b", servers, *arguments],
        input=said,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@needs_kcat
def test_kcat_writes_lists_and_reads(servers: str) -> None:
    assert kcat(servers, "-P", "-t", "t", "-p", "0", said="one\ntwo\n").returncode == 0
    listed = kcat(servers, "-L")
    assert 'topic "t" with 1 partitions' in listed.stdout
    found = kcat(servers, "-C", "-t", "t", "-p", "0", "-o", "beginning", "-e")
    assert found.stdout == "one\ntwo\n"


@needs_kcat
def test_kcat_is_told_at_once_that_groups_have_no_members_here(servers: str) -> None:
    ended = kcat(servers, "-G", "g", "t")
    assert ended.returncode == 1
    assert "JoinGroup failed: Local: Required feature not supported by broker" in ended.stderr


def test_librdkafka_gives_a_topic_more_partitions(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers, **_QUIET})
    admin.create_topics([NewTopic("grows", 1, 1)])["grows"].result(20)
    admin.create_partitions([NewPartitions("grows", 3)])["grows"].result(20)
    assert len(admin.list_topics(timeout=10).topics["grows"].partitions) == 3
    with pytest.raises(KafkaException) as refused:
        admin.create_partitions([NewPartitions("grows", 2)])["grows"].result(20)
    assert refused.value.args[0].code() == KafkaError.INVALID_PARTITIONS


def test_kafka_python_creates_a_topic(servers: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=servers)
    try:
        admin.create_topics([KafkaPythonTopic("made-by-it", 2, 1)])
        assert "made-by-it" in admin.list_topics()
    finally:
        admin.close()


def test_kafka_python_is_told_at_once_that_groups_have_no_members_here(servers: str) -> None:
    consumer = kafka.KafkaConsumer("t", bootstrap_servers=servers, group_id="g")
    try:
        with pytest.raises(IncompatibleBrokerVersion, match="JoinGroup"):
            consumer.poll(10_000)
    finally:
        consumer.close(autocommit=False)


def test_both_clients_list_the_groups_that_have_committed(servers: str) -> None:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "listed", **_QUIET})
    consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
    consumer.close()
    of_librdkafka = AdminClient({"bootstrap.servers": servers, **_QUIET})
    for wanted in (set(), {ConsumerGroupState.EMPTY}):
        found = of_librdkafka.list_consumer_groups(states=wanted).result(20)
        assert ("listed", ConsumerGroupState.EMPTY) in {(g.group_id, g.state) for g in found.valid}
        assert not found.errors
    busy = of_librdkafka.list_consumer_groups(states={ConsumerGroupState.STABLE}).result(20)
    assert busy.valid == []
    of_python = KafkaAdminClient(bootstrap_servers=servers)
    try:
        assert "listed" in {group for group, _ in of_python.list_consumer_groups()}
    finally:
        of_python.close()


def test_who_wants_transactions_gives_up_at_once(servers: str) -> None:
    of_librdkafka = Producer({"bootstrap.servers": servers, "transactional.id": "x", **_QUIET})
    with pytest.raises(KafkaException) as refused:
        of_librdkafka.init_transactions(20)
    found = refused.value.args[0]
    assert (found.fatal(), found.code()) == (True, 53)
    of_python = kafka.KafkaProducer(bootstrap_servers=servers, transactional_id="y")
    try:
        with pytest.raises(TransactionalIdAuthorizationFailedError):
            of_python.init_transactions()
    finally:
        of_python.close(timeout=0)
