"""What the draft was written for, as plays in virtual time: each with its rule, and without."""

from typing import Any

import pytest
from zk_cluster import CLOSED, Cluster

from fencepost.clusters.node_port.notes import BROKER_CONTROLLED_STATE
from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.protocol.controlled_states import ControlledState
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.control import CreateTopicsRequest, NewTopic
from fencepost.clusters.reference.zk.configuration import InterBrokerProtocol
from fencepost.clusters.reference.zk.messages import (
    IsrChange,
    IsrChangeRequest,
    UpdateMetadataRequest,
)
from fencepost.clusters.reference.zk.rules import ZkRules

LONG = {"session_timeout_ns": 3_800 * MS}
PATIENT = {
    0: {"controller_side_timeout_ns": 3_000 * MS, "broker_side_timeout_ns": 4_000 * MS},
    1: LONG,
}
"""The controller outlives a pause in which a broker's session ends, and takes none for silent."""


def led(cluster: Cluster, *replicas: int) -> PartitionKey:
    """A partition of topic t with these replicas, which all have the record "a"."""
    key = (cluster.create("t", replicas), 0)
    assert cluster.produce(key, "a", broker=replicas[0]) == 0
    cluster.until(lambda: all(cluster.values(one, key) == ["a"] for one in replicas))
    return key


def isr(cluster: Cluster, key: PartitionKey) -> tuple[int, ...]:
    """The ISR as the controller knows it."""
    context = cluster.broker(cluster.controller()).registrar.controller.context
    assert context is not None
    return context.image.partitions[key].isr


def followers_of(cluster: Cluster) -> tuple[int, int]:
    """The two brokers that are not the controller."""
    first, second = (one for one in cluster.hosts if one != cluster.controller())
    return first, second


def cut_off(cluster: Cluster) -> tuple[int, PartitionKey]:
    """The leader is cut from the controller alone for 5 s, in which a topic is made; who, what."""
    victim, _ = followers_of(cluster)
    key = led(cluster, victim, cluster.controller())
    cluster.block(victim, cluster.controller())
    cluster.run_ms(2_500)
    new = NewTopic("u", -1, -1, ((cluster.controller(),),))
    request = CreateTopicsRequest(0, (new,), 1_000 * MS)
    assert cluster.ask(cluster.controller(), request).topics[0][2] == Error.NONE
    cluster.run_ms(2_500)
    return victim, key


def test_a_leader_that_reaches_zookeeper_but_not_the_controller_is_replaced_and_silent() -> None:
    cluster = Cluster().ready()
    victim, key = cut_off(cluster)
    assert cluster.leader(key) == cluster.controller()
    assert cluster.metadata(victim) == CLOSED
    assert cluster.produce(key, "b", broker=victim, acks=1) == -1
    cluster.heal(victim, cluster.controller())
    cluster.until(lambda: cluster.metadata(victim) != CLOSED)
    assert {one[0] for one in cluster.metadata(victim).topics} == {"t", "u"}


@pytest.mark.parametrize("way", ["rules off", "protocol below"])
def test_without_heartbeats_it_leads_on_and_shows_old_metadata(way: str) -> None:
    off = ("controller_ends_silence", "broker_ends_silence") if way == "rules off" else ()
    below = {0: {"inter_broker_protocol": InterBrokerProtocol.DIRECT}}
    cluster = Cluster(*off, settings=None if off else below).ready()
    victim, key = cut_off(cluster)
    assert {one[0] for one in cluster.metadata(victim).topics} == {"t"}
    assert cluster.produce(key, "b", broker=victim, acks=1) == 0
    assert victim in isr(cluster, key)


def test_without_active_once_told_a_broker_shows_old_metadata_after_it_is_back() -> None:
    shown = {}
    for off in ((), ("active_once_told",)):
        cluster = Cluster(*off).ready()
        victim, _ = cut_off(cluster)
        controller = cluster.controller()
        cluster.simulation.network.unblock([(victim, controller)])
        cluster.simulation.network.unblock([(controller, victim)])
        cluster.hold(UpdateMetadataRequest.kind)
        cluster.run_ms(1_000)
        shown[off] = cluster.metadata(victim)
        cluster.release()
    assert shown[()] == CLOSED
    assert {one[0] for one in shown["active_once_told",].topics} == {"t"}


def test_a_topic_that_was_deleted_while_a_broker_was_cut_off_is_not_shown_by_it() -> None:
    cluster = Cluster().ready()
    victim, other = followers_of(cluster)
    cluster.create("t", (other, cluster.controller()))
    cluster.block(victim, cluster.controller())
    cluster.until(lambda: cluster.metadata(victim) == CLOSED)
    cluster.delete("t")
    cluster.heal(victim, cluster.controller())
    cluster.until(lambda: cluster.metadata(victim) != CLOSED)
    assert cluster.metadata(victim).topics == ()


def unnoticed_restart(cluster: Cluster) -> tuple[int, PartitionKey]:
    """A follower is wiped and restarts while the controller is paused; who, what."""
    victim, other = 3, 2
    assert cluster.controller() == 1
    key = led(cluster, other, victim)
    cluster.simulation.pause(cluster.hosts[1])
    cluster.kill(victim)
    cluster.hosts[victim].disk.format({})
    cluster.start(victim)
    cluster.until(lambda: cluster.broker(victim).situation.broker_epoch > 0)
    cluster.simulation.resume(cluster.hosts[1])
    cluster.run_ms(3_000)
    assert cluster.controller() == 1
    return victim, key


def test_a_broker_that_restarted_unnoticed_is_told_its_partitions_again() -> None:
    cluster = Cluster(settings=PATIENT).ready()
    victim, key = unnoticed_restart(cluster)
    assert cluster.values(victim, key) == ["a"]
    assert sorted(isr(cluster, key)) == [2, 3]


def test_without_incarnation_ids_it_never_learns_which_partitions_it_has() -> None:
    cluster = Cluster("new_incarnation_told_all", settings=PATIENT).ready()
    victim, key = unnoticed_restart(cluster)
    assert key not in cluster.broker(victim).replicas.hosted


def wiped_without_a_controller(*rules_off: str) -> tuple[Cluster, PartitionKey]:
    """The controller dies, and meanwhile the leader is wiped and restarts."""
    cluster = Cluster(*rules_off, settings={1: LONG}).ready()
    assert cluster.controller() == 1
    key = led(cluster, 3, 2)
    cluster.kill(1, 3)
    cluster.hosts[3].disk.format({})
    cluster.start(3)
    cluster.until(lambda: cluster.broker(3).situation.broker_epoch > 0)
    assert cluster.controller() == -1
    cluster.until(lambda: cluster.controller() > 0 and cluster.is_ready(2, 3))
    cluster.until(lambda: len(isr(cluster, key)) == 2)
    return cluster, key


@pytest.mark.rule("unseen_restarts_found")
def test_a_leader_that_was_wiped_while_there_was_no_controller_does_not_lead_again() -> None:
    cluster, key = wiped_without_a_controller()
    assert cluster.values(2, key) == cluster.values(3, key) == ["a"]


def test_without_unseen_restarts_found_it_leads_again_and_all_is_lost() -> None:
    cluster, key = wiped_without_a_controller("unseen_restarts_found")
    cluster.until(lambda: cluster.values(2, key) == [])
    assert cluster.leader(key) == 3


def second_process(cluster: Cluster) -> tuple[Any, tuple[int, ...]]:
    """Another process takes over a leader's id, unnoticed by the controller, which is paused.

    Returns the answer to an IsrChange of the first process, and the ISR.
    """
    assert cluster.controller() == 1
    key = led(cluster, 2, 3)
    before = cluster.broker(2).situation.broker_epoch
    epoch = cluster.broker(2).image.partitions[key].leader_epoch
    cluster.simulation.pause(cluster.hosts[1])
    cluster.kill(2)
    cluster.start(2)
    cluster.until(lambda: cluster.broker(2).situation.broker_epoch > before)
    cluster.simulation.resume(cluster.hosts[1])
    cluster.run_ms(1_000)
    asked = (("t", (IsrChange(0, epoch, (2,)),)),)
    answer = cluster.ask(1, IsrChangeRequest(0, 2, before, 0, asked))
    return answer, isr(cluster, key)


def test_of_two_processes_with_one_id_the_older_one_changes_no_isr() -> None:
    cluster = Cluster(settings=PATIENT).ready()
    answer, members = second_process(cluster)
    assert answer.error == Error.INVALID_INCARNATION_ID
    assert 3 in members


def test_without_incarnations_the_older_one_changes_the_isr() -> None:
    off = ("isr_change_of_old_incarnation_refused", "new_incarnation_told_all")
    cluster = Cluster(*off, settings=PATIENT).ready()
    answer, members = second_process(cluster)
    assert answer.results == ((Error.NONE, None),)
    assert members == (2,)


def late_isr_change(cluster: Cluster) -> PartitionKey:
    """KIP-903's race: an IsrChange that means the follower of before its disk was wiped.

    1 is the controller, 2 leads, 3 follows. 3 leaves the ISR and catches up; the request that takes
    it back is late, until 3 was wiped and restarted and 2 is dead.
    """
    assert cluster.controller() == 1
    key = led(cluster, 2, 3)
    cluster.simulation.pause(cluster.hosts[3])
    cluster.until(lambda: isr(cluster, key) == (2,))
    assert cluster.produce(key, "b", broker=2) == 0
    cluster.hold(IsrChangeRequest.kind)
    cluster.simulation.resume(cluster.hosts[3])
    cluster.until(lambda: bool(cluster.held))
    before = cluster.broker(3).situation.broker_epoch
    cluster.kill(3)
    cluster.hosts[3].disk.format({})
    cluster.block(2, 3)
    cluster.start(3)
    active = (BROKER_CONTROLLED_STATE, 3)
    cluster.until(
        lambda: any(
            tuple(note[:2]) == active and note[2] > before and note[3] == ControlledState.ACTIVE
            for _, *note in cluster.notes
        )
    )
    cluster.kill(2)
    cluster.release()
    cluster.until(lambda: 2 not in cluster.broker(1).registrar.controller.context.image.brokers)
    cluster.run_ms(100)
    return key


def test_an_isr_change_for_an_old_incarnation_of_the_follower_loses_records_in_the_draft() -> None:
    cluster = Cluster(settings={1: LONG, 2: LONG}).ready()
    key = late_isr_change(cluster)
    assert cluster.leader(key) == 3
    assert cluster.values(3, key) == []
    cluster.start(2)
    cluster.until(lambda: key in cluster.broker(2).replicas.hosted)
    cluster.heal(2, 3)
    cluster.until(lambda: cluster.values(2, key) == [])


def test_it_loses_nothing_where_the_members_incarnations_are_checked() -> None:
    rules = ZkRules(member_incarnations_checked=True)
    cluster = Cluster(rules=rules, settings={1: LONG, 2: LONG}).ready()
    key = late_isr_change(cluster)
    assert cluster.leader(key) == -1
    assert isr(cluster, key) == (2,)
    cluster.heal(2, 3)
    cluster.start(2)
    cluster.until(lambda: cluster.leader(key) == 2)
    cluster.until(lambda: cluster.values(3, key) == cluster.values(2, key) == ["a", "b"])


def shrink(cluster: Cluster, key: PartitionKey, value: str) -> None:
    """Broker 2 writes a record that 3 cannot fetch, until the ISR is without 3."""
    cluster.block(2, 3)
    assert cluster.produce(key, value, broker=2, acks=1) == 0
    cluster.until(lambda: isr(cluster, key) == (2,))


def test_an_isr_change_that_arrives_after_a_later_one_undoes_it_in_the_draft() -> None:
    """The request has no partition epoch, as Kafka's AlterPartition has: no rule closes this."""
    cluster = Cluster(settings=PATIENT).ready()
    assert cluster.controller() == 1
    key = led(cluster, 2, 3)
    shrink(cluster, key, "b")
    cluster.hold(IsrChangeRequest.kind)
    cluster.heal(2, 3)
    cluster.until(lambda: bool(cluster.held))
    cluster.catches = None
    cluster.until(lambda: isr(cluster, key) == (2, 3))  # by its repetition
    shrink(cluster, key, "c")
    assert cluster.produce(key, "d", broker=2) == 0
    cluster.release()
    cluster.until(lambda: isr(cluster, key) == (2, 3))
    cluster.kill(2)
    cluster.until(lambda: cluster.leader(key) == 3)
    assert cluster.values(3, key) == ["a", "b"]
