"""C2: who judged the replica in sync, and who it is now."""

from metadata_logs import FACTS, ON_ZOOKEEPER, asked, doubts, metadata_log, never, proofs, tables
from proving import assert_proof, source_of

from fencepost.checkers.control_plane.stale_epoch_join import stale_epoch_joins
from fencepost.checkers.known_findings import KNOWN_FINDINGS
from fencepost.checkers.proof import Proof

# What Kafka 3.4.1 writes when a delayed AlterPartition brings a wiped replica back (KAFKA-14139).
LOG = """
    1 register 1
    2 unfence 1
    3 register 2
    4 unfence 2
    11 topic t
    12 partition t-0 replicas 1,2 isr 1,2 leader 1
    19 change t-0 isr 1 leader 1
    28 fence 2
    33 register 2 at 20000
    34 unfence 2 at 20500
    36 change t-0 isr 1,2 at 22000
    43 change t-0 isr 2 leader 2 at 22500
"""
REGISTERED = """
    at 300 broker-2 register -> ok 3 at 310
    at 19990 broker-2 register -> ok 33 at 20010
"""
DELAYED = "at 9812 passed 21990 broker-1 alter t-0 expecting 1 isr 1,2 -> ok 2 at 22010"
NAMED: dict[str, object] = {
    "broker_id": 2,
    "key": "t-0",
    "metadata_offset": 36,
    "asked": 9812,
    "frame": 20,
    "judged_epoch": 3,
    "registration_offset": 33,
    "registered": 20_010,
    "broker_epoch": 33,
}


def found(frames: str, log: str = LOG) -> dict[str, list[Proof]]:
    return proofs(asked(stale_epoch_joins, tables(log, REGISTERED + frames), FACTS))


def test_a_replica_that_registered_anew_after_the_request_was_sent_is_a_stale_join() -> None:
    anomalies = never(asked(stale_epoch_joins, tables(LOG, REGISTERED + DELAYED), FACTS))
    (one,) = anomalies["t-0"]
    assert_proof(one, "when it had broker epoch {judged_epoch}", **NAMED)
    assert (one.offsets, one.values, one.frames) == ((33, 36), (3, 33), (20, 21))
    assert source_of(one.proof, "broker_epoch") == "metadata offset 33"


def test_an_epoch_that_could_be_named_and_is_not_is_the_finding_that_is_known() -> None:
    known = KNOWN_FINDINGS["epochless-join"]
    (one,) = never(asked(stale_epoch_joins, tables(LOG, REGISTERED + DELAYED), FACTS))["t-0"]
    assert not known.covers(one)  # no request of that version names any
    unnamed, old = (DELAYED.replace("isr 1,2", f"isr 1:1,2:{epoch}") for epoch in (-1, 3))
    (one,) = never(asked(stale_epoch_joins, tables(LOG, REGISTERED + unnamed), FACTS))["t-0"]
    assert_proof(one, "under {named_epoch} when it had", **NAMED, named_epoch=-1)
    assert known.covers(one)
    (one,) = never(asked(stale_epoch_joins, tables(LOG, REGISTERED + old), FACTS))["t-0"]
    assert not known.covers(one)


def test_a_request_sent_after_the_registration_was_answered_is_of_this_incarnation() -> None:
    assert not found("at 20011 broker-1 alter t-0 expecting 1 isr 1,2 -> ok 2 at 22010")
    assert not found("at 20010 broker-1 alter t-0 expecting 1 isr 1,2 -> ok 2 at 22010")
    assert found("at 20009 broker-1 alter t-0 expecting 1 isr 1,2 -> ok 2 at 22010")


def test_a_request_without_an_answer_counts_if_no_other_can_have_made_the_change() -> None:
    lost = "at 9812 passed 21990 broker-1 alter t-0 expecting 1 isr 1,2 -> nothing"
    again = "at 21000 broker-1 on 9 alter t-0 expecting 1 isr 1,2 -> {} at 22010"
    assert found(lost)
    assert not found(f"{lost}\n{again.format('ok 2')}")
    assert not found(f"{lost}\n{again.format('REQUEST_TIMED_OUT')}")
    assert found(f"{lost}\n{again.format('INVALID_UPDATE_VERSION')}")


def test_a_request_that_never_reached_the_controller_let_no_replica_in() -> None:
    held = "at 9812 held broker-1 alter t-0 expecting 1 isr 1,2 -> nothing"
    judged = list(asked(stale_epoch_joins, tables(LOG, REGISTERED + held), FACTS))
    assert not proofs(judged)
    assert "is not on the tape" in doubts(judged)["t-0"]


def test_the_epoch_that_a_request_names_decides() -> None:
    alter = "at {} broker-1 alter t-0 expecting 1 isr 1:1,2:{} -> ok 2 at 22010"
    (named,) = found(alter.format(21000, 3))["t-0"]
    assert_proof(named, "under broker epoch {judged_epoch};", judged_epoch=3, broker_epoch=33)
    assert source_of(named, "judged_epoch") == "frame 20"
    assert not found(alter.format(9812, 33))
    # -1 says that the leader did not know (KIP-903): then the times decide.
    assert found(alter.format(9812, -1))
    assert not found(alter.format(21000, -1))


def test_a_leader_that_has_heard_no_fetch_since_the_registration_goes_by_an_older_one() -> None:
    """Below version 15 of Fetch: what a connection began with tells whose it is."""
    late = (
        "at 9000 passed 21000 broker-2 to broker-1 on {} fetches t-0 epoch -1 version 13 -> nothing"
    )
    new = "at 20010 passed {} broker-2 to broker-1 on 9 fetches t-0 epoch -1 version 13 -> nothing"
    join = "at 21500 broker-1 alter t-0 expecting 1 isr 1,2 -> ok 2 at 22010"
    (proof,) = found(f"{late.format(8)}\n{join}")["t-0"]
    rule = "on the word of broker epoch {judged_epoch}, as {source} had heard no fetch of a later"
    assert_proof(proof, rule, **NAMED | {"asked": 21_500, "frame": 30, "source": "broker-1"})
    assert found(f"{late.format(8)}\n{new.format(21501)}\n{join}")
    assert not found(f"{late.format(8)}\n{new.format(21500)}\n{join}")
    # What went over a link that is not on the tape is not known.
    assert not found(join)
    # A connection is of one process: what it began with before the answer is an older one's.
    assert found(f"{late.format(9)}\n{new.format(21000)}\n{join}")


def test_on_zookeeper_a_broker_may_register_anew_and_keep_its_connections() -> None:
    def told(frames: str) -> dict[str, list[Proof]]:
        given = tables(metadata_log(zookeeper_1=LOG), frames)
        return proofs(asked(stale_epoch_joins, given, ON_ZOOKEEPER))

    old = "at 9000 broker-2 to broker-1 on 8 fetches t-0 epoch -1 version 13 -> nothing\n"
    join = "at {} passed 21990 broker-1 alter t-0 expecting 1 isr 1,2 -> ok 2 at 22010"
    assert not told(old + join.format(21500))
    assert told(old + join.format(9812))["t-0"]
    # The controller's own requests cross no link.
    unseen = tables(metadata_log(zookeeper_1=LOG), old)
    assert not doubts(asked(stale_epoch_joins, unseen, ON_ZOOKEEPER))


def test_an_isr_change_from_before_a_registration_lets_a_replica_in() -> None:
    def told(frames: str) -> dict[str, list[Proof]]:
        given = tables(metadata_log(zookeeper_1=LOG), frames)
        return proofs(asked(stale_epoch_joins, given, ON_ZOOKEEPER))

    change = "at {} passed {} broker-1 changes t-0 isr {} under 1 -> {} at 22010"
    (proof,) = told(change.format(9812, 21_990, "1,2", "ok"))["t-0"]
    assert_proof(proof, "when it had broker epoch {judged_epoch}", judged_epoch=3, broker_epoch=33)
    assert not told(change.format(21_900, 21_990, "1,2", "ok"))
    assert not told(change.format(9812, 21_990, "1", "ok"))
    assert not told(change.format(9812, 23_000, "1,2", "ok").replace("22010", "23010"))
    # Version 1 names the incarnations of the members.
    assert not told(change.format(9812, 21_990, "1:1,2:33", "ok"))
    assert told(change.format(21_900, 21_990, "1:1,2:3", "ok"))


def test_on_zookeeper_what_was_granted_may_have_been_made_by_another_request() -> None:
    def told(*lines: str) -> dict[str, list[Proof]]:
        given = tables(metadata_log(zookeeper_1=LOG), REGISTERED + "\n".join(lines))
        return proofs(asked(stale_epoch_joins, given, ON_ZOOKEEPER))

    for what, answer in (
        ("changes t-0 isr 1,2 under 1", "ok"),
        ("alter t-0 expecting 1 isr 1,2", "ok 2"),
    ):
        held = f"at 9812 passed 22005 broker-1 {what} -> {answer} at 22010"
        again = f"at 21900 broker-1 on 9 {what} -> "
        assert told(held)
        assert not told(held, f"{again}{answer} at 22002")
        assert not told(held, f"{again}nothing")
        assert told(held, f"{again}INVALID_UPDATE_VERSION at 22002")


def test_without_its_answer_a_registration_counts_from_when_it_was_appended() -> None:
    join = "at {} passed 21990 broker-1 alter t-0 expecting 1 isr 1,2 -> ok 2 at 22010"
    for sent, stale in ((9812, True), (19950, False), (21000, False)):
        assert (
            bool(proofs(asked(stale_epoch_joins, tables(LOG, join.format(sent)), FACTS))) == stale
        )


def test_an_incarnation_that_registers_again_has_lost_nothing() -> None:
    log = LOG.replace("register 2", "register 2 incarnation b")
    assert not found(DELAYED, log)


def test_a_registration_is_answered_when_the_first_of_its_requests_is() -> None:
    """The request that was held is told the epoch that its repetition was given."""
    held = "at 19000 passed 30000 broker-2 register -> ok 33 at 30010\n"
    join = "at {} broker-1 alter t-0 expecting 1 isr 1,2 -> ok 2 at 22010"
    assert not found(held + join.format(21000))
    assert found(held + join.format(20009))


def test_a_leader_that_is_elected_into_the_isr_did_not_join_by_a_request() -> None:
    elected = LOG.replace("43 change t-0 isr 2 leader 2", "43 change t-0 isr 3 leader 3")
    assert len(found(DELAYED, elected)["t-0"]) == 1


def test_a_join_whose_request_is_not_on_the_tape_is_a_doubt() -> None:
    judged = list(asked(stale_epoch_joins, tables(LOG, REGISTERED), FACTS))
    assert not proofs(judged)
    assert "is not on the tape" in doubts(judged)["t-0"]


def test_without_a_log_of_record_nothing_is_judged() -> None:
    assert (
        "0 of 1 controllers left a metadata log"
        in doubts(asked(stale_epoch_joins, tables(""), FACTS))["metadata"]
    )


def test_a_join_that_completes_a_reassignment_is_judged_though_it_elects_a_leader() -> None:
    log = LOG.replace(
        "36 change t-0 isr 1,2 at 22000", "36 change t-0 isr 2 leader 2 replicas 2 at 22000"
    )
    log = log.replace("43 change t-0 isr 2 leader 2 at 22500", "43 noop at 22500")
    moved = DELAYED.replace("-> ok 2", "-> NEW_LEADER_ELECTED")
    (one,) = found(moved, log)["t-0"]
    assert_proof(one, "when it had broker epoch {judged_epoch}", **NAMED)
    assert not found(moved.replace("at 9812", "at 20500"), log)
    # An election that no request made.
    assert not found(DELAYED.replace("-> ok 2", "-> INVALID_UPDATE_VERSION"), log)
    assert not found(DELAYED.replace("-> ok 2 at 22010", "-> nothing"), log)
