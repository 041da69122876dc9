"""Windows by kind, which strikes took effect in them, and what a scenario demands of them."""

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from manifests import MANIFEST as SMALL
from window_rows import NEVER_OPENED, UNUSED, windows_table

from fencepost.checkers.case_counts import with_case_count
from fencepost.checkers.catalogue import asked
from fencepost.checkers.grounds.windows import (
    WindowKind,
    summed_kinds,
    window_kinds,
    window_kinds_in,
    window_strikes,
)
from fencepost.checkers.verdict import CheckResult, Validity, Verdict, read_verdict, write_verdict
from fencepost.history.run_directory import RunDirectory

MANIFEST = replace(SMALL, recorded=("windows",))
VOTE = {"kind": "Vote request"}
THREE_OF_A_KIND = ({"struck": ["kill", "wipe"]}, UNUSED, NEVER_OPENED)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    found = RunDirectory(tmp_path / "run")
    found.history.mkdir(parents=True)
    return found


def judged(run: RunDirectory, *windows: dict[str, object], demanded: str = "") -> CheckResult:
    pq.write_table(windows_table(*windows), run.table_path("windows"))
    required = tuple(demanded.split())
    return window_strikes(run, replace(MANIFEST, required_windows=required))


def test_windows_are_counted_by_kind_as_laid_opened_struck_and_closed_unused() -> None:
    alter, vote = window_kinds(windows_table(*THREE_OF_A_KIND, VOTE))
    assert (alter.kind, vote.kind) == ("AlterPartition request", "Vote request")
    counts = (alter.laid_count, alter.opened_count, alter.struck_count, alter.unused_count)
    assert counts == (3, 2, 1, 1)
    assert alter.strikes == {"kill": 1, "wipe": 1}
    assert (vote.laid_count, vote.unused_count) == (1, 0)


def test_a_strike_that_took_effect_twice_in_a_window_is_one_window() -> None:
    (alter,) = window_kinds(windows_table({"struck": ["kill", "pause", "kill"]}))
    assert alter.strikes == {"kill": 1, "pause": 1}


def test_what_could_have_been_and_never_was_is_counted_as_none() -> None:
    asked = ("Vote request", "Vote response")
    kinds = window_kinds(windows_table(VOTE), asked=asked, strikes=("kill", "wipe"))
    assert [(one.kind, one.laid_count, one.strikes) for one in kinds] == [
        ("Vote request", 1, {"kill": 1, "wipe": 0}),
        ("Vote response", 0, {"kill": 0, "wipe": 0}),
    ]


def test_a_verdict_keeps_the_windows_by_kind(run: RunDirectory, tmp_path: Path) -> None:
    result = judged(run, *THREE_OF_A_KIND, {**VOTE, "struck": ["cut_power"]}, {**VOTE, **UNUSED})
    assert result.figures["Vote request_unused_count"] == 1
    write_verdict(tmp_path / "verdict.json", Verdict.of([result]))
    told = window_kinds_in(read_verdict(tmp_path / "verdict.json"))
    assert told == window_kinds(pq.read_table(run.table_path("windows")))


def test_a_run_that_is_too_old_to_have_recorded_windows_is_not_asked() -> None:
    assert "window-strikes" not in {entry.name for entry in asked(("operations", "records"))}
    assert "window-strikes" in {entry.name for entry in asked(("windows",))}
    assert window_kinds_in(Verdict.of([])) is None


@pytest.mark.parametrize(
    ("windows", "opened"),
    [([], "0 of 0"), ([NEVER_OPENED, UNUSED], "1 of 2"), ([VOTE], "0 of 0")],
)
def test_a_demanded_window_in_which_nothing_struck_makes_the_run_unknown(
    run: RunDirectory, windows: list[dict[str, object]], opened: str
) -> None:
    result = judged(run, *windows, demanded="AlterPartition")
    assert (result.validity, result.case_count) == (Validity.UNKNOWN, 1)
    assert result.reason == (
        "the scenario demands that a window of AlterPartition be struck, and none was "
        f"({opened} opened)"
    )


def test_one_strike_in_either_direction_of_the_demanded_message_is_enough(
    run: RunDirectory,
) -> None:
    response = {"kind": "AlterPartition response"}
    result = judged(run, UNUSED, response, VOTE, demanded="AlterPartition Vote")
    assert (result.validity, result.case_count) == (Validity.VALID, 2)


def test_where_nothing_is_demanded_there_is_no_case_and_the_windows_are_counted(
    run: RunDirectory,
) -> None:
    found = judged(run, *THREE_OF_A_KIND, VOTE)
    assert (found.validity, found.case_count) == (Validity.VALID, 0)
    assert found.reason == "no window is demanded: 4 laid, 3 opened, 2 struck"
    assert with_case_count(found, MANIFEST.promises).validity is Validity.NOT_JUDGED


def test_a_table_that_cannot_be_read_is_unknown(run: RunDirectory) -> None:
    run.table_path("windows").write_bytes(b"torn")
    result = window_strikes(run, MANIFEST)
    assert result.validity is Validity.UNKNOWN
    assert "windows.parquet" in result.reason


def test_the_windows_of_several_runs_add_up_by_kind_and_strike() -> None:
    first = window_kinds(windows_table({}, VOTE))
    second = window_kinds(windows_table({"struck": ["pause"]}, UNUSED))
    alter, vote = summed_kinds([first, second, ()])
    assert alter == WindowKind(
        kind="AlterPartition request",
        laid_count=3,
        opened_count=3,
        struck_count=2,
        strikes={"kill": 1, "pause": 1},
    )
    assert vote == first[1]
