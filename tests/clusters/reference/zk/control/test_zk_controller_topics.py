"""Topics are created, grown, deleted and moved; their settings change; tools write znodes, too."""

import json

from control_desk import CLIENT, Desk

from fencepost.clusters.node_port.zookeeper import Create, SetData
from fencepost.clusters.protocol.controlled_states import ControlledState
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.control import (
    AlterConfigsRequest,
    AlterReassignmentsRequest,
    CreatePartitionsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    ListReassignmentsRequest,
    NewPartitions,
)
from fencepost.clusters.reference.zk.messages import (
    LEADER_DURING_DELETE,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from fencepost.clusters.reference.zk.znodes import (
    CONFIG_CHANGES,
    DELETE_TOPICS,
    ISR_CHANGE_PREFIX,
    TOPICS,
    PartitionStateInfo,
    TopicInfo,
    decoded_config_change,
    decoded_settings,
    deletion_path,
    encoded_isr_change,
    topic_path,
)


def info(desk: Desk, topic: str = "t") -> TopicInfo:
    """The content of a topic's znode."""
    return TopicInfo.decoded(desk.double.data(topic_path(topic)))


def delete(desk: Desk, *topics: str) -> object:
    """A client deletes topics; the answer, or None so far."""
    named = tuple((one, -1) for one in topics)
    return desk.ask(DeleteTopicsRequest(500, named, 1_000 * MS))


def test_a_topic_its_settings_and_its_states_are_made_at_once() -> None:
    desk = Desk()
    zxid = desk.double.zxid
    answer = desk.create("t", (1, 2), (2, 3), min_insync_replicas="2")
    assert desk.double.tree[topic_path("t")].czxid > zxid
    made = [path for path in desk.double.tree if path.startswith(topic_path("t"))]
    assert len({desk.double.tree[path].czxid for path in made}) == 1
    assert info(desk).topic_id == answer.topics[0][1]
    assert decoded_settings(desk.double.data("/config/topics/t")) == {"min.insync.replicas": "2"}
    assert desk.create("t", (1, 2)).topics[0][2] == Error.TOPIC_ALREADY_EXISTS


def test_a_topic_whose_creation_was_not_heard_of_is_there_and_answered_so() -> None:
    desk = Desk()
    lost = []

    def loses(request: object) -> bool:
        is_first = any(
            isinstance(one, Create) and one.path == topic_path("t")
            for one in request.operations  # type: ignore[attr-defined]
        )
        lost.extend([request] * is_first)
        return is_first and len(lost) == 1

    desk.double.loses = loses
    assert desk.create("t", (1, 2)).topics[0][2] == Error.NONE
    assert len(lost) == 2
    assert desk.led(2).leader == 1


def test_a_topic_that_a_tool_made_is_begun() -> None:
    desk = Desk()
    made = TopicInfo(77, {0: (3, 1), 1: (1, 2)}, {}, {})
    desk.double.write(Create(topic_path("t"), made.encoded()))
    desk.settle()
    assert (desk.state().leader, desk.state("t", 1).leader) == (3, 1)
    assert desk.led(1, "t", 1).is_new
    grown = TopicInfo(77, {**made.replicas, 2: (2, 3)}, {}, {})
    desk.double.write(SetData(topic_path("t"), grown.encoded()))
    desk.settle()
    assert desk.state("t", 2).leader == 2


def test_a_partition_without_a_live_replica_is_begun_once_there_is_one() -> None:
    desk = Desk()
    desk.double.write(Create(topic_path("t"), TopicInfo(77, {0: (4,)}, {}, {}).encoded()))
    desk.settle()
    assert desk.double.children(topic_path("t")) == ()
    desk.start(4)
    desk.heartbeat(4)
    assert desk.state().leader == 4


def test_a_topic_is_grown() -> None:
    desk = Desk()
    desk.create("t", (1, 2))
    grown = (NewPartitions("t", 3, ((2, 3), (3, 1))),)
    answer = desk.ask(CreatePartitionsRequest(600, grown, 1_000 * MS))
    assert answer.topics[0][1] == Error.NONE
    assert dict(info(desk).replicas) == {0: (1, 2), 1: (2, 3), 2: (3, 1)}
    assert desk.state("t", 2).leader == 3
    assert desk.led(3, "t", 1).leader == 2


def test_a_topic_is_deleted_once_every_replica_is() -> None:
    desk = Desk()
    desk.create("t", (2, 3))
    desk.brokers[3].is_deaf = True
    assert delete(desk, "t") is None
    assert desk.double.children(DELETE_TOPICS) == ("t",)
    assert desk.create("t", (1, 2)).topics[0][2] == Error.TOPIC_ALREADY_EXISTS
    hidden = [one for one in desk.brokers[1].told if isinstance(one, UpdateMetadataRequest)]
    assert hidden[-1].partitions[0].leader == LEADER_DURING_DELETE
    desk.brokers[3].is_deaf = False
    desk.settle()
    assert desk.answers[-1].topics[0][2] == Error.NONE
    assert desk.double.children(TOPICS) == desk.double.children(DELETE_TOPICS) == ()
    assert "/config/topics/t" not in desk.double.tree
    assert desk.create("t", (1, 2)).topics[0][2] == Error.NONE


def test_a_deletion_that_takes_too_long_is_answered_so_and_goes_on_with_the_broker() -> None:
    desk = Desk()
    desk.create("t", (2, 3))
    desk.kill(3)
    assert delete(desk, "t") is None
    desk.advance(1_000)
    assert desk.answers[-1].topics[0][2] == Error.REQUEST_TIMED_OUT
    assert desk.double.children(TOPICS) == ("t",)
    desk.start(3)
    desk.heartbeat(3)
    assert desk.double.children(TOPICS) == ()
    stops = [one for one in desk.brokers[3].told if isinstance(one, StopReplicaRequest)]
    assert stops[0].partitions[0].leader_epoch == -2


def test_a_deletion_goes_on_under_another_controller() -> None:
    desk = Desk()
    desk.create("t", (2, 3))
    desk.brokers[3].is_deaf = True
    assert delete(desk, "t") is None
    desk.expire(1)
    desk.brokers[3].is_deaf = False
    desk.settle()
    assert desk.double.children(TOPICS) == ()


def test_a_deletion_that_a_tool_demands_is_carried_out() -> None:
    desk = Desk()
    desk.create("t", (2, 3))
    for name in ("t", "nowhere"):
        desk.double.write(Create(deletion_path(name), b""))
    desk.settle()
    assert desk.double.children(TOPICS) == desk.double.children(DELETE_TOPICS) == ()


def test_a_demand_for_no_topic_is_removed_by_the_next_controller() -> None:
    desk = Desk()
    first = desk.brokers.pop(1)
    desk.double.write(Create(deletion_path("nowhere"), b""))
    assert first.session is not None
    desk.double.expire(first.session)
    desk.settle()
    assert desk.active.situation.node_id == 2
    assert desk.double.children(DELETE_TOPICS) == ()


def test_a_state_that_is_written_during_a_deletion_is_not_shown() -> None:
    desk = Desk()
    desk.create("t", (2, 3))
    desk.brokers[3].is_deaf = True
    delete(desk, "t")
    desk.overwrite(PartitionStateInfo(1, 2, 0, (2,)))
    desk.double.write(Create(ISR_CHANGE_PREFIX, encoded_isr_change([("t", 0)]), sequential=True))
    desk.settle()
    shown = [one for one in desk.brokers[1].told if isinstance(one, UpdateMetadataRequest)]
    assert shown[-1].partitions[-1].leader == LEADER_DURING_DELETE


def test_z10_no_isr_of_a_topic_that_is_being_deleted_is_granted() -> None:
    """Nothing of it is written any more: to answer that it was would be untrue."""
    desk = Desk()
    desk.create("t", (2, 3))
    desk.brokers[3].is_deaf = True
    delete(desk, "t")
    [(error, _)] = desk.isr_change(2, (2,)).results
    assert error == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert desk.state().isr == (2, 3)


def test_what_was_read_of_a_topic_before_it_was_removed_is_outdated() -> None:
    desk = Desk()
    desk.create("t", (2, 3))
    before = info(desk)
    delete(desk, "t")
    desk.context.assign("t", before, 0)
    assert "t" not in desk.context.image.topics


def test_a_broker_that_is_told_everything_is_told_which_topics_are_no_more() -> None:
    desk = Desk()
    desk.create("t", (1, 2))
    desk.restart(3)
    desk.heartbeat(3)
    full = [one for one in desk.brokers[3].told if isinstance(one, UpdateMetadataRequest)]
    assert full[0].is_full
    assert not any(one.is_full for one in full[1:])


def test_settings_are_written_with_a_notification() -> None:
    desk = Desk()
    desk.create("t", (1, 2))
    changes = ((2, "t", "retention.ms", "5"), (4, "", "min.insync.replicas", "2"))
    answer = desk.ask(AlterConfigsRequest(700, changes))
    assert [one[2] for one in answer.resources] == [Error.NONE, Error.NONE]
    assert decoded_settings(desk.double.data("/config/topics/t")) == {"retention.ms": "5"}
    default = decoded_settings(desk.double.data("/config/brokers/<default>"))
    assert default == {"min.insync.replicas": "2"}
    told = [
        decoded_config_change(desk.double.data(f"{CONFIG_CHANGES}/{name}"))
        for name in desk.double.children(CONFIG_CHANGES)
    ]
    assert told == [("topics", "t"), ("brokers", "<default>")]
    desk.ask(AlterConfigsRequest(701, ((2, "t", "retention.ms", None),)))
    assert decoded_settings(desk.double.data("/config/topics/t")) == {}


def test_an_unclean_election_needs_the_setting() -> None:
    desk = Desk()
    desk.create("t", (2, 3))
    desk.isr_change(2, (2,))
    desk.kill(2)
    assert (desk.state().leader, desk.state().isr) == (-1, (2,))
    desk.ask(AlterConfigsRequest(700, ((2, "t", "unclean.leader.election.enable", "true"),)))
    state = desk.state()
    assert (state.leader, state.isr, state.recovering) == (3, (3,), True)


def test_a_partition_moves_to_other_replicas() -> None:
    desk = Desk()
    desk.create("t", (1, 2))
    answer = desk.ask(AlterReassignmentsRequest(800, (("t", 0, (3, 2)),)))
    assert answer.moves[0][2] == Error.NONE
    assert (info(desk).replicas[0], info(desk).adding[0]) == ((3, 2, 1), (3,))
    assert info(desk).removing[0] == (1,)
    assert desk.led(3).replicas == (3, 2, 1)
    moving = desk.ask(ListReassignmentsRequest(801, None))
    assert moving.partitions == (("t", 0, (3, 2, 1), (3,), (1,)),)
    desk.isr_change(1, (1, 2, 3))
    assert json.loads(desk.double.data(topic_path("t")))["adding_replicas"] == {}
    assert info(desk).replicas[0] == (3, 2)
    assert (desk.state().leader, desk.state().isr) == (3, (2, 3))
    stops = [one for one in desk.brokers[1].told if isinstance(one, StopReplicaRequest)]
    assert [(one.topic, one.delete) for one in stops[-1].partitions] == [("t", True)]


def test_every_state_that_the_controller_writes_has_a_new_leader_epoch() -> None:
    desk = Desk()
    desk.create("t", (1, 2))
    desk.ask(AlterReassignmentsRequest(800, (("t", 0, (1, 2, 3)),)))
    assert (desk.state().leader, desk.state().leader_epoch) == (1, 1)
    desk.kill(2)
    assert (desk.state().leader, desk.state().leader_epoch) == (1, 2)


def test_a_preferred_leader_is_elected_when_asked_and_by_itself() -> None:
    desk = Desk(auto_leader_rebalance_ns=300 * MS)
    desk.create("t", (2, 1))
    desk.heartbeat(2, ControlledState.STOPPING)
    desk.heartbeat(2, ControlledState.ACTIVE)
    desk.isr_change(1, (1, 2))
    answer = desk.ask(ElectLeadersRequest(900, unclean=False, partitions=(("t", 0),)))
    assert answer.partitions[0][2] == Error.NONE
    assert desk.state().leader == 2
    desk.heartbeat(2, ControlledState.STOPPING)
    desk.heartbeat(2, ControlledState.ACTIVE)
    desk.isr_change(1, (1, 2))
    desk.advance(300)
    assert desk.state().leader == 2


def test_nothing_is_closed_in_quiet_times() -> None:
    desk = Desk()
    desk.create("t", (1, 2))
    delete(desk, "t")
    assert CLIENT not in desk.closed
