from fencepost.harness.interpreter.idleness import Idleness
from fencepost.nemesis.waiting import Awaited, Waiting

RECOVERY = Waiting(kind=Awaited.RECOVERY, words="broker-1")
TURN = Waiting(kind=Awaited.TURN, words="wipe")


def course(*spans: tuple[float, Waiting | str | None]) -> Idleness:
    """Spans in seconds, each with what was waited for; `broken` if something was, None if not."""
    idleness = Idleness(now_s=0.0, zero_s=100.0)
    now_s = 0.0
    for seconds, state in spans:
        waiting = state if isinstance(state, Waiting) else None
        idleness.now_is(waiting, broken=state == "broken")
        now_s += seconds
        idleness.pass_to(now_s)
    return idleness


def test_the_longest_time_is_told_with_its_beginning_and_what_was_waited_for() -> None:
    found = course((5, RECOVERY), (2, "broken"), (4, RECOVERY), (3, TURN), (9, "broken"))
    assert found.longest.idle_s == 7
    assert found.longest.begin_s == 107
    assert found.longest.words == "recovery: broker-1"
    assert found.waits_s == {"recovery": 9, "turn": 3}


def test_a_gap_in_between_neither_counts_nor_ends_it() -> None:
    found = course((5, RECOVERY), (30, None), (6, TURN))
    assert found.longest.idle_s == 11
    assert found.longest.begin_s == 100
    assert found.longest.words == "turn: wipe"


def test_a_fault_ends_it_however_short() -> None:
    assert course((5, RECOVERY), (0, "broken"), (6, TURN)).longest.idle_s == 6


def test_while_nothing_is_due_or_something_is_broken_nothing_counts() -> None:
    found = course((500, None), (500, "broken"))
    assert (found.longest.idle_s, found.longest.words, found.waits_s) == (0, "", {})
