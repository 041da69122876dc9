"""The log of record, and partitions and brokers replayed from it."""

from metadata_logs import FACTS, facts, metadata_log

from fencepost.checkers.facts import Facts
from fencepost.checkers.metadata.broker_states import broker_histories
from fencepost.checkers.metadata.log_of_record import LogOfRecord, log_of_record
from fencepost.checkers.metadata.partition_states import (
    Cause,
    PartitionVersion,
    partition_histories,
)

THREE = facts(controllers=3)
FIVE = "0 leader 1000\n1 topic t\n2 topic u\n3 noop\n4 noop"


def of_record(**logs: str) -> LogOfRecord:
    return log_of_record(metadata_log(**logs), THREE)


def offsets(log: LogOfRecord) -> list[int]:
    return log.rows["metadata_offset"].to_pylist()


def test_what_a_majority_holds_is_decided_and_nothing_beyond() -> None:
    short, shorter = "\n".join(FIVE.split("\n")[:3]), "\n".join(FIVE.split("\n")[:2])
    log = of_record(controller_1=FIVE, controller_2=short, controller_3=shorter)
    assert offsets(log) == [0, 1, 2]
    assert log.end_offset == 3
    assert log.end_timestamp_ms == 200


def test_of_two_ends_the_later_epoch_counts_and_what_it_replaced_does_not() -> None:
    again = "0 leader 1000\n1 topic t\n2 leader 1001 epoch 2\n3 topic w epoch 2"
    log = of_record(controller_1=FIVE, controller_2=again, controller_3=again)
    assert [one.topic for one in log.records if one.topic] == ["t", "w"]


def test_a_majority_of_the_controllers_has_to_have_left_a_log() -> None:
    log = of_record(controller_1=FIVE, broker_1=FIVE, broker_2=FIVE)
    assert not log.records
    assert log.doubt == "1 of 3 controllers left a metadata log, and 2 are needed"


def test_a_copy_that_goes_back_further_is_put_in_front_of_a_snapshot() -> None:
    summed = "snapshot 1 topic t\n2 topic u\n3 noop\n4 noop"
    log = of_record(controller_1=summed, controller_2=summed, controller_3=summed, broker_1=FIVE)
    assert not log.begins_with_snapshot
    assert offsets(log) == [0, 1, 2, 3, 4]
    stranger = FIVE.replace("4 noop", "4 topic x").replace("2 topic u", "2 topic y")
    stranger = stranger.replace("3 noop", "3 topic z")
    log = of_record(
        controller_1=summed, controller_2=summed, controller_3=summed, broker_1=stranger
    )
    assert log.begins_with_snapshot


def test_parts_of_several_copies_are_joined_where_one_leads_to_the_next() -> None:
    """Each node lost its disk once, and began again at a snapshot: no copy is whole."""
    first = "0 leader 1000\n1 topic t\n2 topic u\nsnapshot 6 topic t\n7 topic x\n8 noop"
    second = "0 leader 1000\nsnapshot 2 topic t\n3 topic v\n4 noop\n5 topic w\n6 noop\n7 topic x"
    log = of_record(controller_1=first, controller_2=second, controller_3=second)
    assert offsets(log) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert [one.topic for one in log.records if one.topic] == ["t", "u", "v", "w", "x"]
    assert not log.begins_with_snapshot


def test_a_part_that_does_not_lead_to_the_next_one_is_left_out() -> None:
    later = "snapshot 6 topic t\n7 topic x"
    gap = "0 leader 1000\n1 topic t\n2 topic u\n" + later
    other = "0 leader 1000\n1 topic t\n6 topic u epoch 2\n" + later
    for front in (gap, other):
        log = of_record(controller_1=front, controller_2=later, controller_3=later)
        assert offsets(log) == [6, 7]
        assert log.begins_with_snapshot


def test_a_copy_with_a_gap_counts_as_one_that_has_what_its_snapshot_sums_up() -> None:
    whole = "0 leader 1000\n1 topic t\n2 topic u\n3 noop\n4 topic v\n5 noop"
    gap = "0 leader 1000\nsnapshot 3 topic t\n4 topic v\n5 noop"
    log = of_record(controller_1=whole, controller_2=gap, controller_3=gap)
    assert log.end_offset == 6
    assert offsets(log) == [0, 1, 2, 3, 4, 5]


def test_an_aborted_transaction_of_the_log_counts_for_nothing() -> None:
    text = "0 leader 1000\n1 begin\n2 topic t\n3 {}\n4 topic u"
    aborted = log_of_record(metadata_log(text.format("abort")), FACTS)
    ended = log_of_record(metadata_log(text.format("end")), FACTS)
    unended = log_of_record(metadata_log(text.format("noop")), FACTS)
    assert [one.topic for one in aborted.records if one.topic] == ["u"]
    assert [one.topic for one in ended.records if one.topic] == ["t", "u"]
    assert not [one.topic for one in unended.records if one.topic]


def versions(text: str, key: str = "t-0") -> list[PartitionVersion]:
    log = log_of_record(metadata_log(text), FACTS)
    histories = partition_histories(log.records).values()
    return next(one.versions for one in histories if one.key == key)


BORN = "1 topic t\n2 partition t-0 replicas 1,2,3 isr 1,2,3 leader 1\n"


def test_each_change_is_a_version_and_only_a_named_leader_bumps_the_leader_epoch() -> None:
    found = versions(
        BORN + "3 change t-0 isr 1,2 leader 1\n4 change t-0 isr 1\n5 change t-0 leader 2"
    )
    assert [one.partition_epoch for one in found] == [0, 1, 2, 3]
    assert [one.leader_epoch for one in found] == [0, 1, 1, 2]
    assert [one.leader for one in found] == [1, 1, 1, 2]
    assert [one.isr for one in found] == [(1, 2, 3), (1, 2), (1,), (1,)]


def test_an_unclean_election_is_recovering_until_it_is_recovered() -> None:
    found = versions(
        BORN
        + "3 change t-0 isr 2 leader 2 recovering\n4 change t-0 isr 2,3\n5 change t-0 recovered"
    )
    assert [one.recovering for one in found] == [False, True, True, False]


def test_an_elr_is_carried_on_until_it_is_changed_or_cleared() -> None:
    found = versions(
        BORN + "3 change t-0 isr none leader -1 elr 1\n4 change t-0 replicas 1,2\n5 clear-elr t"
    )
    assert [one.elr for one in found] == [(), (1,), (1,), ()]
    assert found[-1].cause is Cause.CLEARED
    assert found[-1].partition_epoch == 3


def test_a_partition_of_a_snapshot_starts_where_the_snapshot_says() -> None:
    found = versions(
        "snapshot 9 topic t\n"
        "snapshot 9 partition t-0 replicas 1,2 isr 1 leader 1 leader-epoch 4 partition-epoch 7\n"
        "10 change t-0 isr 1,2"
    )
    assert [one.cause for one in found] == [Cause.SNAPSHOT, Cause.CHANGED]
    assert [(one.leader_epoch, one.partition_epoch) for one in found] == [(4, 7), (4, 8)]


def test_a_topic_that_is_created_again_has_a_history_of_its_own() -> None:
    again = "3 delete t\n4 topic t as id-2\n5 partition t-0 replicas 1 isr 1 leader 1"
    log = log_of_record(metadata_log(BORN + again), FACTS)
    old, new = partition_histories(log.records).values()
    assert old.key == new.key == "t-0"
    assert old.deleted
    assert not new.deleted


def test_a_broker_is_what_its_registration_and_changes_say() -> None:
    text = "3 register 2\n4 unfence 2\n6 stopping 2\n7 fence 2\n9 register 2\n10 unregister 2"
    log = log_of_record(metadata_log(text), FACTS)
    broker = broker_histories(log.records)[2]
    assert [one.eligible for one in broker.versions] == [False, True, False, False, False, False]
    assert [one.broker_epoch for one in broker.versions] == [3, 3, 3, 3, 9, 9]
    before = broker.before(9)
    assert before is not None
    assert before.in_controlled_shutdown
    assert broker.before(3) is None


def test_the_first_registration_of_an_incarnation_is_found() -> None:
    text = "3 register 2 incarnation a\n5 register 2 incarnation b\n7 register 2 incarnation b"
    broker = broker_histories(log_of_record(metadata_log(text), FACTS).records)[2]
    assert broker.first_of_incarnation(broker.versions[2]).metadata_offset == 5
    assert broker.first_of_incarnation(broker.versions[0]).metadata_offset == 3


def test_a_change_that_states_its_epochs_is_believed() -> None:
    text = """
        1 topic t
        2 partition t-0 replicas 1,2 isr 1,2 leader 1 leader-epoch 3 partition-epoch 5
        3 change t-0 isr 1 leader-epoch 3 partition-epoch 6
        4 change t-0 leader 2 leader-epoch 7 partition-epoch 9
        5 change t-0 leader 1
    """
    (history,) = partition_histories(log_of_record(metadata_log(text), FACTS).records).values()
    epochs = [(one.leader_epoch, one.partition_epoch) for one in history.versions]
    assert epochs == [(3, 5), (3, 6), (7, 9), (8, 10)]


def test_servers_of_zookeeper_vote_and_changes_of_one_transaction_are_decided_together() -> None:
    log = "1 topic t saying x\n1 topic u saying x\n5 topic v"
    nodes = {f"zookeeper-{number}": 2000 + number for number in (1, 2, 3)}
    ensemble = Facts(node_ids=nodes | {"broker-1": 1})
    found = log_of_record(
        metadata_log(zookeeper_1=log, zookeeper_2=log + "\n6 topic w", zookeeper_3="1 topic z"),
        ensemble,
    )
    assert not found.doubt
    assert [one.topic for one in found.records] == ["t", "u", "v"]
    assert (ensemble.on_zookeeper, THREE.on_zookeeper) == (True, False)
