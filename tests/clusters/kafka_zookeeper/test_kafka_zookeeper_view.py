"""A view of a cluster on ZooKeeper: who takes part, what is missing, which conditions hold."""

import random
from dataclasses import replace

import pytest

from fencepost.clusters.kafka_port import PartitionView
from fencepost.clusters.kafka_zookeeper.system import (
    CONDITIONS,
    ENSEMBLE_TARGETS,
    KafkaZooKeeperSpec,
)
from fencepost.clusters.kafka_zookeeper.view import KafkaZooKeeperView, first_view
from fencepost.clusters.observation import Observation
from fencepost.clusters.port import NodeName, NodeState
from fencepost.clusters.stage import Stage
from fencepost.clusters.targets import NotNowError
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.clusters.zookeeper.view import EnsembleView, ServerState
from fencepost.harness.interpreter.observer import whole_nodes
from fencepost.nemesis.targets import Scene

SPEC = KafkaZooKeeperSpec(zookeepers=3)
IDS = SPEC.view_ids
WHOLE = first_view(tuple(IDS.values()), [TopicSpec(name="t")])
STAGE = Stage(nodes=SPEC.nodes, system="kafka-zookeeper", keys=("t-0",), broker_ids=SPEC.member_ids)
SPLIT = EnsembleView(
    servers={
        1: ServerState(mode="leader", zxid=0x100000005),
        2: ServerState(mode="follower", zxid=0x100000004),
        3: ServerState(mode=None, zxid=None),
    },
    earlier=0x100000005,
)


def observed(
    view: KafkaZooKeeperView | None, *, active: str | None = "broker-1", registered: int = 0
) -> Observation:
    return Observation(
        view=view,
        active_controller=None if active is None else NodeName(active),
        states=dict.fromkeys(SPEC.nodes, NodeState.RUNNING),
        broker_ids=IDS,
        acknowledged_count=0,
        registrations={NodeName("broker-2"): registered},
    )


def scene(view: KafkaZooKeeperView | None) -> Scene:
    return Scene(nodes=SPEC.nodes, broker_ids=IDS, view=view, active_controller=None)


def holds(word: str, operand: object, now: Observation) -> bool:
    condition = CONDITIONS[word](word, operand, STAGE)
    assert condition.data() == {word: operand}
    return condition.holds(now)


def test_a_new_cluster_is_whole() -> None:
    assert WHOLE.is_whole(frozenset(IDS.values()))
    assert whole_nodes(observed(WHOLE)) == frozenset(SPEC.nodes)


def test_a_server_that_lags_or_looks_for_a_leader_is_not_whole() -> None:
    now = replace(WHOLE, ensemble=SPLIT)
    assert now.taking_part == {1, 2, 3, 2001, 2002}
    assert now.lagging == {2002}
    assert whole_nodes(observed(now)) == frozenset(SPEC.nodes) - {"zookeeper-2", "zookeeper-3"}
    assert not now.is_whole(frozenset(IDS.values()))


def test_a_cluster_without_a_controller_is_not_whole() -> None:
    now = replace(WHOLE, controller=None)
    assert now.incomplete == ["no broker is the active controller"]
    assert not now.is_whole(frozenset(IDS.values()))


def test_a_partition_out_of_its_isr_is_incomplete() -> None:
    short = PartitionView(leader=1, isr=(1, 3), replicas=(1, 2, 3))
    now = replace(WHOLE, kafka=replace(WHOLE.kafka, partitions={"t-0": short}))
    assert now.lagging == {2}
    assert now.incomplete == ["t-0 has leader 1 and isr [1, 3] of [1, 2, 3]"]
    assert not holds("isr", {"t-0": [1, 2, 3]}, observed(now))
    assert holds("isr", {"t-0": [1, 3]}, observed(now))


def test_a_broker_is_fenced_when_its_znode_is_gone() -> None:
    gone = replace(WHOLE, kafka=replace(WHOLE.kafka, brokers=frozenset({1, 3})))
    assert holds("fenced", "broker-2", observed(gone))
    assert not holds("fenced", "broker-2", observed(WHOLE))
    assert holds("unfenced", "broker-2", observed(WHOLE))
    assert holds("registered", "broker-2", observed(WHOLE, registered=1))
    assert not holds("registered", "broker-2", observed(WHOLE))


@pytest.mark.parametrize(
    ("word", "operand", "in_whole", "in_split"),
    [
        ("led", True, True, True),
        ("led", False, False, False),
        ("ensemble_leader", "zookeeper-3", True, False),
        ("ensemble_leader", "zookeeper-1", False, True),
        ("follows", "zookeeper-2", True, True),
        ("follows", "zookeeper-3", False, False),
        ("caught_up", "zookeeper-2", True, False),
        ("last_zxid", {"zookeeper-1": "0x100000005"}, False, True),
    ],
)
def test_a_condition_on_the_ensemble_asks_its_servers(
    word: str, operand: object, *, in_whole: bool, in_split: bool
) -> None:
    assert holds(word, operand, observed(WHOLE)) is in_whole
    assert holds(word, operand, observed(replace(WHOLE, ensemble=SPLIT))) is in_split


def test_nothing_holds_of_what_no_server_showed_but_that_none_leads() -> None:
    assert holds("led", False, observed(None))
    assert not holds("led", True, observed(None))
    assert not holds("fenced", "broker-2", observed(None))


def test_the_active_controller_is_a_broker() -> None:
    assert holds("active_controller", "broker-1", observed(WHOLE))
    assert not holds("active_controller", "broker-2", observed(WHOLE))


def test_servers_are_described_by_what_they_are_to_the_ensemble() -> None:
    leader, follower = ENSEMBLE_TARGETS
    assert (leader.words, follower.words) == ("ensemble leader", "ensemble follower")
    now, draw = scene(replace(WHOLE, ensemble=SPLIT)), random.Random(1)
    assert leader.find(now, "", draw) == "zookeeper-1"
    assert follower.find(now, "", draw) == "zookeeper-2"
    with pytest.raises(NotNowError):
        leader.find(scene(None), "", draw)
    with pytest.raises(NotNowError):
        follower.find(replace(now, down=frozenset(SPEC.nodes[:3])), "", draw)
