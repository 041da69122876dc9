"""The wall clock is compared with the run's clock: what steps it takes, and when."""

from dataclasses import replace

import pytest
from manifests import MANIFEST

from fencepost.checkers.facts import facts_of
from fencepost.history.clock import EVERY_NODE, ClockSkew
from fencepost.history.wall_clock import STEP_NS, WallClock

S = 1_000_000_000
ORIGIN_UTC_NS = 1_800_000_000 * S


class Machine:
    """Both clocks of a machine; `ahead_ns`: of the wall clock."""

    def __init__(self) -> None:
        self.time_ns = self.ahead_ns = self.reading_takes_ns = 0

    def now_ns(self) -> int:
        return self.time_ns

    def wall_ns(self) -> int:
        self.time_ns += self.reading_takes_ns
        return ORIGIN_UTC_NS + self.time_ns + self.ahead_ns


def watched(machine: Machine, *steps: tuple[float, float]) -> tuple[ClockSkew, ...]:
    """The skews after 100 s of looks a quarter of a second apart. Steps: (when, seconds ahead)."""
    wall = WallClock(machine, origin_utc_ns=ORIGIN_UTC_NS, read=machine.wall_ns)
    for quarter in range(401):
        machine.time_ns = quarter * S // 4
        for when_s, ahead_s in steps:
            if machine.time_ns >= when_s * S:
                machine.ahead_ns = round(ahead_s * S)
        wall.look()
    return wall.skews()


def test_a_clock_that_keeps_step_within_a_few_milliseconds_has_no_skew() -> None:
    assert watched(Machine()) == ()
    assert watched(Machine(), (10, 0.004), (20, -0.011), (30, 0)) == ()


def test_a_step_lasts_from_the_look_before_it_to_the_look_after_the_next_one() -> None:
    first, second = watched(Machine(), (10.1, 5), (60.1, -2))
    assert (first.node, second.node) == (EVERY_NODE, EVERY_NODE)
    assert (first.from_ns, first.until_ns) == (10 * S, round(60.25 * S))
    assert (second.from_ns, second.until_ns) == (60 * S, 100 * S)
    assert (first.ahead_min_ns, first.ahead_max_ns) == (5 * S - STEP_NS, 5 * S + STEP_NS)
    assert second.ahead_max_ns == STEP_NS - 2 * S


def test_a_clock_that_was_set_right_again_is_right_again() -> None:
    (only,) = watched(Machine(), (10.1, 5), (20.1, 0.003))  # as near as anybody can set it
    assert only.until_ns == round(20.25 * S)


def test_many_small_steps_come_to_a_large_one() -> None:
    steps = [(second, 0.008 * second) for second in range(1, 99)]
    last = watched(Machine(), *steps)[-1]
    assert last.ahead_min_ns <= round(0.008 * 98 * S) <= last.ahead_max_ns


def test_a_look_in_which_the_process_stood_still_says_nothing() -> None:
    machine = Machine()
    machine.reading_takes_ns = S // 10
    assert watched(machine, (10, 5)) == ()


@pytest.mark.parametrize("ahead_s", [7, -7])
def test_a_record_after_a_step_is_dated_so_that_its_true_time_is_possible(ahead_s: int) -> None:
    skews = watched(Machine(), (50, ahead_s))
    manifest = replace(MANIFEST, origin_utc_ns=ORIGIN_UTC_NS, clock_skews=skews, clock_watched=True)
    facts = facts_of(manifest)
    for true_s in range(1, 99):
        shown_ms = (ORIGIN_UTC_NS // S + true_s + (ahead_s if true_s >= 50 else 0)) * 1000
        assert facts.earliest_ns(shown_ms) <= true_s * S <= facts.latest_ns(shown_ms)
