"""The whole nodes as a mix needs them, and the registrations that looks count."""

from pathlib import Path

import pytest
from interpreter_doubles import Bench

from fencepost.clusters.kafka_port import ClusterView, PartitionView
from fencepost.clusters.kafka_zookeeper.view import KafkaZooKeeperView, first_view
from fencepost.clusters.observation import Observation
from fencepost.clusters.port import NodeName, NodeState
from fencepost.harness.interpreter.network import watch_name
from fencepost.harness.interpreter.observer import whole_nodes

IDS = {NodeName(f"broker-{number}"): number for number in (1, 2, 3)}
B2 = NodeName("broker-2")


def lacking(key: str) -> ClusterView:
    """A cluster in which broker 2 is out of the ISR of this partition alone."""
    whole = PartitionView(leader=1, isr=(1, 2, 3), replicas=(1, 2, 3))
    short = PartitionView(leader=1, isr=(1, 3), replicas=(1, 2, 3))
    brokers = frozenset(IDS.values())
    return ClusterView(
        time_ns=0, brokers=brokers, serving=brokers, partitions={"t-0": whole, key: short}
    )


def observed(view: ClusterView | KafkaZooKeeperView) -> Observation:
    return Observation(
        view=view,
        active_controller=None,
        states=dict.fromkeys(IDS, NodeState.RUNNING),
        broker_ids=IDS,
        acknowledged_count=0,
    )


@pytest.mark.parametrize("key", ["t-0", "t-1", "__consumer_offsets-7"])
def test_a_node_that_lacks_something_of_the_run_or_of_kafka_is_not_whole(key: str) -> None:
    assert whole_nodes(observed(lacking(key)), topics=("t",)) == IDS.keys() - {B2}


def test_topics_that_a_workload_makes_and_deletes_are_not_waited_for() -> None:
    assert whole_nodes(observed(lacking("m-000539-0")), topics=("t",)) == IDS.keys()
    assert whole_nodes(observed(lacking("m-000539-0"))) == IDS.keys() - {B2}


def test_so_it_is_on_zookeeper() -> None:
    view = first_view([*IDS.values(), 2001], [])
    now = observed(
        KafkaZooKeeperView(
            kafka=lacking("m-000539-0"),
            controller=1,
            broker_epochs=view.broker_epochs,
            ensemble=view.ensemble,
        )
    )
    assert whole_nodes(now, topics=("t",)) == IDS.keys()
    assert whole_nodes(now) == IDS.keys() - {B2}


def test_registrations_of_a_migration_are_those_of_both_generations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    b = Bench(tmp_path)
    before = b.observer.registrations(B2)
    b.wire.matched[watch_name(B2)] = 1
    assert b.observer.registrations(B2) == before + 1
    monkeypatch.setattr(
        type(b.cluster), "latest_registration", lambda _self, _node: 7, raising=False
    )
    znode = b.observer.registrations(B2)
    b.wire.matched[watch_name(B2)] = 2
    assert b.observer.registrations(B2) == znode + 1
