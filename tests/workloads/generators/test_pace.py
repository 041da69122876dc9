from hypothesis import given
from hypothesis import strategies as st

from fencepost.workloads.generators.pace import Pace

SECOND_NS = 1_000_000_000


def pace(*, rate: float, backlog_max: int = 1000, tick_ns: int = 0) -> Pace:
    return Pace(rate=rate, backlog_max=backlog_max, tick_ns=tick_ns, start_ns=0)


def test_record_i_is_due_at_i_over_rate() -> None:
    schedule = pace(rate=4)
    taken = []
    for now_ns in range(0, SECOND_NS + 1, SECOND_NS // 8):
        count = schedule.due(now_ns)
        schedule.take(count, now_ns)
        taken.append(count)
    assert taken == [1, 0, 1, 0, 1, 0, 1, 0, 1]


@given(
    rate=st.floats(min_value=0.1, max_value=1e6),
    steps_ns=st.lists(st.integers(min_value=0, max_value=10**8), max_size=50),
)
def test_the_schedule_is_kept_on_average_however_irregularly_it_is_asked(
    rate: float, steps_ns: list[int]
) -> None:
    schedule = pace(rate=rate, backlog_max=10**9)
    now_ns, taken = 0, 0
    for step_ns in steps_ns:
        now_ns += step_ns
        count = schedule.due(now_ns)
        schedule.take(count, now_ns)
        taken += count
    slow_and_obvious = 0 if not steps_ns else 1 + int(now_ns * rate / SECOND_NS)
    assert taken == slow_and_obvious
    assert schedule.forfeited_count == 0


@given(
    rate=st.floats(min_value=1, max_value=1e5),
    backlog_max=st.integers(min_value=1, max_value=100),
    away_ns=st.integers(min_value=0, max_value=60 * SECOND_NS),
)
def test_what_is_overdue_beyond_the_bound_is_forfeited_and_counted(
    rate: float, backlog_max: int, away_ns: int
) -> None:
    schedule = pace(rate=rate, backlog_max=backlog_max)
    scheduled = 1 + int(away_ns * rate / SECOND_NS)
    count = schedule.due(away_ns)
    assert count == min(scheduled, backlog_max)
    assert count + schedule.forfeited_count == scheduled


def test_records_that_are_not_taken_stay_due() -> None:
    schedule = pace(rate=1000)
    assert schedule.due(10_000_000) == 11
    schedule.take(4, 10_000_000)
    assert schedule.due(10_000_000) == 7


def test_nothing_is_due_before_the_tick() -> None:
    schedule = pace(rate=1000, tick_ns=10_000_000)
    schedule.take(schedule.due(0), 0)
    assert schedule.due(9_999_999) == 0
    assert schedule.wait_ns(4_000_000) == 6_000_000
    assert schedule.due(10_000_000) == 10


@given(rate=st.floats(min_value=0.1, max_value=1e6), now_ns=st.integers(0, 10**12))
def test_after_the_wait_a_record_is_due(rate: float, now_ns: int) -> None:
    schedule = pace(rate=rate, tick_ns=1_000_000)
    schedule.take(schedule.due(now_ns), now_ns)
    # One part in 10^12 of slack: the schedule is computed in floating point.
    later_ns = now_ns + schedule.wait_ns(now_ns) + 1 + now_ns // 10**12
    assert schedule.due(later_ns) > 0


def test_rate_0_is_as_fast_as_it_can() -> None:
    schedule = pace(rate=0, backlog_max=500, tick_ns=10_000_000)
    schedule.take(500, 0)
    assert schedule.due(1) == 500
    assert schedule.wait_ns(1) == 0
