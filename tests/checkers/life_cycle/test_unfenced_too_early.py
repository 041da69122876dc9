"""L8: what a broker had said it has applied when it was unfenced."""

from metadata_logs import (
    FACTS,
    ON_ZOOKEEPER,
    asked,
    case_count,
    doubts,
    metadata_log,
    never,
    proofs,
    tables,
)
from proving import assert_proof, only, source_of

from fencepost.checkers.facts import Judged
from fencepost.checkers.life_cycle.unfenced_too_early import unfenced_too_early

LOG = """
    0 leader 1000
    3 register 2 unfenced
    28 fence 2
    33 register 2 at 20000
    34 unfence 2 at 20500
    40 noop
"""
LAGS = "at 20100 broker-2 heartbeat epoch 33 offset 30 -> ok told fenced at 20101"
CAUGHT_UP = "at {} broker-2 heartbeat epoch 33 offset 33 -> ok at 20501"


def judged(*frames: str, log: str = LOG) -> Judged:
    return asked(unfenced_too_early, tables(log, "\n".join(frames)), FACTS)


def test_a_broker_unfenced_before_it_said_that_it_has_its_registration() -> None:
    found = never(judged(LAGS, CAUGHT_UP.format(21000)))
    (one,) = found["broker 2"]
    assert_proof(
        one,
        "which is before its own registration at metadata offset {needed}, and the first one that",
        broker_id=2,
        metadata_offset=34,
        by=20_620.5,
        applied=30,
        target="controller-1",
        reached=20_100,
        frame=0,
        needed=33,
        first=21_000,
        first_frame=10,
    )
    assert one.frames == (0, 10)
    assert source_of(one.proof, "applied") == "frame 0"
    assert case_count(judged(LAGS, CAUGHT_UP.format(21000))) == 1


def test_the_proof_names_the_last_and_the_first_as_they_were_passed_on() -> None:
    lags = "at 20050 passed 20300 broker-2 heartbeat epoch 33 offset 31 -> ok told fenced at 20310"
    held = "at 20400 passed 29000 broker-2 heartbeat epoch 33 offset 35 -> ok at 29001"
    proof = only(proofs(judged(lags, LAGS, held, CAUGHT_UP.format(21000))), "broker 2")
    assert_proof(proof, "its last heartbeat until then", applied=31, reached=20_300, first=21_000)


def test_a_heartbeat_that_was_passed_on_in_time_explains_it() -> None:
    for frame in (CAUGHT_UP.format(20499), CAUGHT_UP.format(20600)):
        assert not proofs(judged(LAGS, frame))
        assert case_count(judged(LAGS, frame)) == 1
    unanswered = "at 20400 broker-2 heartbeat epoch 33 offset 40 -> nothing"
    assert not proofs(judged(LAGS, unanswered))


def test_the_answer_that_calls_it_unfenced_is_sharper_than_the_clock_of_the_log() -> None:
    soon = CAUGHT_UP.format(20510)  # the record may have been written after that
    assert not proofs(judged(LAGS, soon))
    told = "at 20480 broker-2 heartbeat epoch 33 offset 30 -> ok at 20505"
    found = proofs(judged(LAGS, told, soon))["broker 2"]
    assert_proof(found[0], "was unfenced at metadata offset", metadata_offset=34, by=20_505)


def test_one_that_was_held_or_is_of_another_registration_explains_nothing() -> None:
    held = "at 20400 held broker-2 heartbeat epoch 33 offset 40 -> nothing"
    older = "at 20400 broker-2 heartbeat epoch 3 offset 40 -> ok at 20401"
    for frame in (held, older):
        proof = only(proofs(judged(LAGS, frame)), "broker 2")
        assert_proof(proof, "none said {needed} or more afterwards", needed=33, applied=30)


def test_a_broker_of_which_no_heartbeat_is_on_the_tape_is_not_judged() -> None:
    assert case_count(judged()) == 0
    assert case_count(judged("at 20400 broker-2 heartbeat epoch 3 offset 40 -> ok at 20401")) == 0


def test_a_registration_that_comes_unfenced_was_not_unfenced_by_anything() -> None:
    log = "0 leader 1000\n33 register 2 unfenced at 20000\n40 noop"
    assert case_count(judged(LAGS, log=log)) == 0


def test_without_a_log_of_record_it_is_unknown() -> None:
    assert doubts(asked(unfenced_too_early, tables("", LAGS), FACTS))


BEAT = "at {0} broker-2 to broker-1 beats epoch 9 -> ok {1}at {2}"
SHOWN = "at {} broker-1 to broker-2 updates epoch 1 for 9 -> {}"


def on_zookeeper(*frames: str, elected: str = "1 leader 1 at 100") -> Judged:
    log = metadata_log(zookeeper_1=f"{elected}\n3 register 2 unfenced\n9 register 2 unfenced")
    return asked(unfenced_too_early, tables(log, "\n".join(frames)), ON_ZOOKEEPER)


def test_a_new_incarnation_on_zookeeper_is_called_active_before_it_was_told_anything() -> None:
    found = proofs(on_zookeeper(BEAT.format(1000, "", 1005)))["broker 2"]
    assert_proof(
        found[0],
        "had answered no UpdateMetadata of {target} before",
        target="broker-1",
        broker_id=2,
        answered=1005,
        answer_frame=1,
        incarnation=9,
        metadata_offset=9,
    )
    late = SHOWN.format(1006, "ok at 1007")
    assert proofs(on_zookeeper(BEAT.format(1000, "", 1005), late))
    assert proofs(on_zookeeper(BEAT.format(1000, "", 1005), SHOWN.format(1001, "nothing")))
    refused = SHOWN.format(1001, "STALE_BROKER_EPOCH at 1002")
    assert proofs(on_zookeeper(BEAT.format(1000, "", 1005), refused))


def test_what_it_answered_before_and_what_is_not_known_accuse_nobody() -> None:
    told = SHOWN.format(1001, "ok at 1002")
    good = list(on_zookeeper(told, BEAT.format(1000, "", 1005)))
    assert (proofs(good), case_count(good)) == ({}, 1)
    for frames in (
        # Called inactive, without an answer, and of an incarnation that is not in the log.
        (BEAT.format(1000, "told fenced ", 1005),),
        ("at 1000 broker-2 to broker-1 beats epoch 9 -> nothing",),
        ("at 1000 broker-2 to broker-1 beats epoch 7 -> ok at 1005", told.replace("9", "7")),
        # Of a controller that was elected after the registration, or is another one.
        ("at 1000 broker-2 to broker-3 beats epoch 9 -> ok at 1005",),
        # To itself.
        ("at 1000 broker-1 to broker-1 beats epoch 9 -> ok at 1005",),
    ):
        assert not proofs(on_zookeeper(*frames)), frames
    later = on_zookeeper(BEAT.format(2000, "", 2005), elected="12 leader 1 at 1200")
    assert not proofs(later)
