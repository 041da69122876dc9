"""The command line without a cluster: what it prints, and its exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.harness.cli.main import main
from fencepost.nemesis.verbs.registry import EPISODES


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    captured = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, captured.out, captured.err


def test_a_mistake_of_our_own_never_looks_like_an_invalid_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def mistaken() -> None:
        raise KeyError("nobody foresaw this")

    monkeypatch.setattr("fencepost.harness.cli.scenarios.library", mistaken)
    code, _, said = call(capsys, "scenarios")
    assert code == 255
    assert "Traceback" in said
    assert said.strip().splitlines()[-1].startswith("fencepost: a mistake of Fencepost's own")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "smok"], "no scenario 'smok': did you mean 'smoke'"),
        (["run"], "Missing argument 'SCENARIO'"),
        (["rum", "smoke"], "No such command 'rum'"),
        (["run", "smoke", "--sed", "1"], "No such option '--sed'"),
        (["run", "smoke", "--seed", "x"], "'x' is not a valid integer"),
        (["run", "smoke", "--nemesis", "kil"], "--nemesis: nemesis.faults[0]: unknown fault 'kil'"),
        (["run", "smoke", "--time-limit", "soon"], "--time-limit: time_limit: 'soon' is not a"),
        (["run", "smoke", "--rate", "-5"], "--rate: workload[0].rate"),
        (["run", "acks-1", "--nemesis", "kill"], "a scenario has a nemesis or a play, not both"),
        (["check", "nothing"], "no run 'nothing'"),
        (["replay", "nothing"], "no run 'nothing'"),
    ],
)
def test_wrong_use_is_one_line_and_254(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    says: str,
) -> None:
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path))
    code, out, err = call(capsys, *arguments)
    assert code == 254
    assert says in err
    assert err.count("\n") == 1
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_scenario_is_refused_before_what_takes_seconds_is_imported(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("name: bad\ntopics: []\n")
    code = (
        "import sys\n"
        "from fencepost.harness.cli.main import main\n"
        "try:\n"
        f"    main(['run', {str(tmp_path / 'bad.yaml')!r}])\n"
        "finally:\n"
        "    heavy = {'bokeh', 'kio.schema.errors', 'paramiko', 'pyspark', 'scipy'}\n"
        "    print(*heavy & {*sys.modules})"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 254
    assert "bad.yaml:1: a scenario needs 'workload'" in ended.stderr
    assert ended.stdout.strip() == ""


def test_no_command_at_all_is_wrong_use_and_shows_the_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = call(capsys)
    assert code == 254
    assert "Commands:" in err


@pytest.mark.parametrize(
    "command", ["run", "replay", "check", "report", "scenarios", "doctor", "clean", "bench"]
)
def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str], command: str) -> None:
    code, out, _ = call(capsys, command, "--help")
    assert code == 0
    assert f"fencepost {command}" in out


def test_scenarios_are_listed_for_people_and_for_programs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = call(capsys, "scenarios")
    assert code == 0
    assert "smoke" in out
    code, out, _ = call(capsys, "scenarios", "--json")
    assert "smoke" in {row["name"] for row in json.loads(out)}


def test_a_scenario_is_printed_as_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "scenarios", "last-replica")
    assert code == 0
    assert out.startswith("name: last-replica\n")


def test_the_doctor_looks_at_everything_a_run_needs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    _, out, _ = call(capsys, "doctor", "--json", "--results", str(tmp_path / "none yet"))
    looked_at = {finding["what"] for finding in json.loads(out)}
    assert {"Java", "memory", "disk for results", "disk for cache", "Kafka", "links"} <= looked_at


def test_the_doctor_says_of_every_fault_what_it_takes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    _, out, _ = call(capsys, "doctor", "--json", "--results", str(tmp_path))
    findings = json.loads(out)
    assert sorted(fault for one in findings for fault in one["faults"]) == sorted(EPISODES)
    for one in findings:
        assert one["ok"] or one["way_out"], one
        assert "\n" not in one["found"] + one["way_out"], one
    (netem,) = [one for one in findings if one["what"] == "netem"]
    assert "the proxy delays" in netem["way_out"]


def test_nothing_is_cleaned_where_nothing_was_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Other runs of this machine, and tests that kill one, are nobody's to clean here.
    monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("fencepost.harness.doctor.clean.orphans", tuple)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code, out, _ = call(capsys, "clean", "--json", "--results", str(tmp_path))
    assert code == 0
    assert json.loads(out) == []
