"""What findings are called, over nights whose true rates are known."""

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from nights_at_rates import drawn, night, run
from scipy.stats import binom, fisher_exact

from fencepost.harness.gate.called import (
    CalledFinding,
    FindingCall,
    Trend,
    called,
    doubts,
    runs_until_resolved,
)
from fencepost.harness.gate.nights import NightRecord, NightVerdict, read_night

RATES = {f"storm/at-{rate}": rate for rate in (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)}
A, B = "storm/lost-write", "storm/stuck-isr"


class Nights:
    """Nights in a directory, one after the other."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.past: list[NightRecord] = []

    def call(self, runs: Sequence[dict[str, Any]]) -> dict[str, CalledFinding]:
        tonight = read_night(night(self.root, len(self.past), runs))
        found = called(tonight, self.past)
        self.past.append(tonight)
        return {one.identity: one for one in found}

    def calls(self, runs: Sequence[dict[str, Any]]) -> dict[str, FindingCall]:
        return {name: one.call for name, one in self.call(runs).items()}


@pytest.fixture
def nights(tmp_path: Path) -> Nights:
    return Nights(tmp_path)


def having(hits: int, runs: int, finding: str = A) -> list[dict[str, Any]]:
    return [run(findings=[finding] if place < hits else []) for place in range(runs)]


def lives(nights: Nights, rates: Mapping[str, float], *, seed: int) -> Iterable[CalledFinding]:
    draw = random.Random(seed)
    for _ in range(30):
        yield from nights.call(drawn(rates, runs=10, draw=draw)).values()


def test_thirty_nights_of_an_unchanged_cluster(tmp_path: Path) -> None:
    """Each finding is new once, and hardly any is ever called resolved or of another rate."""
    new: Counter[str] = Counter()
    resolved: set[str] = set()
    trends: Counter[Trend] = Counter()
    for seed in range(10):
        for one in lives(Nights(tmp_path / str(seed)), RATES, seed=seed):
            name = f"{seed} {one.identity}"
            new[name] += one.call is FindingCall.NEW
            if one.call is FindingCall.RESOLVED:
                resolved.add(name)
            if one.call is FindingCall.ONGOING:
                trends[one.trend] += 1
    assert len(new) == 10 * len(RATES)
    assert set(new.values()) == {1}
    assert len(resolved) <= 0.05 * len(new)
    assert trends[Trend.UP] + trends[Trend.DOWN] <= 0.02 * trends.total()


def test_green_after_one_night_would_be_wrong_most_of_the_time() -> None:
    """The rule that this one replaces, by exact probabilities: at rate 0.2, one run a night."""
    assert binom.pmf(0, 1, 0.2) == pytest.approx(0.8)
    needed = runs_until_resolved(6, 30, absences=0)
    assert binom.pmf(0, needed, 0.2) < 0.05


def test_a_jump_to_three_in_ten_is_called_in_the_first_night(tmp_path: Path) -> None:
    """The probability of the call, exactly, over all that a night of ten runs can bring."""
    chance = 0.0
    for hits in range(11):
        nights = Nights(tmp_path / str(hits))
        nights.call(having(0, 10))
        if nights.calls(having(hits, 10)).get(A) is FindingCall.NEW:
            chance += float(binom.pmf(hits, 10, 0.3))
    assert chance == pytest.approx(1 - 0.7**10)
    assert chance >= 0.97


def test_a_finding_is_new_once_and_ongoing_when_it_comes_back(nights: Nights) -> None:
    assert nights.calls(having(1, 10)) == {A: FindingCall.NEW}
    assert nights.calls(having(1, 10)) == {A: FindingCall.ONGOING}
    assert nights.calls(having(0, 10)) == {A: FindingCall.NOT_SEEN}
    assert nights.calls(having(1, 10)) == {A: FindingCall.ONGOING}


def test_a_new_one_says_what_rate_may_have_been_hidden(nights: Nights) -> None:
    first = nights.call(having(1, 10))[A]
    assert first.hidden_rate_max is None
    other = nights.call(having(1, 10, B))[B]
    assert other.hidden_rate_max is not None
    assert (1 - other.hidden_rate_max) ** 10 == pytest.approx(0.05)


def test_it_is_resolved_once_enough_runs_are_without_it(nights: Nights) -> None:
    nights.call(having(3, 10))
    needed = runs_until_resolved(3, 10, absences=0)
    assert needed > 20
    seen = nights.call(having(0, 20))[A]
    assert (seen.call, seen.missing_runs) == (FindingCall.NOT_SEEN, needed - 20)
    assert nights.calls(having(0, needed - 21)) == {A: FindingCall.NOT_SEEN}
    assert nights.calls(having(0, 1)) == {A: FindingCall.RESOLVED}
    # It is called once.
    assert nights.calls(having(0, 10)) == {}
    assert nights.calls(having(1, 10)) == {A: FindingCall.ONGOING}


def test_what_always_showed_is_resolved_in_one_night(nights: Nights) -> None:
    nights.call(having(10, 10))
    assert nights.calls(having(0, 10)) == {A: FindingCall.RESOLVED}


def test_each_absence_takes_longer_than_the_one_before() -> None:
    waits = [runs_until_resolved(9, 30, absences=number) for number in range(5)]
    assert waits == sorted(waits)
    assert waits[0] < waits[-1]


def test_a_rate_goes_up_or_down_by_fishers_exact_test(nights: Nights) -> None:
    nights.call(having(2, 40))
    risen = nights.call(having(6, 10))[A]
    assert risen.trend is Trend.UP
    assert risen.p_value == pytest.approx(float(fisher_exact([[6, 4], [2, 38]]).pvalue))
    nights.call(having(30, 30))
    fallen = nights.call(having(1, 30))[A]
    assert fallen.trend is Trend.DOWN
    steady = nights.call(having(5, 10))[A]
    assert steady.trend is Trend.STEADY


def test_runs_that_are_unknown_or_failed_resolve_nothing(nights: Nights) -> None:
    nights.call(having(10, 10))
    silent = [run(verdict="unknown", reason="thin"), run(verdict="failed", reason="no port")] * 9
    seen = nights.call(silent)[A]
    assert (seen.call, seen.tonight.runs) == (FindingCall.NOT_SEEN, 0)
    told = [(one.verdict, one.count, one.runs, one.reason) for one in doubts(nights.past[-1])]
    assert told == [
        (NightVerdict.FAILED, 9, 18, "no port"),
        (NightVerdict.UNKNOWN, 9, 18, "thin"),
    ]


def test_another_release_is_another_subject(nights: Nights) -> None:
    nights.call(having(10, 10))
    older = nights.call([run(release="3.9.2") for _ in range(10)])[A]
    assert older.call is FindingCall.NOT_SEEN
    tonight = read_night(
        night(nights.root, 2, [run(findings=[A], release="3.9.2"), run(findings=[A])])
    )
    told = {one.subject.release: one.call for one in called(tonight, nights.past)}
    assert told == {"3.9.2": FindingCall.NEW, "4.3.1": FindingCall.ONGOING}


def test_an_invalid_run_without_a_named_finding_is_one(nights: Nights) -> None:
    assert nights.calls([run(verdict="invalid")]) == {"storm/invalid": FindingCall.NEW}
