"""Which ticks a node gets: those at which its alarm is due, in its rhythm, and no others."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from world_toys import Ask, Sleeper

from fencepost.clusters.simulation.host import SimulatedHost
from fencepost.clusters.simulation.world import World

_MS = 1_000_000
_RHYTHM_NS = 20 * _MS


class _Bed:
    """One sleeper in a world, which is told at times what it has to do at which time."""

    def __init__(self, *, honest: bool = True, **options: Any) -> None:
        self.sleeper = Sleeper(honest=honest)
        self.world = World(5, **options)
        self.host: SimulatedHost = self.world.add(
            0, "sleeper", lambda: self.sleeper, tick_ns=_RHYTHM_NS
        )
        self.world.start(self.host)

    def tell(self, at_ms: int, due_ms: int) -> None:
        message = Ask(1, str(due_ms))
        self.world.push(at_ms * _MS, self.host, 7, Ask.kind, message)

    def run(self, until_ms: int) -> None:
        self.world.run(until_ms * _MS)


def test_a_node_that_waits_for_nothing_gets_one_tick() -> None:
    bed = _Bed()
    bed.run(10_000)
    assert len(bed.sleeper.ticks) == 1


def test_what_is_due_is_done_within_a_tick_of_its_time() -> None:
    bed = _Bed()
    bed.tell(100, 5_000)
    bed.tell(200, 700)
    bed.run(10_000)
    assert [due // _MS for due, _ in bed.sleeper.done] == [700, 5_000]
    assert all(0 <= done - due < _RHYTHM_NS for due, done in bed.sleeper.done)
    assert len(bed.sleeper.ticks) == 3


def test_a_deadline_that_moved_away_costs_a_tick_and_nothing_else() -> None:
    bed = _Bed()
    bed.tell(100, 500)
    bed.run(200)
    bed.sleeper.due_ns = [900 * _MS]
    bed.run(2_000)
    assert [due // _MS for due, _ in bed.sleeper.done] == [900]
    assert len(bed.sleeper.ticks) == 3


def test_what_was_due_in_a_pause_is_done_when_the_node_goes_on() -> None:
    bed = _Bed()
    bed.tell(100, 500)
    bed.run(300)
    bed.world.pause(bed.host)
    bed.run(3_000)
    bed.world.resume(bed.host)
    bed.run(4_000)
    assert bed.sleeper.done == [(500 * _MS, 3_000 * _MS)]


def test_what_was_due_in_a_pause_without_a_tick_is_done_with_the_next_one() -> None:
    bed = _Bed()
    bed.tell(100, 304)
    bed.run(302)
    bed.world.pause(bed.host)
    bed.run(306)
    bed.world.resume(bed.host)
    bed.run(400)
    [(_, done)] = bed.sleeper.done
    assert done < 306 * _MS + _RHYTHM_NS


def test_a_new_process_knows_nothing_of_what_its_predecessor_waited_for() -> None:
    bed = _Bed()
    bed.tell(100, 500)
    bed.run(200)
    bed.world.kill(bed.host)
    bed.sleeper = Sleeper()
    bed.world.start(bed.host)
    bed.run(2_000)
    assert bed.sleeper.done == []
    assert len(bed.sleeper.ticks) == 1


@given(
    told=st.lists(st.tuples(st.integers(1, 3_000), st.integers(1, 6_000)), max_size=8),
    drift_ppm=st.sampled_from([-50_000, -500, 0, 500, 50_000]),
)
def test_sleeping_through_is_as_good_as_every_tick(
    told: list[tuple[int, int]], drift_ppm: int
) -> None:
    """Whatever it is told, and by whatever clock: it does the same at the same times."""
    done = []
    for witnessed in (False, True):
        bed = _Bed(witnessed=witnessed)
        bed.world.drift(bed.host, drift_ppm)
        for at_ms, due_ms in told:
            bed.tell(at_ms, due_ms)
        bed.run(8_000)
        done.append(bed.sleeper.done)
    assert done[0] == done[1]
    assert len(done[0]) == len(told)


def test_a_witnessed_world_finds_out_who_acts_without_having_said_so() -> None:
    bed = _Bed(honest=False, witnessed=True)
    bed.tell(100, 500)
    with pytest.raises(AssertionError, match="it acts at a tick"):
        bed.run(2_000)


def test_a_witnessed_world_finds_out_a_deadline_that_was_not_said_when_it_was_set() -> None:
    bed = _Bed(witnessed=True)
    bed.tell(100, 5_000)
    bed.run(200)
    bed.sleeper.due_ns.append(3_000 * _MS)
    with pytest.raises(AssertionError, match="due 2000000000 ns before what it said"):
        bed.run(300)
