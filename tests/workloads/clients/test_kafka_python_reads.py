"""Reads of metadata by stock clients of two lineages, of a cluster that is there or is not."""

import time
from collections.abc import Iterator

import pytest
from waiting import kill_all

from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.talking import Address
from fencepost.clusters.reference.driver import ReferenceCluster
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.clock import Clock
from fencepost.workloads.clients.kafka_python_reads import KafkaPythonReads
from fencepost.workloads.clients.librdkafka_reads import LibrdkafkaReads

pytestmark = pytest.mark.slow

ONE, TWO = NodeName("broker-1"), NodeName("broker-2")
CLIENTS = (KafkaPythonReads, LibrdkafkaReads)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReferenceCluster]:
    with Warden(run_id="reads") as warden:
        cluster = ReferenceCluster(
            KafkaSpec(brokers=2),
            site=Site(
                host=LocalHost(warden),
                directory=tmp_path_factory.mktemp("nodes"),
                clock=Clock.start(),
            ),
        )
        try:
            cluster.start()
            setting = {"retention.ms": "1000000000005"}
            cluster.create_topics([TopicSpec(name="t", replication_factor=2, settings=setting)])
            yield cluster
        finally:
            kill_all(cluster)
            cluster.stop()


@pytest.fixture
def brokers(cluster: ReferenceCluster) -> dict[NodeName, Address]:
    hosts = dict(zip((ONE, TWO), cluster.bootstrap_servers.split(","), strict=True))
    return {
        name: (where.partition(":")[0], int(where.partition(":")[2]))
        for name, where in hosts.items()
    }


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("one", [ONE, TWO])
def test_it_reads_what_each_broker_of_a_cluster_shows(
    client: type[KafkaPythonReads | LibrdkafkaReads],
    one: NodeName,
    brokers: dict[NodeName, Address],
) -> None:
    reads = client(one, brokers=brokers, client_id="c")
    for _ in range(3):
        answered, (shown, gone) = reads.topics(["t", "gone"], timeout_s=10)
        # It may have met the other broker before it asks.
        assert answered in brokers
        assert (shown["topic"], shown["error"], shown["partition"]) == ("t", "NONE", 0)
        assert set(shown["isr"]) <= set(shown["replicas"]) == {1, 2}
        assert gone == {"topic": "gone", "error": "UNKNOWN_TOPIC_OR_PARTITION"}
    counters = (
        {"topic": "t", "error": "NONE", "config_value": 5},
        {"topic": "gone", "error": "UNKNOWN_TOPIC_OR_PARTITION"},
    )
    assert reads.configs(["t", "gone"], timeout_s=10) == (one, counters)
    assert reads.configs([], timeout_s=10) == (one, ())
    reads.close()


def test_a_broker_that_is_not_there_is_silence_within_the_time() -> None:
    reads = KafkaPythonReads(ONE, brokers={ONE: ("127.0.0.1", 1)}, client_id="c")
    for read in (reads.topics, reads.configs):
        began_s = time.monotonic()
        assert read(["t"], timeout_s=0.5) == (ONE, ({"topic": "t", "error": "REQUEST_TIMED_OUT"},))
        assert time.monotonic() - began_s < 5
    reads.close()
