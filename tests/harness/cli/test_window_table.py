"""The grid of strikes and windows of a series, as people and programs read it."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import series_doubles
from series_doubles import SCENARIO, runner, ticking, verdict

from fencepost.checkers.grounds.windows import WindowKind, figures_of
from fencepost.checkers.verdict import CheckResult, Validity, Verdict
from fencepost.harness.cli import reproducing
from fencepost.harness.cli.main import main
from fencepost.harness.cli.tables import console
from fencepost.harness.cli.window_table import say_windows
from fencepost.harness.progress import Progress
from fencepost.harness.run.outcome import RunOutcome
from fencepost.harness.scenario.options import RunOptions
from fencepost.harness.scenario.scenario import Scenario
from fencepost.harness.series.reproduce import reproduce
from fencepost.harness.series.reproduction import SeriesRun
from fencepost.harness.series.reproduction_file import read_reproduction
from fencepost.harness.series.window_grid import window_grid
from fencepost.history.failure import HarnessError

EndWith = Callable[..., None]

ALTER = WindowKind(
    kind="AlterPartition request",
    laid_count=4,
    opened_count=3,
    struck_count=2,
    strikes={"cut_power": 0, "kill": 1, "pause": 2},
)
VOTE = WindowKind(kind="Vote request", laid_count=1, opened_count=1, struck_count=0)
TWICE = [
    "                   Alter",
    "               Partition     Vote",
    "                 request  request",
    "cut_power",
    "kill                   2",
    "pause                  4",
    "laid                   8        1",
    "opened                 6        1",
    "struck                 4        0",
    "closed unused          2        1",
]
"""The grid of two runs with ALTER, and VOTE in one."""
TWICE_AS_DATA = {
    "AlterPartition request": {
        "laid": 8,
        "opened": 6,
        "struck": 4,
        "unused": 2,
        "strikes": {"cut_power": 0, "kill": 2, "pause": 4},
    },
    "Vote request": {"laid": 1, "opened": 1, "struck": 0, "unused": 1, "strikes": {}},
}


def struck(*kinds: WindowKind) -> Verdict:
    """The verdict of a run with these windows."""
    told = CheckResult(check="window-strikes", validity=Validity.VALID, figures=figures_of(kinds))
    return Verdict.of([*verdict().checks, told])


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, list[str], str]:
    """The exit code, the lines on standard output, and what standard error says."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, [line.rstrip() for line in captured.out.splitlines()], captured.err


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    path = tmp_path / "trial.yaml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def runs_end(monkeypatch: pytest.MonkeyPatch) -> EndWith:
    """Have the runs of `fencepost run` end with these verdicts or errors."""

    def end_with(*answers: Verdict | BaseException) -> None:
        run = runner(*answers)

        def planned(scenario: Scenario, options: RunOptions, _: object) -> tuple[object, object]:
            return scenario, options

        def performed(plan: tuple[Scenario, RunOptions], progress: Progress) -> RunOutcome:
            return run(*plan, progress)

        monkeypatch.setattr("fencepost.harness.run.plan.planned", planned)
        monkeypatch.setattr("fencepost.harness.run.run.run_planned", performed)

    return end_with


def test_a_row_is_a_strike_a_column_a_kind_of_window_and_what_was_never_tried_is_blank(
    capsys: pytest.CaptureFixture[str],
) -> None:
    say_windows(window_grid([(ALTER,), (ALTER, VOTE), None]), console(), of=" on 4.3.1")
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "windows on 4.3.1 are not recorded in 1 run",
        "windows on 4.3.1, 2 runs: in how many each strike took effect",
        *TWICE,
    ]


def test_a_wide_grid_goes_on_below_and_is_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"{api} {way}" for api in LONG_APIS for way in ("request", "response")]
    kinds = [
        WindowKind(kind=name, laid_count=1234, opened_count=900, struck_count=number, strikes=every)
        for number, name in enumerate(names, start=500)
        for every in [{"change_controller": number, "move_leader": 1}]
    ]
    say_windows(window_grid([kinds]), console())
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    told = [word for line in lines if line.startswith("struck ") for word in line.split()[1:]]
    assert sorted(map(int, told)) == list(range(500, 500 + len(names)))
    assert sum(line.startswith("change_controller ") for line in lines) > 1


def test_names_of_a_run_are_shown_and_not_acted_on(capsys: pytest.CaptureFixture[str]) -> None:
    named = WindowKind(
        kind="[bold]Vote[/bold]",
        laid_count=1,
        opened_count=1,
        struck_count=1,
        strikes={"[red]kill": 1},
    )
    say_windows(window_grid([(named,)]), console())
    out = capsys.readouterr().out
    assert "[bold]Vote[/bold]" in out
    assert "[red]kill" in out


LONG_APIS = ("AlterPartition", "BrokerRegistration", "BrokerHeartbeat", "AssignReplicasToDirs")


def test_a_series_of_runs_whose_faults_have_no_windows_says_nothing_of_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    say_windows(window_grid([(), ()]), console())
    assert capsys.readouterr().out == ""


def test_runs_in_series_end_with_their_grid_and_store_it(
    trial: Path, capsys: pytest.CaptureFixture[str], runs_end: EndWith
) -> None:
    runs_end(struck(ALTER), HarnessError("broker-2 did not come up"), struck(ALTER, VOTE))
    code, out, _ = call(capsys, "run", trial, "--runs", 3, "--seed", 4, "--cluster", "simulated")
    assert code == 255, "one run failed"
    begin = out.index("windows, 2 runs: in how many each strike took effect")
    (path,) = (trial.parent / "results/trial/series").glob("*.json")
    end = begin + 1 + len(TWICE)
    assert out[begin + 1 : end] == TWICE
    assert out[end : end + 3] == [
        f"series: {path}",
        f"junit: {path.with_suffix('.junit.xml')}",
        f"page: {path.with_suffix('.html')}",
    ]
    assert out[-1].startswith("2 of 3 valid, 1 failed: broker-2 did not come up")
    stored = json.loads(path.read_text())
    assert stored["windows"] == {"runs": 2, "recorded": 2, "kinds": TWICE_AS_DATA}
    assert [run["seed"] for run in stored["runs"]] == [4, 5, 6]
    assert [run["validity"] for run in stored["runs"]] == ["valid", "failed", "valid"]
    assert stored["command"].startswith(f"fencepost run {trial} --seed 4 --cluster simulated ")
    assert stored["command"].endswith(" --runs 3")


def test_a_series_that_is_interrupted_keeps_and_shows_what_was_done(
    trial: Path, capsys: pytest.CaptureFixture[str], runs_end: EndWith
) -> None:
    runs_end(struck(ALTER), struck(ALTER, VOTE), KeyboardInterrupt())
    _, out, _ = call(capsys, "run", trial, "--runs", 9, "--cluster", "simulated")
    assert [line for line in out if line in TWICE] == TWICE
    (path,) = (trial.parent / "results/trial/series").glob("*.json")
    assert json.loads(path.read_text())["windows"]["kinds"] == TWICE_AS_DATA


def test_each_run_tells_its_windows_as_json_and_the_grid_stands_aside(
    trial: Path, capsys: pytest.CaptureFixture[str], runs_end: EndWith
) -> None:
    runs_end(struck(ALTER, VOTE), verdict())
    _, out, err = call(capsys, "run", trial, "--runs", 2, "--cluster", "simulated", "--json")
    first, second = json.loads("\n".join(out))
    assert first["windows"]["AlterPartition request"]["strikes"]["pause"] == 2
    assert second["windows"] is None, "not recorded"
    assert "windows are not recorded in 1 run" in err
    assert "windows, 1 run: in how many each strike took effect" in err


def test_a_series_on_a_system_without_windows_says_nothing_of_them(
    trial: Path,
    capsys: pytest.CaptureFixture[str],
    runs_end: EndWith,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on_kafka = series_doubles.manifest
    runs_end(verdict(), verdict())
    monkeypatch.setattr(
        series_doubles, "manifest", lambda *given: replace(on_kafka(*given), model="znode")
    )
    _, out, _ = call(capsys, "run", trial, "--runs", 2, "--cluster", "simulated")
    assert not [line for line in out if "windows" in line]
    assert [line for line in out if line.startswith("series: ")]


def test_one_run_alone_has_its_lines_and_no_series(
    trial: Path, capsys: pytest.CaptureFixture[str], runs_end: EndWith
) -> None:
    runs_end(struck(VOTE))
    _, out, _ = call(capsys, "run", trial, "--cluster", "simulated")
    assert "  windows Vote request: 1 opened, 0 struck, 1 closed unused" in out
    assert not [line for line in out if line.startswith(("windows", "series"))]


def test_a_reproduction_has_a_grid_a_release_on_the_terminal_in_its_file_and_as_json(
    trial: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = (struck(ALTER), struck(ALTER, VOTE), verdict(), HarnessError("no"))
    faked = partial(reproduce, run=runner(*answers), clock=ticking())
    monkeypatch.setattr(reproducing, "run_series", faked)
    flags = ("--kafka", "3.5.2,4.3.1", "--runs", 2)
    _, out, _ = call(capsys, "reproduce", trial, *flags)
    begin = out.index("windows on 3.5.2, 2 runs: in how many each strike took effect")
    assert out[begin + 1 : begin + 1 + len(TWICE)] == TWICE
    assert "windows on 4.3.1 are not recorded in 1 run" in out
    (path,) = (trial.parent / "results/trial/reproductions").glob("*.json")
    stored = read_reproduction(path)
    assert stored.series[0].windows.as_data()["kinds"] == TWICE_AS_DATA
    recorded: list[list[SeriesRun]] = [list(series.runs) for series in stored.series]
    assert [[run.windows is not None for run in runs] for runs in recorded] == [
        [True, True],
        [False, False],
    ]


def test_a_reproduction_as_json_has_the_grid_of_each_release(
    trial: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    faked = partial(reproduce, run=runner(struck(ALTER), struck(ALTER, VOTE)), clock=ticking())
    monkeypatch.setattr(reproducing, "run_series", faked)
    flags = ("--kafka", "3.5.2", "--runs", 2, "--json")
    _, out, _ = call(capsys, "reproduce", trial, *flags)
    (release,) = json.loads("\n".join(out))["releases"]
    assert release["windows"] == {"runs": 2, "recorded": 2, "kinds": TWICE_AS_DATA}


def test_a_reproduction_of_an_earlier_version_is_read_and_has_no_record(
    trial: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    faked = partial(reproduce, run=runner(struck(ALTER)), clock=ticking())
    monkeypatch.setattr(reproducing, "run_series", faked)
    call(capsys, "reproduce", trial, "--kafka", "3.5.2", "--runs", 1)
    (path,) = (trial.parent / "results/trial/reproductions").glob("*.json")
    content = json.loads(path.read_text())
    del content["series"][0]["runs"][0]["windows"]
    path.write_text(json.dumps(content))
    grid = read_reproduction(path).series[0].windows
    assert (grid.run_count, grid.recorded_count, grid.kinds) == (1, 0, ())
