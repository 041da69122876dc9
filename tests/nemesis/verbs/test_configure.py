"""Other properties for a node: read, written back, and in force from its next start on."""

import pytest

from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.observation import Down
from fencepost.clusters.port import NodeName
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.simulated.quorum_kit import build as build_quorum
from fencepost.clusters.reference_zookeeper.simulated.kit import build
from fencepost.clusters.reference_zookeeper.system import ReferenceZooKeeperSpec
from fencepost.clusters.stage import Stage
from fencepost.history.failure import HarnessError, SpecError
from fencepost.nemesis.play import parse_play, step_data
from fencepost.nemesis.steps import next_ends
from fencepost.nemesis.verbs.configure import Configure

ONE, TWO = NodeName("broker-1"), NodeName("broker-2")
STAGE = Stage(nodes=(ONE, TWO), keys=("t-0",), broker_ids=(1, 2))


def test_values_are_written_as_properties_have_them() -> None:
    step = {"configure": "broker-1", "settings": {"a.b": 3, "c": True, "d": "x"}}
    (read,) = parse_play([step], STAGE)
    assert isinstance(read, Configure)
    assert read.settings == {"a.b": "3", "c": "true", "d": "x"}
    assert parse_play([step_data(read)], STAGE) == (read,)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"configure": "broker-1"}, "needs 'settings'"),
        ({"configure": "broker-1", "settings": {}}, "expected properties by their names"),
        ({"configure": "broker-1", "settings": {"a": [1]}}, "expected one value"),
    ],
)
def test_what_are_no_properties_is_refused(step: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_play([step], STAGE)


def test_they_hold_from_the_next_start_on_and_are_on_record() -> None:
    cluster = build(ReferenceZooKeeperSpec(inter_broker_protocol=1), seed=1)
    cluster.start()
    said = cluster.change_settings(TWO, {"inter.broker.protocol.version": "2"})
    assert (
        said
        == "broker-2: its properties have inter.broker.protocol.version=2 from its next start on"
    )
    cluster.change_settings(TWO, {"host.name": "elsewhere"})
    before = cluster.host(TWO).node
    assert before is not None
    cluster.kill_node(TWO)
    cluster.start_node(TWO)
    told = cluster.host(TWO).node.inner.situation.configuration  # type: ignore[union-attr]
    assert (told.inter_broker_protocol, told.host_name) == (2, "elsewhere")
    assert cluster.kit.settings(TWO)["inter.broker.protocol.version"] == "1", "at first"
    assert [(node, given) for _, node, given in cluster.setting_changes()] == [
        (TWO, {"inter.broker.protocol.version": "2"}),
        (TWO, {"host.name": "elsewhere"}),
    ]


def test_what_the_software_does_not_take_is_refused() -> None:
    cluster = build(ReferenceZooKeeperSpec(), seed=1)
    with pytest.raises(HarnessError, match=r"no\.such"):
        cluster.change_settings(ONE, {"no.such": "1"})
    with pytest.raises(HarnessError, match="zookeeper-1 has no properties of Kafka's"):
        cluster.change_settings(NodeName("zookeeper-1"), {"tickTime": "1"})


def test_nodes_of_the_kraft_generation_take_the_numbers_that_they_know() -> None:
    cluster = build_quorum(KafkaSpec(brokers=2, settings={"log.cleaner.threads": "1"}), seed=1)
    cluster.start()
    cluster.change_settings(TWO, {"replica.lag.time.max.ms": "700"})
    cluster.change_settings(TWO, {"broker.heartbeat.interval.ms": "200"})
    cluster.kill_node(TWO)
    cluster.start_node(TWO)
    told = cluster.host(TWO).node.situation.configuration  # type: ignore[union-attr]
    assert (told.replica_lag_max_ns, told.heartbeat_interval_ns) == (700 * MS, 200 * MS)
    with pytest.raises(HarnessError, match=r"log\.cleaner\.threads"):
        cluster.change_settings(ONE, {"log.cleaner.threads": "2"})
    with pytest.raises(HarnessError, match="expected a whole number, found 'soon'"):
        cluster.change_settings(ONE, {"replica.lag.time.max.ms": "soon"})


def test_the_end_of_a_node_is_awaited_if_that_is_the_next_thing_that_happens_to_it() -> None:
    down = [{"await": {"down": "broker-1"}}, {"await": {"down": "broker-2"}}]
    both = parse_play(down, STAGE)
    assert isinstance(both[0].condition, Down)  # type: ignore[attr-defined]
    assert next_ends(both) == {ONE, TWO}
    killed = parse_play([{"wait": "1s"}, {"kill": "broker-2"}, *down], STAGE)
    assert next_ends(killed) == {ONE}
    anybody = parse_play([{"kill": "one broker"}, {"heal": "all"}, *down], STAGE)
    assert next_ends(anybody) == frozenset()
