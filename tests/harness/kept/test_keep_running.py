"""`--keep-running`: which run's cluster is kept when all runs are over, and where it cannot be."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Fencepost

from fencepost.harness.kept.kept_cluster import kept_of
from fencepost.history.run_directory import RunDirectory

MAIN = Path(__file__).parents[1] / "cli/night_main.py"
ROOT = Path(__file__).parents[3]


def night(place: Path, text: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """Make a night whose runs are answered by `answers.json` and `runs.json`."""
    (place / "few.yaml").write_text(text)
    return subprocess.run(
        [sys.executable, str(MAIN), "night", "few.yaml", *words],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_a_night_keeps_the_cluster_of_its_first_proof_when_it_has_ended(
    run: RunDirectory, tmp_path: Path
) -> None:
    """Not that of a known bug, nor one that cannot be started; and every run is made before."""
    results = run.root.parent.parent
    known = results / "kip-903/20260101T000000Z"
    shutil.copytree(run.nodes, known / "nodes", ignore=shutil.ignore_patterns("disk"))
    simulated = results / "smoke/20260101T000000Z"
    simulated.mkdir()
    found = {"1": known, "2": simulated, "3": run.root}
    (tmp_path / "runs.json").write_text(json.dumps({n: str(path) for n, path in found.items()}))
    answers = {"1": "invalid lost-write", "2": "invalid", "3": "invalid"}
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    entries = "[{scenario: smoke, cluster: [simulated, reference], runs: 2}]"
    ended = night(
        tmp_path,
        f"name: few\nentries: {entries}\n",
        *("--keep-running", "10m", "--results", str(results)),
    )
    try:
        assert ended.returncode == 1, ended.stderr
        assert "not the clusters of few.yaml:2" in ended.stderr
        assert len((tmp_path / "calls.txt").read_text().splitlines()) == 4
        assert kept_of(run) is not None, ended.stderr
        assert ended.stdout.endswith(f"end it: fencepost stop {run.root}\n")
    finally:
        shutil.rmtree(known)
        shutil.rmtree(simulated)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ("--cluster", "simulated"),
            "the nodes of --cluster simulated are not processes; they are with --cluster kafka",
        ),
        (
            ("--cluster", "reference", "--host", "ssh", "--inventory", "machines.yaml"),
            "the nodes of --host ssh end with their run; those of --host local can stay",
        ),
    ],
    ids=["virtual time", "machines"],
)
def test_where_it_cannot_be_it_is_refused_before_anything_starts(
    fencepost: Fencepost,
    tmp_path: Path,
    flags: tuple[str, ...],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("machines.yaml").write_text("machines:\n  - {host: one.example, user: me}\n")
    results = tmp_path / "results"
    ended = fencepost("run", "smoke", "--keep-running", *flags, results=results)
    assert ended.returncode == 254
    assert ended.stderr.splitlines()[-1].startswith(f"fencepost: --keep-running: smoke: {words}")
    assert not results.exists()


def test_a_night_of_which_nothing_can_be_kept_is_refused(tmp_path: Path) -> None:
    entries = "[{scenario: [smoke, storm], cluster: simulated, runs: 1}]"
    text = f"name: few\nentries: {entries}\n"
    ended = night(tmp_path, text, "--keep-running", "1h", "--results", "results")
    assert ended.returncode == 254
    (line,) = ended.stderr.splitlines()
    assert line.startswith("fencepost: few.yaml:2: --keep-running: the nodes of")
    assert not (tmp_path / "results").exists()
