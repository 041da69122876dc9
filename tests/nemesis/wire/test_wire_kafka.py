"""A real cluster, all of whose links between nodes go through the proxy: it works, and is taped."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from waiting import until

from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.cluster import KafkaCluster
from fencepost.clusters.kafka.preparation import prepare
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.port import CLIENTS, NodeName
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.clock import Clock
from fencepost.history.cluster_tables import write_cluster_tables
from fencepost.nemesis.wire.rules import Clause, Hold, Link, Match, Operator, Rule
from fencepost.nemesis.wire.wire import Wire

pytestmark = pytest.mark.kafka

NODES = [NodeName(name) for name in ("controller-1", "broker-1", "broker-2", "broker-3")]
ONE, TWO = NODES[1], NODES[2]


def address_of(source: NodeName, target: NodeName) -> str | None:
    """127.77.source.target, by the order of the nodes; the clients' own links go straight."""
    if source == CLIENTS:
        return None
    return f"127.77.{1 + NODES.index(source)}.{1 + NODES.index(target)}"


def links_of(cluster: KafkaCluster) -> list[Link]:
    return [
        Link(source=end.source, target=end.target, address=address, port=end.port, role=end.role)
        for end in cluster.links()
        if (address := address_of(end.source, end.target)) is not None
    ]


@contextmanager
def proxied(
    release: str, directory: Path, *, combined: bool
) -> Iterator[tuple[KafkaCluster, Wire]]:
    settings = {"replica.lag.time.max.ms": "1500"}
    spec = KafkaSpec(release=release, settings=settings, combined=combined)
    clock = Clock.start()
    with Warden(run_id="test") as warden:
        cluster = KafkaCluster(
            spec,
            prepared=prepare(spec, print),
            site=Site(
                host=LocalHost(warden), directory=directory / "nodes", clock=clock, route=address_of
            ),
        )
        with Wire(
            links_of(cluster),
            warden=warden,
            directory=directory,
            log=directory / "wire.log",
            clock=clock,
        ) as wire:
            try:
                cluster.start()
                yield cluster, wire
            finally:
                cluster.stop()


def rows(directory: Path) -> list[dict[str, Any]]:
    """The tape as it is sealed: the table `wire`."""
    (directory / "history").mkdir()
    write_cluster_tables(directory, directory / "history")
    table = pq.read_table(directory / "history" / "wire.parquet")
    found: list[dict[str, Any]] = table.to_pylist()
    return found


@pytest.mark.parametrize(("release", "combined"), [("4.3.1", True), ("3.4.1", False)])
def test_a_cluster_behind_the_proxy_works_and_its_control_plane_is_on_tape(
    release: str, tmp_path: Path, *, combined: bool
) -> None:
    """A combined node asks its own controller over a link, too: all of it can be held."""
    with proxied(release, tmp_path, combined=combined) as (cluster, wire):
        assert cluster.leader_now() == (ONE if combined else NODES[0])
        cluster.create_topics([TopicSpec(name="t", assignment=((1, 2, 3),))])
        produce(cluster, 1000)
        wire.add(
            Rule(
                name="join",
                action=Hold(),
                match=Match(
                    api="AlterPartition",
                    sources=(ONE,),
                    where=(Clause(field="isr", operator=Operator.INCLUDES, value=2),),
                ),
            )
        )
        wire.block([(TWO, ONE), (ONE, TWO)])
        assert not wire.probe(TWO, ONE, timeout_s=0.2)
        assert until(lambda: 2 not in isr(cluster, acks="1"))
        wire.unblock()
        assert wire.probe(TWO, ONE, timeout_s=5)
        assert until(lambda: wire.status().rules["join"].held_now == 1)
        assert 2 not in isr(cluster, acks="1")
        assert wire.release("join").delivered == 1
        assert until(lambda: isr(cluster, acks="all") == {1, 2, 3})
        assert not wire.status().broken
        if combined:
            assert_one_process_has_both_roles(cluster)
    taped = rows(tmp_path)
    assert_taped(taped)
    [held] = [row for row in taped if row["rule"] == "join"]
    assert (held["action"], sorted(held["isr"])) == ("released", [1, 2, 3])
    assert held["target"] == (ONE if combined else NODES[0])
    assert held["forwarded_ns"] > held["time_ns"]
    if release == "4.3.1":
        assert len(held["isr_epochs"]) == 3
    answers = [row for row in taped if row["api"] == "AlterPartition" and row["error"] is not None]
    assert [row["error"] for row in answers] == ["NONE"] * len(answers)
    assert sorted(answers[-1]["isr"]) == [1, 2, 3]


def assert_taped(taped: list[dict[str, Any]]) -> None:
    """Everything that a checker asks of a cluster that has started is there, and decoded."""
    undecoded = [row for row in taped if "not decoded" in (row["detail"] or "")]
    assert not undecoded, undecoded[:3]
    granted = [
        row
        for row in taped
        if row["api"] == "BrokerRegistration" and row["direction"] == "response"
    ]
    assert {row["source"] for row in granted} == set(NODES[1:])
    assert all(row["error"] == "NONE" and row["broker_epoch"] >= 0 for row in granted)
    incarnations = {
        row["incarnation_id"] for row in taped if row["api"] == "BrokerRegistration"
    } - {None}
    assert len(incarnations) == 3
    beats = [row for row in taped if row["api"] == "BrokerHeartbeat"]
    assert {row["broker_id"] for row in beats} == {1, 2, 3, None}
    assert any(row["fenced"] is False for row in beats if row["direction"] == "response")
    assert any(row["fetch_offset"] > 0 for row in beats if row["direction"] == "request")
    fetches = [row for row in taped if row["api"] == "Fetch"]
    asked = {row["connection"] for row in fetches if row["topic"] == "__cluster_metadata"}
    metadata = [row for row in fetches if row["connection"] in asked]
    assert any((row["high_watermark"] or 0) > 0 for row in metadata)
    # Of data, the first fetch of each connection between brokers.
    first = {row["connection"] for row in fetches} - asked
    assert first
    assert len(first) == len({row["frame"] for row in fetches if row["connection"] in first})
    assert all(row["broker_id"] in {1, 2, 3} for row in fetches if row["connection"] in first)


def assert_one_process_has_both_roles(cluster: KafkaCluster) -> None:
    """The disk of the one that votes has the metadata log beside its replicas."""
    assert cluster.nodes == tuple(NODES[1:])
    found = {path.name for path in cluster.data_of(ONE).iterdir()}
    assert {"__cluster_metadata-0", "t-0"} <= found


def isr(cluster: KafkaCluster, *, acks: str) -> set[int]:
    produce(cluster, 1, acks=acks)
    return set(cluster.view().partitions["t-0"].isr)


def produce(cluster: KafkaCluster, count: int, *, acks: str = "all") -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": acks})
    for number in range(count):
        producer.produce("t", str(number).encode(), partition=0)
    assert producer.flush(30) == 0
