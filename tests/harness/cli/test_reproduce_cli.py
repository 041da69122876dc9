"""`fencepost reproduce` and `fencepost track-record` as a user calls them, without a cluster."""

import html
import json
import re
import xml.etree.ElementTree as ET
from functools import partial
from pathlib import Path

import pytest
from series_doubles import BOTH, SCENARIO, runner, ticking, verdict

from fencepost.checkers.verdict import Verdict
from fencepost.harness.cli import reproducing as command
from fencepost.harness.cli.main import main
from fencepost.harness.series.reproduce import reproduce
from fencepost.harness.series.reproduction import SeriesState
from fencepost.harness.series.reproduction_file import read_reproduction
from fencepost.harness.series.track_record import BEGIN, END
from fencepost.history.failure import HarnessError, UsageError

HIT = verdict(*BOTH)
SOUND = verdict()


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    path = tmp_path / "trial.yaml"
    path.write_text(SCENARIO)
    return path


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, captured.out, captured.err


def answer(monkeypatch: pytest.MonkeyPatch, *answers: Verdict | BaseException) -> None:
    """Runs give these answers."""
    faked = partial(reproduce, run=runner(*answers), clock=ticking())
    monkeypatch.setattr(command, "run_series", faked)


def test_the_releases_that_the_scenario_names_are_run_if_the_user_names_none(
    trial: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, HIT, HIT, SOUND, SOUND, SOUND, SOUND)
    code, out, err = call(capsys, "reproduce", trial, "--runs", 2, "--seed", 5)
    assert code == 0, err
    sentence = (
        "trial: 2/2 on 3.4.1, 0/2 on 3.5.2 (at most 66 % at 95 % confidence), "
        "0/2 on 4.3.1 (at most 66 % at 95 % confidence)"
    )
    assert sentence in out
    assert "found on 3.4.1, 2 runs: lost-write in 2, unseen in 2" in out
    assert "3.4.1: hit after 10.0 s, 2/2 so far" in err
    (path,) = (trial.parent / "results/trial/reproductions").glob("*.json")
    assert f"stored: {path}" in out
    stored = read_reproduction(path)
    assert stored.state is SeriesState.COMPLETE
    assert stored.command.startswith(
        f"fencepost reproduce {trial} --kafka 3.4.1,3.5.2,4.3.1 --runs 2 --seed 5"
    )
    assert (
        stored.series[0].runs[1].command.startswith(f"fencepost run {trial} --kafka 3.4.1 --seed 6")
    )


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ([HIT], 0),
        ([SOUND], 1),
        ([verdict(unknown=["unseen"])], 2),
        ([KeyboardInterrupt()], 255),
    ],
)
def test_the_exit_code_tells_whether_it_is_as_expected(
    trial: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    answers: list[Verdict | BaseException],
    code: int,
) -> None:
    answer(monkeypatch, *answers)
    found, _, _ = call(capsys, "reproduce", trial, "--kafka", "3.4.1", "--runs", 1)
    assert found == code


def test_it_ends_as_any_series(
    trial: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, HIT, HarnessError("no port"), SOUND, SOUND)
    _, out, _ = call(capsys, "reproduce", trial, "--kafka", "3.4.1,4.3.1", "--runs", 2, "--seed", 5)
    (stored,) = (trial.parent / "results/trial/reproductions").glob("*.json")
    junit, page = stored.with_suffix(".junit.xml"), stored.with_suffix(".html")
    said = out.splitlines()
    place = said.index(f"stored: {stored}")
    assert said[place + 1 : place + 3] == [f"junit: {junit}", f"page: {page}"]
    assert said[place + 3].startswith(f"repeat: fencepost reproduce {trial} --kafka 3.4.1,4.3.1")
    assert "scenario" in said[place + 4]
    line = "2 of 4 valid, 1 invalid: lost-write, unseen (KAFKA-1), 1 failed: no port"
    assert said[-1] == line.replace("lost-write, unseen (", "lost-write (KAFKA-1), unseen (")
    suites = ET.parse(junit).getroot()
    cases = [case.get("name") for suite in suites for case in suite]
    assert cases == [
        f"trial on kafka {release}, host local, seed {seed}"
        for release in ("3.4.1", "4.3.1")
        for seed in (5, 6)
    ]
    assert said[-1] in html.unescape(page.read_text())


def test_a_series_that_is_ended_early_ends_as_any(
    trial: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, SOUND, UsageError("another run is under way"))
    code, out, err = call(capsys, "reproduce", trial, "--kafka", "4.3.1", "--runs", 2)
    assert (code, out.splitlines()[-1]) == (254, "1 of 1 valid")
    assert "another run is under way" in err


def test_parameters_are_filled_in_and_told(
    trial: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trial.write_text(f"{SCENARIO}parameters: {{limit: 30s}}\ntime_limit: ${{limit}}\n")
    answer(monkeypatch, SOUND)
    flags = ("--kafka", "4.3.1", "--runs", 1, "--set", "limit=7s")
    code, _, err = call(capsys, "reproduce", trial, *flags)
    assert code == 0, err
    (stored,) = (trial.parent / "results/trial/reproductions").glob("*.json")
    assert " --set limit=7s" in read_reproduction(stored).command
    assert " --set limit=7s" in read_reproduction(stored).series[0].runs[0].command
    (suite,) = ET.parse(stored.with_suffix(".junit.xml")).getroot()
    assert suite.get("name") == "trial on kafka 4.3.1, --set limit=7s"
    code, _, err = call(capsys, "reproduce", trial, *flags[:-1], "limit=null")
    assert (code, "--set limit: null is not a value" in err) == (254, True)


def test_as_json_it_is_one_document(
    trial: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, HIT, SOUND)
    flags = ("--kafka", "3.4.1,4.3.1", "--runs", 1, "--json")
    code, out, _ = call(capsys, "reproduce", trial, *flags)
    said = json.loads(out)
    assert code == said["exit_code"] == 0
    assert said["sentence"].startswith("trial: 1/1 on 3.4.1, 0/1 on 4.3.1")
    fires, holds = said["releases"]
    assert (fires["hits"], fires["conclusive_runs"], fires["standing"]) == (1, 1, "as expected")
    assert fires["found_in_runs"] == {"lost-write": 1, "unseen": 1}
    assert holds["interval"]["high"] == pytest.approx(0.79345, abs=1e-5)
    assert Path(said["stored"]).is_file()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "no scenario 'nowhere'"),
        (["smoke", "--runs", "0"], "0 is not in the range"),
        (["smoke", "--kafka", "4.3.1", "--seed", "x"], "'x' is not a valid integer"),
        (["smoke", "--kafka", "4.3.1,"], "--kafka: expected different releases"),
        (["smoke", "--kafka", "4.3.1, 4.3.1"], "--kafka: expected different releases"),
        (["smoke", "--release", "4.3.1"], "this scenario's system takes its releases from --kafka"),
        (
            ["zookeeper", "--kafka", "3.9.1"],
            "this scenario's system takes its releases from --release",
        ),
    ],
)
def test_wrong_use_is_one_line_and_stores_nothing(
    trial: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    code, _, err = call(capsys, "reproduce", *arguments)
    assert code == 254
    assert says in err
    assert not (trial.parent / "results").exists()


def test_a_series_goes_from_its_file_into_the_record_and_the_page(
    trial: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, HIT, SOUND)
    call(capsys, "reproduce", trial, "--kafka", "3.4.1,4.3.1", "--runs", 1)
    (stored,) = (trial.parent / "results/trial/reproductions").glob("*.json")
    page = trial.parent / "page.md"
    page.write_text(f"{BEGIN}\n{END}\n")
    code, out, _ = call(capsys, "track-record", "--add", stored, "--write", page)
    assert (code, out) == (0, "")
    assert "| `trial` (KAFKA-1) | 3.4.1 | fires | 1/1 |" in page.read_text()
    _, out, _ = call(capsys, "track-record")
    assert re.search(r"trial \(KAFKA-1\) +3\.4\.1 +fires +1/1 ", out)
    assert max(map(len, out.partition("fencepost reproduce")[0].splitlines())) <= 100


def test_the_last_release_is_refused_before_the_first_is_run(
    trial: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, HIT)
    code, _, err = call(capsys, "reproduce", trial, "--kafka", "4.3.1,2.8.0", "--runs", "1")
    assert code == 254
    assert "Kafka 2.8.0 is too old" in err
    assert not (trial.parent / "results").exists()
