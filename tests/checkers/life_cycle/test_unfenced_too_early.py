"""L8: what a broker had said it has applied when it was unfenced."""

from metadata_logs import FACTS, asked, case_count, doubts, never, said, sentence, tables

from checkers.facts import Judged
from checkers.life_cycle.unfenced_too_early import unfenced_too_early

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
    assert [one.detail for one in found["broker 2"]] == [
        sentence("""
            broker 2 was unfenced at metadata offset 34, by 20.620 s; its last heartbeat until then
            said that it had applied 30 (passed on to controller-1 at 20.100 s, frame 0), which is
            before its own registration at metadata offset 33, and the first one that said 33 or
            more was passed on at 21.000 s (frame 10)
        """)
    ]
    assert found["broker 2"][0].frames == (0, 10)
    assert case_count(judged(LAGS, CAUGHT_UP.format(21000))) == 1


def test_a_heartbeat_that_was_passed_on_in_time_explains_it() -> None:
    for frame in (CAUGHT_UP.format(20499), CAUGHT_UP.format(20600)):
        assert not said(judged(LAGS, frame))
        assert case_count(judged(LAGS, frame)) == 1
    unanswered = "at 20400 broker-2 heartbeat epoch 33 offset 40 -> nothing"
    assert not said(judged(LAGS, unanswered))


def test_the_answer_that_calls_it_unfenced_is_sharper_than_the_clock_of_the_log() -> None:
    soon = CAUGHT_UP.format(20510)  # the record may have been written after that
    assert not said(judged(LAGS, soon))
    told = "at 20480 broker-2 heartbeat epoch 33 offset 30 -> ok at 20505"
    found = said(judged(LAGS, told, soon))["broker 2"]
    assert "unfenced at metadata offset 34, by 20.505 s" in found[0]


def test_one_that_was_held_or_is_of_another_registration_explains_nothing() -> None:
    held = "at 20400 held broker-2 heartbeat epoch 33 offset 40 -> nothing"
    older = "at 20400 broker-2 heartbeat epoch 3 offset 40 -> ok at 20401"
    for frame in (held, older):
        assert "none said 33 or more afterwards" in said(judged(LAGS, frame))["broker 2"][0]


def test_a_broker_of_which_no_heartbeat_is_on_the_tape_is_not_judged() -> None:
    assert case_count(judged()) == 0
    assert case_count(judged("at 20400 broker-2 heartbeat epoch 3 offset 40 -> ok at 20401")) == 0


def test_a_registration_that_comes_unfenced_was_not_unfenced_by_anything() -> None:
    log = "0 leader 1000\n33 register 2 unfenced at 20000\n40 noop"
    assert case_count(judged(LAGS, log=log)) == 0


def test_without_a_log_of_record_nobody_can_say() -> None:
    assert doubts(asked(unfenced_too_early, tables("", LAGS), FACTS))
