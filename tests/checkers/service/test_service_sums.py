"""The sums of asks against a slow, obvious version, however the asks are cut into blocks."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fencepost.checkers.grounds.operations import FaultWindow
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.service.latencies import LatencySums
from fencepost.checkers.service.level import _covered_ns
from fencepost.checkers.service.silences import Asks, KeySilence
from fencepost.checkers.service.uses import Fold, UseSums

_TIMES = st.integers(0, 30)
_EXACT = 0.012
"""The relative error of a quantile, a little above 2 ** (1 / 64) - 1."""


@dataclass(frozen=True)
class _Ask:
    call: int
    end: int | None
    outcome: str
    """ok, refused, or fail."""


@st.composite
def _histories(draw: st.DrawFn) -> tuple[_Ask, ...]:
    asks = draw(
        st.lists(
            st.builds(
                _Ask,
                call=_TIMES,
                end=st.one_of(st.none(), st.integers(0, 15)),
                outcome=st.sampled_from(("ok", "ok", "refused", "fail")),
            ),
            max_size=14,
        )
    )
    placed = (
        _Ask(one.call, None, "fail")
        if one.end is None
        else _Ask(one.call, one.call + one.end, one.outcome)
        for one in asks
    )
    return tuple(sorted(placed, key=lambda one: one.call))


_FAULTS = st.lists(
    st.tuples(_TIMES, st.one_of(st.none(), st.integers(0, 10)), st.sampled_from(("kill", "cut"))),
    max_size=4,
)


def _windows(faults: Sequence[tuple[int, int | None, str]]) -> list[FaultWindow]:
    return [
        FaultWindow(
            fault=number,
            kind=kind,
            effect_ns=effect,
            end_ns=OPEN_NS if lasted is None else effect + lasted,
        )
        for number, (effect, lasted, kind) in enumerate(faults)
    ]


def _asks(history: Sequence[_Ask], *, first: int = 0) -> Asks:
    ends = [one.call if one.end is None else one.end for one in history]
    return Asks(
        index=np.arange(first, first + len(history), dtype=np.int64),
        call_ns=np.array([one.call for one in history], dtype=np.int64),
        end_ns=np.array(ends, dtype=np.int64),
        answered=np.array([one.outcome != "fail" for one in history], dtype=np.bool_),
        ok=np.array([one.outcome == "ok" for one in history], dtype=np.bool_),
    )


def _sums(
    history: Sequence[_Ask], windows: Sequence[FaultWindow] = (), *, cuts: Sequence[int] = ()
) -> UseSums:
    fold = Fold(windows, least_ns=1, bound_ns=3)
    places = sorted({0, *(cut for cut in cuts if cut < len(history)), len(history)})
    for begin, end in pairwise(places):
        fold.add("k", _asks(history[begin:end], first=begin))
    return fold.done()


def _silences(history: Sequence[_Ask]) -> list[tuple[int, int]]:
    """Elementary spans in which somebody waits, joined where nobody is answered between them."""
    returned = [one for one in history if one.end is not None]
    answers = {one.end for one in returned if one.outcome != "fail"}
    bounds = sorted({time for one in returned for time in (one.call, one.end) if time is not None})
    found: list[tuple[int, int]] = []
    for begin, end in pairwise(bounds):
        if any(one.call <= begin and one.end is not None and one.end >= end for one in returned):
            if found and found[-1][1] == begin and begin not in answers:
                found[-1] = (found[-1][0], end)
            else:
                found.append((begin, end))
    return found


def _during(history: Sequence[_Ask], window: FaultWindow) -> set[int]:
    if window.end_ns < min((one.call for one in history), default=0):
        return set()
    answers = [one.end for one in history if one.end is not None and one.outcome != "fail"]
    until = min((end for end in answers if end >= window.end_ns), default=OPEN_NS)
    return {
        number
        for number, one in enumerate(history)
        if one.call <= until and (one.call if one.end is None else one.end) >= window.effect_ns
    }


@given(_histories(), st.lists(st.integers(1, 14)))
def test_silences_are_those_of_the_slow_version(history: tuple[_Ask, ...], cuts: list[int]) -> None:
    sums = _sums(history, cuts=cuts)
    mine = sums.silences["k"] if history else None
    found = sorted(zip(mine.begins_ns, mine.ends_ns, strict=True)) if mine else []
    assert found == _silences(history)
    assert mine is None or mine.stretch_count >= len(found)


@given(_histories(), st.lists(st.integers(1, 14)))
def test_the_operations_of_a_silence_are_those_around_and_in_it(
    history: tuple[_Ask, ...], cuts: list[int]
) -> None:
    sums = _sums(history, cuts=cuts)
    ends = [one.call if one.end is None else one.end for one in history]
    for one in sums.silences["k"].kept if history else ():
        answered = [n for n, ask in enumerate(history) if ask.outcome != "fail"]
        earlier = max((ends[n] for n in answered if ends[n] <= one.begin_ns), default=None)
        assert (None if one.before is None else ends[one.before]) == earlier
        there = any(ends[n] == one.end_ns for n in answered)
        assert (one.after is not None) is there
        assert one.after is None or ends[one.after] == one.end_ns
        # One whose end was never seen, and that was called when a silence begins, may be in it.
        surely = {n for n in range(len(ends)) if _spans(history[n], one, least=1)}
        perhaps = {n for n in range(len(ends)) if _spans(history[n], one, least=0)}
        assert len(surely) <= one.waiting_count <= len(perhaps)
        assert set(one.waiting) <= perhaps
        assert len(one.waiting) == min(4, one.waiting_count)


def _spans(ask: _Ask, silence: KeySilence, *, least: int) -> bool:
    end = ask.call if ask.end is None else ask.end
    common = min(end, silence.end_ns) - max(ask.call, silence.begin_ns)
    return common >= least or (end == ask.call and silence.begin_ns < end < silence.end_ns)


@given(_histories(), _FAULTS, st.lists(st.integers(1, 14)))
def test_latencies_are_those_of_the_slow_version(
    history: tuple[_Ask, ...], faults: list[tuple[int, int | None, str]], cuts: list[int]
) -> None:
    windows = _windows(faults)
    latencies = _sums(history, windows, cuts=cuts).latencies
    during = {one.fault: _during(history, one) for one in windows}
    ok = {
        number: one.end - one.call
        for number, one in enumerate(history)
        if one.outcome == "ok" and one.end is not None
    }
    reached = set().union(*during.values())
    outside = [spent for number, spent in ok.items() if number not in reached]
    _assert_like(latencies, "outside", outside)
    _assert_like(latencies, "during", [ok[number] for number in reached & set(ok)])
    assert latencies.slow_count == sum(spent > 3 for spent in outside)
    assert [spent for spent, _, _ in latencies.slowest] == sorted(outside, reverse=True)[:5]
    for window in windows:
        told = latencies.by_fault.get(window.fault)
        found = told.latency() if told else None
        assert (found.count if found else 0) == len(during[window.fault] & set(ok))


def _assert_like(latencies: LatencySums, name: str, spent: list[int]) -> None:
    found = getattr(latencies, name).latency()
    assert (found is None) is (not spent)
    if found is not None:
        exact = sorted(spent)
        assert found.count == len(exact)
        assert found.max_ms * 1e6 == exact[-1]
        for share, told in ((0.5, found.p50_ms), (0.99, found.p99_ms)):
            at = max(1, exact[-(-len(exact) * round(100 * share) // 100) - 1])
            assert at * (1 - 1e-9) <= max(told * 1e6, 1) <= at * (1 + _EXACT) + 1e-9


@given(st.lists(st.tuples(_TIMES, st.integers(1, 9))))
def test_what_several_silences_cover_counts_once(spans: list[tuple[int, int]]) -> None:
    placed = [(begin, begin + length) for begin, length in spans]
    covered = {moment for begin, end in placed for moment in range(begin, end)}
    assert _covered_ns(placed) == len(covered)


def test_an_ask_of_unknown_fate_does_not_end_a_silence() -> None:
    history = [_Ask(0, 1, "ok"), _Ask(2, 5, "fail"), _Ask(3, 20, "ok")]
    (first, second) = sorted(_sums(history).silences["k"].kept, key=lambda one: one.begin_ns)
    assert (first.begin_ns, first.end_ns) == (0, 1)
    assert (second.begin_ns, second.end_ns, second.before, second.after) == (2, 20, 0, 2)


def test_no_time_in_which_nobody_asks_is_a_silence() -> None:
    history = [_Ask(0, 1, "ok"), _Ask(900, 901, "ok")]
    assert [one.length_ns for one in _sums(history).silences["k"].kept] == [1, 1]


def test_the_tail_of_a_fault_is_its_own() -> None:
    window = FaultWindow(fault=0, kind="kill", effect_ns=100, end_ns=200)
    tail = [_Ask(210, 900, "ok"), _Ask(901, 902, "ok")]
    latencies = _sums([_Ask(0, 50, "ok"), *tail], [window]).latencies
    assert [latencies.outside.max_ns, latencies.during.max_ns] == [50, 690]


def test_a_fault_that_was_over_reaches_no_key_that_was_not_asked_for_yet() -> None:
    window = FaultWindow(fault=0, kind="kill", effect_ns=100, end_ns=200)
    fold = Fold([window], least_ns=1)
    fold.add("old", _asks([_Ask(50, 60, "ok"), _Ask(300, 390, "ok")]))
    fold.add("new", _asks([_Ask(300, 370, "ok")]))
    latencies = fold.done().latencies
    assert [latencies.outside.max_ns, latencies.during.max_ns] == [70, 90]
