"""A dynamic quorum (KIP-853) behind the proxy: voters have directories, and links stay known."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import UUID

import pyarrow.parquet as pq
import pytest
from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest, PartitionData, TopicData
from kio.schema.describe_quorum.v2.response import DescribeQuorumResponse
from kio.schema.types import TopicName
from kio.static.primitive import i32
from waiting import kill_all

from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import LOOPBACK, Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.admin_requests import topic_id_text
from fencepost.clusters.kafka.cluster import KafkaCluster
from fencepost.clusters.kafka.configuration import Listener
from fencepost.clusters.kafka.formatting import directory_id_of
from fencepost.clusters.kafka.multi_node_requests import ask
from fencepost.clusters.kafka.prepared import KafkaPrepared
from fencepost.clusters.kafka_port import KafkaSpec, Quorum, Role, role_of
from fencepost.clusters.port import CLIENTS, NodeName
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.clock import Clock
from fencepost.history.cluster_tables import write_cluster_tables
from fencepost.nemesis.wire.rules import Link
from fencepost.nemesis.wire.wire import Wire

pytestmark = pytest.mark.kafka

SPEC: Final = KafkaSpec(controllers=3, brokers=2, release="4.3.1", quorum=Quorum.DYNAMIC)
NODES: Final = tuple(
    NodeName(name)
    for name in ("controller-1", "controller-2", "controller-3", "broker-1", "broker-2")
)
_QUORUM: Final = DescribeQuorumRequest(
    topics=(
        TopicData(
            topic_name=TopicName("__cluster_metadata"),
            partitions=(PartitionData(partition_index=i32(0)),),
        ),
    )
)


def address_of(source: NodeName, target: NodeName) -> str | None:
    """127.78.source.target, by the order of the nodes; the clients' own links go straight."""
    if source == CLIENTS:
        return None
    return f"127.78.{1 + NODES.index(source)}.{1 + NODES.index(target)}"


@contextmanager
def proxied(prepared: KafkaPrepared, directory: Path) -> Iterator[KafkaCluster]:
    clock = Clock.start()
    with Warden(run_id="test") as warden:
        cluster = KafkaCluster(
            SPEC,
            prepared=prepared,
            site=Site(
                host=LocalHost(warden), directory=directory / "nodes", clock=clock, route=address_of
            ),
        )
        links = [
            Link(source=end.source, target=end.target, address=address, port=end.port)
            for end in cluster.links()
            if (address := address_of(end.source, end.target)) is not None
        ]
        log = directory / "wire.log"
        with Wire(links, warden=warden, directory=directory, log=log, clock=clock):
            try:
                cluster.start()
                yield cluster
            finally:
                kill_all(cluster)
                cluster.stop()


def voters_of(cluster: KafkaCluster) -> Mapping[int, str] | None:
    """The directory ids of the voters, as the leader describes its quorum; None if nobody leads."""
    leader = cluster.leader_now()
    if leader is None:
        return None
    address = (LOOPBACK, cluster.port_of(leader, Listener.CONTROLLER))
    answers = ask({leader: address}, _QUORUM, DescribeQuorumResponse, timeout_s=60.0)
    return {
        int(voter.replica_id): topic_id_text(voter.replica_directory_id or UUID(int=0))
        for answer in answers.values()
        for topic in answer.topics
        for partition in topic.partitions
        for voter in partition.current_voters
    }


def observers_of(cluster: KafkaCluster) -> set[int]:
    """Who fetches from the leader and has no vote, by Kafka's id; empty if nobody leads."""
    leader = cluster.leader_now()
    if leader is None:
        return set()
    address = (LOOPBACK, cluster.port_of(leader, Listener.CONTROLLER))
    answers = ask({leader: address}, _QUORUM, DescribeQuorumResponse, timeout_s=60.0)
    return {
        int(observer.replica_id)
        for answer in answers.values()
        for topic in answer.topics
        for partition in topic.partitions
        for observer in partition.observers
    }


def test_a_dynamic_quorum_works_behind_the_proxy_and_does_not_take_a_new_disk_for_a_voter(
    prepared: Callable[[KafkaSpec], KafkaPrepared], tmp_path: Path, until: Callable[..., bool]
) -> None:
    with proxied(prepared(SPEC), tmp_path) as cluster:
        first = {
            cluster.broker_id(node): directory_id_of(cluster.data_of(node))
            for node in NODES
            if role_of(node) is Role.CONTROLLER
        }
        assert until(lambda: voters_of(cluster) == first)
        leader = cluster.leader_now()
        assert leader is not None

        cluster.kill_node(leader)
        assert until(lambda: cluster.leader_now() not in (None, leader), timeout_s=90)
        cluster.create_topics([TopicSpec(name="t", replication_factor=2)])

        cluster.wipe_node(leader)
        cluster.start_node(leader)
        replaced = directory_id_of(cluster.data_of(leader))
        assert replaced not in first.values()
        # It fetches with its new directory id, which has no vote.
        assert until(lambda: cluster.broker_id(leader) in observers_of(cluster), timeout_s=90)
        assert until(lambda: voters_of(cluster) == first)
    assert_each_link_was_used(tmp_path)


def assert_each_link_was_used(directory: Path) -> None:
    """Each broker's Fetch of metadata and heartbeats, and the controllers' votes, are on tape."""
    (directory / "history").mkdir()
    write_cluster_tables(directory, directory / "history")
    tape = pq.read_table(
        directory / "history" / "wire.parquet", columns=["source", "target", "api"]
    ).to_pylist()
    by_api: dict[str, set[str]] = {}
    for row in tape:
        if role_of(row["target"]) is Role.CONTROLLER:
            by_api.setdefault(row["api"], set()).add(row["source"])
    assert by_api["BrokerHeartbeat"] == {"broker-1", "broker-2"}
    assert by_api["Fetch"] == {str(node) for node in NODES}
    assert by_api["Vote"] & {"controller-1", "controller-2", "controller-3"}
