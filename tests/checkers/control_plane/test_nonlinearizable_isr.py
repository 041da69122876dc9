"""C1: the ISR as a versioned register."""

import pyarrow as pa
import pyarrow.compute as pc
from metadata_logs import (
    FACTS,
    ON_ZOOKEEPER,
    asked,
    describes,
    doubts,
    facts,
    metadata_log,
    never,
    proofs,
    tables,
)
from proving import assert_proof

from fencepost.checkers.control_plane.nonlinearizable_isr import nonlinearizable_isrs
from fencepost.checkers.proof import Proof

# Partition epochs: 0 at 600 ms, 1 (shrink) at 1000, 2 (expand) at 2000, 3 (shrink) at 3000.
LOG = """
    5 topic t
    6 partition t-0 replicas 1,2 isr 1,2 leader 1
    10 change t-0 isr 1
    20 change t-0 isr 1,2
    30 change t-0 isr 1
    90 noop
"""
SHRINK = "at 990 broker-1 alter t-0 expecting 0 isr 1 -> ok 1 at 1010"
EXPAND = "at 1990 broker-1 alter t-0 expecting 1 isr 1,2 -> ok 2 at 2010"


def found(*lines: str, log: str = LOG, reads: str = "") -> dict[str, list[Proof]]:
    given = tables(log, "\n".join(lines), describes=describes(reads))
    return proofs(asked(nonlinearizable_isrs, given, FACTS))


def test_what_kafka_does_is_linearizable() -> None:
    shown = """
        broker-2 showed t-0 leader 1 isr 1,2 leader-epoch 0 at 700..701
        broker-2 showed t-0 leader 1 isr 1 leader-epoch 0 at 2900..2901    # behind, and legal
    """
    assert not found(SHRINK, EXPAND, reads=shown)


def test_a_change_answered_before_the_controller_appended_it_is_impossible() -> None:
    early = SHRINK.replace("at 990", "at 790").replace("at 1010", "at 810")
    anomalies = never(asked(nonlinearizable_isrs, tables(LOG, early), FACTS))["t-0"]
    assert_proof(
        anomalies[0],
        "of {key} cannot have appeared before {bound} (the controller appended it",
        partition_epoch=1,
        key="t-0",
        bound=899,
        appended_offset=10,
        appended=899,
        last_partition_epoch=1,
        source="broker-1",
        isr="[1]",
        expected=0,
        asked=790,
        frame=0,
        error="NONE",
        answered=810,
    )
    assert anomalies[0].frames == (0, 1)
    assert not found(early.replace("at 810", "at 900"))


def test_a_change_that_was_called_after_a_describe_showed_it_is_impossible() -> None:
    later = "at 2500 broker-1 alter t-0 expecting 1 isr 1,2 -> ok 2 at 2600"
    third = "broker-2 showed t-0 leader 1 isr 1 leader-epoch 0 at 2300..2400"
    assert not found(later, reads=third)
    again = "at 2010 broker-1 alter t-0 expecting 2 isr 1 -> ok 3 at 3010"
    assert found(later.replace("at 2500", "at 3050").replace("at 2600", "at 3060"), again)


def test_a_request_is_refused_though_the_epoch_it_expected_held() -> None:
    refused = "at {} broker-1 on 9 alter t-0 expecting 1 isr 1 -> INVALID_UPDATE_VERSION at {}"
    late = "at 2990 broker-1 on 9 alter t-0 expecting 2 isr 1 -> ok 3 at 3010"
    slow = "at 2500 broker-1 alter t-0 expecting 1 isr 1,2 -> ok 2 at 2700"
    assert found(SHRINK, slow, refused.format(1050, 1090))
    assert not found(SHRINK, slow, refused.format(1050, 2600))
    assert not found(late, refused.format(3020, 3030))


def test_a_refusal_after_the_log_ended_proves_nothing() -> None:
    refused = "at {} broker-1 alter t-0 expecting 3 isr 1,2 -> INVALID_UPDATE_VERSION at {}"
    seen = "at 3900 broker-1 on 9 alter t-0 expecting 2 isr 1 -> ok 3 at 4000"
    assert found(seen, refused.format(5000, 5100))
    assert not found(seen, refused.format(8990, 9500))


def test_a_join_that_only_an_unanswered_request_can_have_made_was_not_there_before_its_call() -> (
    None
):
    lost = "at {} broker-1 alter t-0 expecting 1 isr 1,2 -> nothing"
    shown = "at 2100 broker-1 on 9 alter t-0 expecting 2 isr 1 -> ok 3 at 3010"
    third = "broker-2 showed t-0 leader 1 isr 1,2 leader-epoch 0 at 2200..2300"
    assert not found(lost.format(2400), reads=third)  # epoch 0 had that ISR, too
    assert not found(lost.format(2050), shown)
    assert found(lost.format(3020), shown)


def test_one_version_is_made_once() -> None:
    twice = SHRINK.replace("broker-1", "broker-1 on 9").replace("at 990", "at 995")
    proof = found(SHRINK, twice)["t-0"][0]
    named = {"epoch": 1, "key": "t-0", "makers_count": 2, "frame": 0, "frame_2": 10}
    assert_proof(proof, "was the answer to {makers_count}", **named)


def test_a_request_that_the_proxy_duplicated_has_one_answer_and_makes_one_version() -> None:
    given = tables(LOG, SHRINK.replace("at 990", "at 990 duplicated"))
    request = given["wire"].filter(pc.equal(given["wire"]["direction"], "request"))
    place = request.column_names.index("frame")
    copy = request.set_column(place, request.field("frame"), pa.array([5], pa.int64()))
    given["wire"] = pa.concat_tables([given["wire"], copy]).sort_by("frame")
    assert given["wire"]["frame"].to_pylist() == [0, 1, 5]
    assert not proofs(asked(nonlinearizable_isrs, given, FACTS))


def test_on_zookeeper_a_request_that_arrives_twice_is_granted_twice() -> None:
    def told(*lines: str) -> dict[str, list[Proof]]:
        log = metadata_log(zookeeper_1=LOG)
        return proofs(asked(nonlinearizable_isrs, tables(log, "\n".join(lines)), ON_ZOOKEEPER))

    again = "at {0}000 broker-1 on 9 alter t-0 expecting 0 isr 1 -> ok {1} at {0}010"
    assert not told(SHRINK, EXPAND, again.format(1, 1))
    # The ISR is so again.
    assert not told(SHRINK, EXPAND, again.format(4, 3))
    assert told(SHRINK, EXPAND, again.format(4, 1))
    another = again.format(1, 1).replace("isr 1 ", "isr 1,2 ")
    assert_proof(told(SHRINK, another)["t-0"][0], "was the answer to", epoch=1)


def test_on_zookeeper_a_third_try_did_not_make_what_was_granted_twice_before() -> None:
    """Both answers were held; the version was there, and shown, before the third try was sent."""
    log = LOG.replace("isr 1,2 leader 1", "isr 1 leader 1").replace("10 change t-0 isr 1\n", "")
    again = "at {0}000 broker-1 on {0} alter t-0 expecting 0 isr 1,2 -> {1}\n"
    shown = describes("broker-2 showed t-0 leader 1 isr 1,2 leader-epoch 0 at 2500..2510")

    def told(frames: str) -> dict[str, list[Proof]]:
        given = tables(metadata_log(zookeeper_1=log), frames, describes=shown)
        return proofs(asked(nonlinearizable_isrs, given, ON_ZOOKEEPER))

    granted = [again.format(at, f"ok 1 at {at}010 passed never") for at in (1, 4)]
    unanswered = again.format(5, "nothing")
    assert not told("".join([*granted, unanswered]))
    assert told(unanswered)


def test_an_acknowledged_change_stands_in_the_log_as_it_was_acknowledged() -> None:
    other = "at 2990 broker-1 alter t-0 expecting 2 isr 1,3 -> ok 3 at 3010"
    proof = found(other)["t-0"][0]
    assert_proof(proof, "has ISR {isr} there", isr="[1]", acknowledged_isr="[1, 3]", epoch=3)
    gone = "at 3500 broker-1 alter t-0 expecting 3 isr 1,2 -> ok 4 at 3510"
    assert_proof(found(gone)["t-0"][0], "has no such version", epoch=4, answered=3510, frame=0)
    assert not found("at 8990 broker-1 alter t-0 expecting 3 isr 1,2 -> ok 4 at 8999")
    assert not found(gone.replace("ok 4", "NOT_CONTROLLER"))


def test_a_change_that_moved_the_leadership_is_answered_without_its_isr() -> None:
    moved = LOG.replace("30 change t-0 isr 1", "30 change t-0 isr 2 leader 2 replicas 2")
    alter = "at 2990 broker-1 alter t-0 expecting {} isr 1,2 -> NEW_LEADER_ELECTED at 3010"
    assert not found(alter.format(2), log=moved)
    proof = found(alter.format(3).replace("3010", "3510"), log=moved)["t-0"][0]
    assert_proof(proof, "has no such version", epoch=4, acknowledged_isr="[1, 2]")


def test_a_describe_shows_what_some_version_was() -> None:
    never_was = "broker-2 showed t-0 leader 2 isr 2 leader-epoch {} at {}..{}"
    proof = found(reads=never_was.format(1, 5000, 5001))["t-0"][0]
    named = {"node": "broker-2", "leader": 2, "leader_epoch": 1, "isr": "[2]", "return_": 5001}
    assert_proof(proof, "no version in the metadata log was that", **named)
    assert not found(reads=never_was.format(1, 8999, 9001))


def test_a_describe_before_its_version_was_appended_is_impossible() -> None:
    shown = "broker-2 showed t-0 leader 1 isr 1 leader-epoch 0 at 700..{}"
    assert found(reads=shown.format(701))
    assert not found(reads=shown.format(901))


def test_a_describe_from_before_a_snapshot_is_of_no_version_behind_it() -> None:
    """The log begins with ISR [1] of leader epoch 0; broker 2 had been a member before that."""
    log = """
        snapshot 15 topic t
        snapshot 15 partition t-0 replicas 1,2 isr 1 leader 1 partition-epoch 1
        20 change t-0 isr 1,2
        30 change t-0 isr 2 leader 2
        90 noop
    """
    shown = "broker-2 showed t-0 leader {} isr {} {}at {}..{}"
    early = ("leader-epoch 0 ", "")
    for epoch in early:
        assert not found(log=log, reads=shown.format(1, "1,2", epoch, 700, 701))
    assert not found(log=log, reads=shown.format(1, "3", "leader-epoch 0 ", 700, 701))
    # No version before the snapshot had the next leader epoch.
    assert found(log=log, reads=shown.format(2, "2", "leader-epoch 1 ", 700, 701))
    assert found(log=log, reads=shown.format(2, "1", "leader-epoch 1 ", 5000, 5001))


def test_what_the_proxy_answered_in_the_controllers_place_is_no_answer() -> None:
    early = "at 790 broker-1 alter t-0 expecting 0 isr 1 -> ok 1 at 810 by the proxy"
    assert not found(early)


def test_a_quorum_without_a_majority_of_logs_is_a_doubt() -> None:
    judged = asked(nonlinearizable_isrs, tables(LOG), facts(controllers=3))
    assert "1 of 3 controllers" in doubts(judged)["metadata"]


def test_a_change_is_granted_that_expected_a_version_long_gone() -> None:
    late = "at 1990 broker-1 alter t-0 expecting {} isr 1,2 -> {} at 2010"
    (proof,) = found(SHRINK, late.format(0, "ok 2"))["t-0"]
    assert_proof(
        proof,
        "and was answered by partition epoch {epoch}",
        key="t-0",
        expected=0,
        epoch=2,
        asked=1990,
        frame=10,
    )
    assert not found(SHRINK, late.format(1, "ok 2"))
    unanswered = late.format(0, "ok 2").partition(" -> ")[0] + " -> nothing"
    assert not found(SHRINK, unanswered)
    # A controller on ZooKeeper grants what is so already, whatever epoch is expected.
    given = tables(metadata_log(zookeeper_1=LOG), late.format(0, "ok 2"))
    assert not proofs(asked(nonlinearizable_isrs, given, ON_ZOOKEEPER))
