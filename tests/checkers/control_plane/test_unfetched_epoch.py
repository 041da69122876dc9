"""C2b: under which broker epoch a follower is proposed, and under which it had fetched."""

import pyarrow as pa
from metadata_logs import FACTS, asked, doubts, never, proofs, tables
from proving import assert_proof, only, source_of

from fencepost.checkers.control_plane.epoch_check_bypassed import bypassed_epoch_checks
from fencepost.checkers.control_plane.stale_epoch_join import stale_epoch_joins
from fencepost.checkers.control_plane.unfetched_epoch import unfetched_epochs
from fencepost.checkers.facts import Judged

# Broker 2 lost its disk and came back; the leader has a Fetch from before, and proposes it.
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
"""
REGISTERED = """
    at 300 broker-2 register -> ok 3 at 310
    at 19990 broker-2 register -> ok 33 at 20010
"""
OLD = "at 400 broker-2 to broker-1 fetches t-0 epoch 3 -> nothing"
LATE = "at 9000 passed 21900 broker-2 to broker-1 fetches t-0 epoch 3 -> nothing"
NEW = "at {} broker-2 to broker-1 on 9 fetches t-0 epoch 33 -> nothing"
JOIN = "at 21990 broker-1 alter t-0 expecting 1 isr 1:1,2:33 leader-epoch 1 -> ok 2 at 22010"


def judged(*frames: str, log: str = LOG) -> Judged:
    return asked(unfetched_epochs, tables(log, "\n".join((REGISTERED, *frames))), FACTS)


def cases(found: Judged) -> int:
    return sum(one.case_count for _, one in found)


def test_a_follower_proposed_under_an_epoch_that_none_of_its_fetches_had_named() -> None:
    frames = (OLD, LATE, NEW.format(21991), JOIN)
    found = never(judged(*frames))
    (one,) = found["t-0"]
    assert_proof(
        one,
        "for the ISR of {key} under broker epoch {broker_epoch}",
        source="broker-1",
        broker_id=2,
        key="t-0",
        broker_epoch=33,
        asked=21_990,
        frame=50,
        fetched_epoch=3,
        fetched=21_900,
        fetch_frame=30,
        first=21_991,
        first_frame=40,
    )
    assert (one.values, one.frames) == ((3, 33), (30, 50, 40))
    assert source_of(one.proof, "fetched_epoch") == "frame 30"
    assert cases(judged(*frames)) == 1


def test_checks_that_compare_the_request_with_the_registration_cannot_see_it() -> None:
    both = tables(LOG, f"{REGISTERED}\n{OLD}\n{LATE}\n{JOIN}")
    assert not proofs(asked(stale_epoch_joins, both, FACTS))
    assert not proofs(asked(bypassed_epoch_checks, both, FACTS))
    assert proofs(asked(unfetched_epochs, both, FACTS))


def test_a_fetch_under_that_epoch_that_was_passed_on_in_time_explains_it() -> None:
    for passed in (21000, 21990):
        found = judged(OLD, LATE, NEW.format(passed), JOIN)
        assert not proofs(found)
        assert cases(judged(OLD, LATE, NEW.format(passed), JOIN)) == 1


def test_a_fetch_that_is_held_or_of_another_partition_or_leader_explains_nothing() -> None:
    held = "at 21000 held broker-2 to broker-1 on 9 fetches t-0 epoch 33 -> nothing"
    late = "at 21000 passed 22500 broker-2 to broker-1 on 9 fetches t-0 epoch 33 -> nothing"
    other = "at 21000 broker-2 to broker-1 on 9 fetches t-1 epoch 33 -> nothing"
    elsewhere = "at 21000 broker-2 to broker-3 on 9 fetches t-0 epoch 33 -> nothing"
    for frame in (held, late, other, elsewhere):
        assert proofs(judged(OLD, LATE, frame, JOIN)), frame


def test_a_follower_that_has_not_fetched_at_all_is_told_from_one_that_is_not_on_the_tape() -> None:
    elsewhere = "at 21000 broker-2 to broker-1 on 9 versions -> ok level 3 at 21001"
    proof = only(proofs(judged(elsewhere, JOIN)), "t-0")
    assert_proof(proof, "had no Fetch of that replica at all", broker_epoch=33)
    assert cases(judged(JOIN)) == 0
    assert not doubts(judged(JOIN))


def test_a_tape_that_is_older_than_the_fetches_on_it_tells_nothing_of_them() -> None:
    given = tables(LOG, f"{REGISTERED}\n{OLD}\n{LATE}\n{JOIN}")
    wire = given["wire"]
    place = wire.schema.get_field_index("session_epoch")
    field = wire.schema.field(place)
    older = wire.set_column(place, field, pa.nulls(len(wire), field.type))
    assert cases(asked(unfetched_epochs, given, FACTS)) == 1
    assert cases(asked(unfetched_epochs, {**given, "wire": older}, FACTS)) == 0


def test_the_partitions_of_a_session_that_began_elsewhere_are_not_known() -> None:
    goes_on = "at 21000 broker-2 to broker-1 on {} fetches t-1 epoch 33 session 7 -> nothing"
    begun = "at 20600 broker-2 to broker-1 on 9 fetches t-1 epoch 33 -> nothing"
    assert not proofs(judged(OLD, goes_on.format(9), JOIN))
    assert proofs(judged(OLD, begun, goes_on.format(9), JOIN))
    assert not proofs(judged(OLD, begun, goes_on.format(8), JOIN))


def test_what_could_not_be_decoded_may_have_told_anything_and_an_old_version_no_epoch() -> None:
    unread = "at {} broker-2 to broker-1 on 9 fetches t-0 epoch unread version {} -> nothing"
    assert cases(judged(OLD, unread.format(21000, 19), JOIN)) == 0
    assert proofs(judged(OLD, unread.format(21999, 19), JOIN))
    assert proofs(judged(OLD, unread.format(21000, 14), JOIN))


def test_only_followers_that_would_join_under_an_epoch_are_judged() -> None:
    stays = "at 5000 broker-1 alter t-0 expecting 0 isr 1:1,2:77 -> INVALID_UPDATE_VERSION at 5001"
    unchecked = "at 21990 broker-1 alter t-0 expecting 1 isr 1:1,2:-1 -> ok 2 at 22010"
    old_version = "at 21990 broker-1 alter t-0 expecting 1 isr 1,2 -> ok 2 at 22010"
    from_nowhere = "at 21990 broker-1 alter t-0 expecting 9 isr 1:1,2:33 -> nothing"
    for frame in (stays, unchecked, old_version, from_nowhere):
        assert cases(judged(OLD, frame)) == 0, frame
        assert not proofs(judged(OLD, frame)), frame


def test_a_refused_proposal_is_one_too_and_one_that_is_sent_again_counts_once() -> None:
    refused = JOIN.replace("ok 2", "INELIGIBLE_REPLICA")
    lost = JOIN.replace("at 21990 broker-1", "at 23000 broker-1 to controller-2 on 8")
    again = lost.partition(" -> ")[0] + " -> nothing"
    found = judged(OLD, LATE, refused, again)
    assert len(proofs(found)["t-0"]) == 1
    proof = only(proofs(judged(OLD, refused)), "t-0")
    assert_proof(proof, "none under {broker_epoch} was ever passed on to it", broker_epoch=33)


def test_without_a_log_of_record_nothing_is_judged() -> None:
    assert "left a metadata log" in doubts(judged(OLD, JOIN, log=""))["metadata"]
