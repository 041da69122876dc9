"""A whole cluster of the ZooKeeper generation in virtual time."""

from typing import Any

import pytest
from zk_cluster import Cluster

from fencepost.clusters.node_port.notes import BROKER_CONTROLLED_STATE, FENCED_SELF
from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.protocol.controlled_states import ControlledState
from fencepost.clusters.reference.zk.configuration import InterBrokerProtocol

DIRECT = {"inter_broker_protocol": InterBrokerProtocol.DIRECT}


def led(*assignment: int, settings: dict[int, dict[str, Any]] | None = None) -> Any:
    """A cluster and a partition of these replicas, which all have one record."""
    cluster = Cluster(settings=settings).ready()
    key = (cluster.create("t", assignment or (1, 2, 3)), 0)
    assert cluster.produce(key, "a", broker=(assignment or (1,))[0]) == 0
    return cluster, key


def others(cluster: Cluster) -> list[int]:
    """The brokers that are not the controller."""
    return [one for one in cluster.hosts if one != cluster.controller()]


def wait_for_isr(cluster: Cluster, key: PartitionKey, members: set[int]) -> None:
    cluster.until(
        lambda: all(set(cluster.isr(key, broker=one)) == members for one in cluster.running())
    )


def write(cluster: Cluster, key: PartitionKey, value: str) -> None:
    """Produce with retries, as a client does that reads the metadata anew each time."""
    cluster.until(
        lambda: (
            cluster.leader(key) in cluster.running()
            and cluster.produce(key, value, broker=cluster.leader(key)) == 0
        )
    )


@pytest.mark.parametrize("protocol", list(InterBrokerProtocol))
def test_a_cluster_elects_a_controller_and_serves_a_topic(protocol: InterBrokerProtocol) -> None:
    cluster, key = led(settings={0: {"inter_broker_protocol": protocol}})
    assert cluster.produce(key, "b", broker=1) == 0
    assert cluster.consume(key, broker=1) == ["a", "b"]
    cluster.until(lambda: cluster.values(2, key) == cluster.values(3, key) == ["a", "b"])


@pytest.mark.parametrize("protocol", list(InterBrokerProtocol))
def test_a_killed_leader_is_replaced_and_comes_back(protocol: InterBrokerProtocol) -> None:
    cluster = Cluster(settings={0: {"inter_broker_protocol": protocol}}).ready()
    first, second = others(cluster)
    key = (cluster.create("t", (first, second, cluster.controller())), 0)
    assert cluster.produce(key, "a", broker=first) == 0
    cluster.kill(first)
    cluster.until(lambda: cluster.leader(key) == second)
    cluster.until(lambda: cluster.produce(key, "b", broker=second) == 0)
    cluster.start(first)
    wait_for_isr(cluster, key, {1, 2, 3})
    assert cluster.values(first, key)[0] == "a"


@pytest.mark.parametrize("protocol", list(InterBrokerProtocol))
def test_a_killed_controller_is_replaced(protocol: InterBrokerProtocol) -> None:
    cluster, key = led(settings={0: {"inter_broker_protocol": protocol}})
    before = cluster.controller()
    cluster.kill(before)
    cluster.until(lambda: cluster.controller() not in (-1, before))
    cluster.until(lambda: cluster.leader(key) != before)
    leader = cluster.leader(key)
    cluster.until(lambda: cluster.produce(key, "b", broker=leader) == 0)
    cluster.start(before)
    wait_for_isr(cluster, key, {1, 2, 3})
    cluster.create("u", (before,))


def test_a_wiped_follower_that_restarts_within_its_session_gets_its_replicas_back() -> None:
    cluster, key = led()
    follower = next(one for one in others(cluster) if one != 1)
    cluster.kill(follower)
    cluster.hosts[follower].disk.format({})
    cluster.start(follower)
    cluster.until(cluster.is_ready)
    cluster.until(lambda: key in cluster.broker(follower).replicas.hosted)
    cluster.until(lambda: cluster.values(follower, key) == ["a"])
    wait_for_isr(cluster, key, {1, 2, 3})


def test_a_paused_broker_is_fenced_by_itself_when_it_goes_on() -> None:
    cluster, key = led()
    victim = others(cluster)[0]
    cluster.simulation.pause(cluster.hosts[victim])
    cluster.run_ms(4_000)
    cluster.simulation.resume(cluster.hosts[victim])
    cluster.run_ms(0.1)
    assert cluster.broker(victim).registrar.life.state != BrokerState.RUNNING
    cluster.until(cluster.is_ready)
    wait_for_isr(cluster, key, {1, 2, 3})


def test_a_broker_cut_from_the_controller_alone_is_inactive_then_fences_itself() -> None:
    cluster, key = led()
    victim, controller = others(cluster)[0], cluster.controller()
    cluster.block(victim, controller)
    cluster.until(
        lambda: (
            (ControlledState.INACTIVE,)
            in [
                one[4:]
                for one in cluster.noted(BROKER_CONTROLLED_STATE, node=controller)
                if one[2] == victim
            ]
        )
    )
    assert not cluster.noted(FENCED_SELF)
    cluster.until(lambda: bool(cluster.noted(FENCED_SELF, node=victim)))
    rest = {1, 2, 3} - {victim}
    cluster.until(lambda: set(cluster.isr(key, broker=controller)) == rest)
    cluster.heal(victim, controller)
    cluster.until(cluster.is_ready)
    wait_for_isr(cluster, key, {1, 2, 3})


def test_below_the_new_protocol_a_broker_cut_from_the_controller_alone_serves_on() -> None:
    cluster, key = led(settings={0: DIRECT})
    victim, controller = others(cluster)[0], cluster.controller()
    cluster.block(victim, controller)
    cluster.run_ms(5_000)
    topic_id = cluster.ask_to_create("u", (controller,))
    cluster.run_ms(5_000)
    names = [one[0] for one in cluster.metadata(victim).topics]
    assert names == ["t"], "its metadata is old"
    assert (topic_id, 0) not in cluster.broker(victim).image.partitions
    cluster.heal(victim, controller)
    cluster.until(lambda: (topic_id, 0) in cluster.broker(victim).image.partitions)
    assert cluster.consume(key, broker=1) == ["a"]


def test_a_broker_cut_from_zookeeper_alone_loses_its_registration_and_gets_another() -> None:
    cluster, key = led()
    victim = others(cluster)[0]
    before = cluster.broker(victim).situation.broker_epoch
    cluster.block(victim, 2001)
    rest = {1, 2, 3} - {victim}
    controller = cluster.controller()
    cluster.until(lambda: set(cluster.isr(key, broker=controller)) == rest)
    cluster.heal(victim, 2001)
    cluster.until(lambda: cluster.broker(victim).situation.broker_epoch > before)
    cluster.until(cluster.is_ready)
    wait_for_isr(cluster, key, {1, 2, 3})


def test_a_controller_cut_from_zookeeper_is_replaced() -> None:
    cluster, key = led()
    before = cluster.controller()
    cluster.block(before, 2001)
    rest = [one for one in cluster.hosts if one != before]
    cluster.until(lambda: any(cluster.broker(one).registrar.controller.is_active for one in rest))
    cluster.heal(before, 2001)
    cluster.until(lambda: not cluster.broker(before).registrar.controller.is_active)
    cluster.until(cluster.is_ready)
    wait_for_isr(cluster, key, {1, 2, 3})


def test_a_deleted_topic_is_gone_everywhere_and_can_be_made_again() -> None:
    cluster, key = led()
    cluster.delete("t")
    cluster.until(
        lambda: all(
            key not in cluster.broker(one).replicas.hosted and not cluster.shows(one, key)
            for one in cluster.hosts
        )
    )
    again = (cluster.create("t", (2, 3)), 0)
    assert again != key
    assert cluster.produce(again, "b", broker=2) == 0
    assert cluster.consume(again, broker=2) == ["b"]


@pytest.mark.parametrize("protocol", list(InterBrokerProtocol))
def test_a_stopped_broker_hands_its_leaderships_over_before_it_ends(
    protocol: InterBrokerProtocol,
) -> None:
    cluster = Cluster(settings={0: {"inter_broker_protocol": protocol}}).ready()
    first, second = others(cluster)
    key = (cluster.create("t", (first, second)), 0)
    assert cluster.produce(key, "a", broker=first) == 0
    cluster.stop(first)
    assert cluster.hosts[first].exit_reason == ""
    assert cluster.leader(key) == second
    assert key in cluster.broker(second).replicas.leaders
    cluster.start(first)
    wait_for_isr(cluster, key, {first, second})


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_z13_a_roll_of_the_inter_broker_protocol_serves_throughout(order: tuple[int, int]) -> None:
    before, after = (InterBrokerProtocol(one) for one in order)
    settings = {n: {"inter_broker_protocol": before} for n in (1, 2, 3)}
    cluster, key = led(settings=settings)
    acknowledged = ["a"]
    for broker in (1, 2, 3):
        cluster.stop(broker)
        acknowledged.append(f"without {broker}")
        write(cluster, key, acknowledged[-1])
        settings[broker]["inter_broker_protocol"] = after
        cluster.start(broker)
        cluster.until(cluster.is_ready)
        wait_for_isr(cluster, key, {1, 2, 3})
    found = cluster.consume(key, broker=cluster.leader(key))
    assert list(dict.fromkeys(found)) == acknowledged
