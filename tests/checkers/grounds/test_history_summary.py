"""The sums over the operations, in one file or in many."""

import pytest
from histories import history
from judging import summary

from fencepost.checkers.grounds.history_summary import Called, HistorySummary
from fencepost.checkers.grounds.operations import FaultWindow, during_kind
from fencepost.history.operation import F, Outcome

_PAST = history(
    """
    p1 send t-0 v1 -> ok @0              in 0..4
    p1 send t-0 v2 -> fail               in 12..14
    p1 send t-0 v3 -> info               in 15..open
    c1 poll -> t-0 [v1@0]                in 20..24
    c1 poll -> nothing                   in 30..38
    c1 poll -> info t-0 []               in 40..open
    r1 final t-0 -> [v1@0]               in 60..70
    """
)
_WINDOWS = (
    FaultWindow(fault=0, kind="kill", effect_ns=10, end_ns=15),
    FaultWindow(fault=1, kind="pause", effect_ns=14, end_ns=20),
)


def _count(sums: HistorySummary, f: F, outcome: Outcome, time: str) -> int:
    called = (Called(f=f, outcome=outcome, empty=empty, time=time) for empty in (False, True))
    return sum(sums.counts.get(one, 0) for one in called)


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_sums_do_not_depend_on_how_operations_are_spread_over_files(parts: int) -> None:
    whole, spread = summary(_PAST.operations), summary(_PAST.operations, parts=parts)
    for name in ("row_count", "gap", "overlap", "counts", "errors", "latencies", "final_reads"):
        assert getattr(spread, name) == getattr(whole, name)
    assert spread.info_polls.keys() == whole.info_polls.keys() == {1}


def test_an_operation_is_counted_where_it_was_called() -> None:
    sums = summary(_PAST.operations, windows=_WINDOWS)
    assert _count(sums, F.SEND, Outcome.OK, "before") == 1
    assert _count(sums, F.SEND, Outcome.FAIL, "during") == 1
    assert _count(sums, F.SEND, Outcome.INFO, "during") == 1
    assert _count(sums, F.POLL, Outcome.OK, "during") == 1
    assert _count(sums, F.POLL, Outcome.OK, "after") == 1
    assert _count(sums, F.FINAL_READ, Outcome.OK, "after") == 1


def test_each_fault_counts_the_operations_called_during_it() -> None:
    sums = summary(_PAST.operations, windows=_WINDOWS)
    assert _count(sums, F.SEND, Outcome.INFO, "0") == 1
    assert _count(sums, F.SEND, Outcome.INFO, "1") == 1
    assert _count(sums, F.SEND, Outcome.FAIL, "1") == 0


def test_a_kind_counts_an_operation_once_however_many_of_its_faults_there_are() -> None:
    twice = (
        FaultWindow(fault=0, kind="kill", effect_ns=10, end_ns=15),
        FaultWindow(fault=1, kind="kill", effect_ns=14, end_ns=20),
        FaultWindow(fault=2, kind="pause", effect_ns=30, end_ns=31),
    )
    sums = summary(_PAST.operations, windows=twice)
    assert _count(sums, F.SEND, Outcome.INFO, during_kind("kill")) == 1
    assert _count(sums, F.POLL, Outcome.OK, during_kind("kill")) == 2
    assert _count(sums, F.POLL, Outcome.OK, during_kind("pause")) == 1


def test_to_its_kind_a_fault_lasts_a_second_at_least() -> None:
    second = 1_000_000_000
    past = history(
        f"""
        c1 poll -> t-0 [v1@0]  in 0..4
        c1 poll -> t-0 [v2@1]  in {second}..{second + 4}
        c1 poll -> t-0 [v3@2]  in {second + 20}..{second + 24}
        """
    )
    windows = (
        FaultWindow(fault=0, kind="restart", effect_ns=10, end_ns=12),
        FaultWindow(fault=1, kind="kill", effect_ns=1, end_ns=second + 30),
    )
    sums = summary(past.operations, windows=windows)
    assert _count(sums, F.POLL, Outcome.OK, during_kind("restart")) == 1
    assert _count(sums, F.POLL, Outcome.OK, "0") == 0
    assert _count(sums, F.POLL, Outcome.OK, during_kind("kill")) == 2


def test_the_time_between_two_faults_is_not_during_them() -> None:
    apart = (
        FaultWindow(fault=0, kind="kill", effect_ns=10, end_ns=13),
        FaultWindow(fault=1, kind="kill", effect_ns=60, end_ns=61),
    )
    sums = summary(_PAST.operations, windows=apart)
    assert _count(sums, F.POLL, Outcome.OK, "between") == 2


def test_a_hole_in_the_indices_is_found_within_a_file_and_between_files() -> None:
    holed = _PAST.operations.filter([True, True, False, True, True, True, True])
    assert "index 3 in part-0 does not follow" in summary(holed).gap
    assert "part-1 starts at index 3" in summary(holed, parts=3).gap
    assert "starts at index 1" in summary(_PAST.operations.slice(1)).gap
    assert not summary(_PAST.operations).gap


@pytest.mark.parametrize("parts", [1, 2])
def test_a_poll_that_was_called_before_the_last_one_returned_is_found(parts: int) -> None:
    past = history("c1 poll -> nothing in 0..9\nc1 poll -> nothing in 8..20")
    assert "process 0 called poll 1" in summary(past.operations, parts=parts).overlap


def test_polls_that_follow_each_other_at_the_same_time_do_not_overlap() -> None:
    past = history("c1 poll -> nothing in 0..8\nc1 poll -> nothing in 8..20")
    assert not summary(past.operations).overlap


def test_final_reads_of_one_process_may_overlap() -> None:
    past = history("r1 final t-0 -> [] in 0..9\nr1 final t-1 -> [] in 1..20")
    assert not summary(past.operations).overlap


def test_errors_are_counted_by_name() -> None:
    sums = summary(_PAST.operations)
    assert sums.errors == {(F.SEND, "SOME_ERROR"): 2, (F.POLL, "SOME_ERROR"): 1}


def test_only_complete_final_reads_are_kept() -> None:
    past = history("r1 final t-0 -> info []\nr1 final t-1 -> []")
    assert [read.key for read in summary(past.operations).final_reads] == ["t-1"]
