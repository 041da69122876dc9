"""What a broker does with LeaderAndIsr, StopReplica and UpdateMetadata."""

from dataclasses import replace
from typing import Any

import pytest
from zk_cluster import CLOSED, Cluster

from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.zk.messages import (
    LEADER_DURING_DELETE,
    LeaderAndIsrRequest,
    LiveBroker,
    PartitionState,
    StoppedPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)


class Teller:
    """A client that talks to broker 1 of a cluster as a controller does."""

    def __init__(self, *rules_off: str) -> None:
        self.cluster = Cluster(*rules_off, brokers=1).ready()
        self.topic_id = self.cluster.create("t", (1,))
        self.key: PartitionKey = (self.topic_id, 0)
        self.epoch = self.broker.situation.controller_epoch
        self.incarnation = self.broker.situation.broker_epoch
        assert self.cluster.produce(self.key, "a", broker=1) == 0

    @property
    def broker(self) -> Any:
        return self.cluster.broker(1)

    def state(self, **changes: Any) -> PartitionState:
        return replace(self.broker.situation.assigned[self.key], **changes)

    def lead(
        self, *states: PartitionState, epoch: int = 0, incarnation: int = 0, is_full: bool = False
    ) -> Any:
        asked = (1, self.epoch + epoch, self.incarnation + incarnation, is_full, states)
        return self.cluster.ask(1, LeaderAndIsrRequest(0, *asked))

    def stop(self, *, leader_epoch: int, delete: bool) -> Any:
        stopped = (StoppedPartition("t", 0, leader_epoch, delete),)
        asked = (1, self.epoch, self.incarnation, stopped)
        return self.cluster.ask(1, StopReplicaRequest(0, *asked))

    def update(self, *states: PartitionState, brokers: tuple[int, ...] = (1,)) -> Any:
        live = tuple(LiveBroker(one, (("CLIENT", f"b{one}", 1, 0),)) for one in brokers)
        asked = (1, self.epoch, self.incarnation, states, live)
        return self.cluster.ask(1, UpdateMetadataRequest(0, *asked))

    def role(self) -> tuple[int, int]:
        found: tuple[int, int] = self.broker.replicas.hosted[self.key].role
        return found


@pytest.fixture
def teller() -> Teller:
    """A broker that leads t-0, and who tells it something else."""
    return Teller()


def test_a_request_of_an_older_controller_is_refused(teller: Teller) -> None:
    response = teller.lead(teller.state(leader_epoch=9), epoch=-1)
    assert (response.error, response.partitions) == (Error.STALE_CONTROLLER_EPOCH, ())
    assert teller.role() == (1, 0)


def test_without_its_rule_an_older_controller_is_obeyed() -> None:
    teller = Teller("controller_epoch_checked")
    response = teller.lead(teller.state(leader=2, leader_epoch=9), epoch=-1)
    assert response.partitions == ((teller.key, Error.NONE),)
    assert teller.role() == (2, 9)


def test_a_newer_controller_is_taken_over(teller: Teller) -> None:
    assert teller.lead(teller.state(leader_epoch=9), epoch=5).error == Error.NONE
    assert teller.broker.situation.controller_epoch == teller.epoch + 5
    assert teller.lead(teller.state(leader_epoch=10)).error == Error.STALE_CONTROLLER_EPOCH


@pytest.mark.rule("broker_epoch_checked")
def test_a_request_for_an_earlier_incarnation_is_refused(teller: Teller) -> None:
    response = teller.lead(teller.state(leader_epoch=9), incarnation=-1)
    assert (response.error, response.partitions) == (Error.STALE_BROKER_EPOCH, ())
    assert teller.lead(teller.state(leader_epoch=9), incarnation=1).error == Error.NONE


def test_without_its_rule_a_request_for_an_earlier_incarnation_is_carried_out() -> None:
    teller = Teller("broker_epoch_checked")
    assert teller.lead(teller.state(leader_epoch=9), incarnation=-1).error == Error.NONE
    assert teller.role() == (1, 9)


def test_a_leader_epoch_is_taken_once_and_never_goes_back(teller: Teller) -> None:
    assert teller.lead(teller.state(leader_epoch=9)).partitions[0][1] == Error.NONE
    leader = teller.broker.replicas.leaders[teller.key]
    repeated = teller.lead(teller.state(leader_epoch=9))
    assert repeated.partitions[0][1] == Error.NONE
    assert teller.broker.replicas.leaders[teller.key] is leader
    older = teller.lead(teller.state(leader_epoch=8))
    assert older.partitions[0][1] == Error.STALE_CONTROLLER_EPOCH


def test_the_isr_of_a_leader_epoch_is_its_leaders_own_business(teller: Teller) -> None:
    response = teller.lead(teller.state(partition_epoch=99, isr=(1, 2), replicas=(1, 2)))
    assert response.partitions[0][1] == Error.NONE
    assert teller.broker.replicas.leaders[teller.key].isr == (1,)


def test_a_full_request_removes_strays(teller: Teller) -> None:
    teller.lead(is_full=True)
    assert teller.key not in teller.broker.replicas.hosted
    assert teller.key not in teller.cluster.hosts[1].disk.topics


def test_a_request_that_is_not_full_removes_nothing(teller: Teller) -> None:
    teller.lead()
    assert teller.key in teller.broker.replicas.hosted


def test_a_topic_of_the_same_name_is_refused_while_its_predecessor_is_there(
    teller: Teller,
) -> None:
    other = teller.state(key=(teller.topic_id + 1, 0))
    assert teller.lead(other).partitions[0][1] == Error.INCONSISTENT_TOPIC_ID
    assert teller.lead(other, is_full=True).partitions[0][1] == Error.NONE


def test_a_partition_of_other_brokers_is_refused(teller: Teller) -> None:
    response = teller.lead(teller.state(replicas=(2, 3), leader_epoch=9))
    assert response.partitions[0][1] == Error.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("leader_epoch", "error"), [(-1, Error.FENCED_LEADER_EPOCH), (0, Error.NONE), (-2, Error.NONE)]
)
def test_a_replica_is_stopped_unless_a_newer_leader_epoch_is_known(
    teller: Teller, leader_epoch: int, error: Error
) -> None:
    response = teller.stop(leader_epoch=leader_epoch, delete=True)
    assert response.partitions == (("t", 0, error),)
    assert (teller.key in teller.broker.replicas.hosted) == bool(error)


def test_a_replica_that_is_stopped_keeps_its_log_and_is_led_again(teller: Teller) -> None:
    state = teller.state()
    teller.stop(leader_epoch=0, delete=False)
    assert teller.key not in teller.broker.replicas.leaders
    teller.lead(state)
    assert teller.key in teller.broker.replicas.leaders
    assert teller.cluster.values(1, teller.key) == ["a"]


def test_brokers_that_are_not_named_are_shown_no_more(teller: Teller) -> None:
    teller.update(brokers=(1, 2))
    assert [one[0] for one in teller.cluster.metadata(1).brokers] == [1, 2]
    teller.update(brokers=(2,))
    assert [one[0] for one in teller.cluster.metadata(1).brokers] == [2]


def test_a_topic_that_is_being_deleted_is_shown_no_more(teller: Teller) -> None:
    teller.update(teller.state(leader=LEADER_DURING_DELETE))
    assert teller.cluster.metadata(1).topics == ()


def test_a_topic_made_again_takes_the_place_of_its_predecessor(teller: Teller) -> None:
    teller.update(teller.state(key=(teller.topic_id + 1, 0)))
    shown = teller.cluster.metadata(1).topics
    assert [(name, topic_id) for name, topic_id, *_ in shown] == [("t", teller.topic_id + 1)]
    assert list(teller.broker.image.partitions) == [(teller.topic_id + 1, 0)]


def test_an_update_that_says_nothing_new_changes_nothing(teller: Teller) -> None:
    teller.update(teller.state())
    before = teller.broker.image.offset
    teller.update(teller.state())
    assert teller.broker.image.offset == before


def test_the_metadata_names_the_controller(teller: Teller) -> None:
    assert teller.cluster.metadata(1).controller_id == 1


def test_a_broker_that_is_not_registered_yet_is_told_nothing() -> None:
    cluster = Cluster(brokers=1)
    cluster.block(1, 2001)
    cluster.run_ms(50)
    assert cluster.broker(1).situation.broker_epoch == -1
    assert cluster.ask(1, LeaderAndIsrRequest(0, 1, 1, 1, True, ())) == CLOSED
