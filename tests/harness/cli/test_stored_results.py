"""`fencepost results`: listed, removed, thinned and pinned as the user says, and no others."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from commands import Ended, Fencepost
from manifests import MANIFEST, mark_of_a_reused_pid

from fencepost.clusters.hosts.process import harness_mark
from fencepost.history.manifest import RunState, read_manifest, write_manifest
from fencepost.history.run_directory import RunDirectory

NOW = datetime.now(UTC)
Make = Callable[..., RunDirectory]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(
        scenario: str, *, hours: int, verdict: str = "valid", release: str = "4.3.1"
    ) -> RunDirectory:
        at = NOW - timedelta(hours=hours)
        run = RunDirectory.create(tmp_path, scenario, at)
        state = {"failed": RunState.FAILED, "running": RunState.RUNNING}.get(
            verdict, RunState.CHECKED
        )
        manifest = replace(
            MANIFEST,
            scenario=scenario,
            state=state,
            started_at=at.isoformat(),
            versions={"kafka": release},
            harness=harness_mark(),
        )
        write_manifest(run.manifest_path, manifest)
        run.verdict_path.write_text(json.dumps({"validity": verdict}))
        run.report_path.write_text("page")
        run.history.mkdir()
        (run.history / "faults.parquet").write_bytes(b"x" * 50_000)
        return run

    return made


@pytest.fixture
def five(make: Make) -> list[RunDirectory]:
    return [
        make("smoke", hours=50),
        make("smoke", hours=40, verdict="invalid"),
        make("smoke", hours=30, release="3.9.2"),
        make("storm", hours=20, verdict="failed"),
        make("storm", hours=10, verdict="running"),
    ]


def listed(ended: Ended) -> list[str]:
    assert ended.returncode == 0, ended.stderr
    return [Path(one["run"]).name for one in json.loads(ended.stdout)]


@pytest.mark.parametrize(
    ("words", "places"),
    [
        ("", [0, 1, 2, 3, 4]),
        ("--scenario smoke", [0, 1, 2]),
        ("--verdict invalid", [1]),
        ("--release 3.9", [2]),
        ("--older 35h", [0, 1]),
        ("--scenario smoke --keep-last 1", [0, 1]),
        ("--keep-last 1", [0, 1, 3]),
        ("--scenario smoke --older 35h --verdict valid", [0]),
    ],
)
def test_runs_are_listed_by_what_they_are(
    fencepost: Fencepost, tmp_path: Path, five: list[RunDirectory], words: str, places: list[int]
) -> None:
    ended = fencepost("results", "--json", *words.split(), results=tmp_path)
    assert listed(ended) == [five[place].root.name for place in places]


def test_sizes_are_told(fencepost: Fencepost, tmp_path: Path, five: list[RunDirectory]) -> None:
    ended = fencepost("results", results=tmp_path)
    assert "5 runs, " in ended.stdout.splitlines()[-1]
    (first, *_) = json.loads(fencepost("results", "--json", results=tmp_path).stdout)
    assert first["bytes"] >= 50_000
    assert len(five) == 5


def test_what_is_pinned_or_under_way_is_never_removed(
    fencepost: Fencepost, tmp_path: Path, five: list[RunDirectory]
) -> None:
    name = f"smoke/{five[0].root.name}"
    assert listed(fencepost("results", name, "--pin", "--json", results=tmp_path)) == [
        five[0].root.name
    ]
    said = fencepost("results", "--older", "1h", "--remove", "--dry-run", results=tmp_path)
    assert "3 runs" in said.stdout.splitlines()[-1]
    assert all(run.root.exists() for run in five)
    fencepost("results", "--older", "1h", "--remove", results=tmp_path)
    assert [run.root.exists() for run in five] == [True, False, False, False, True]
    assert (tmp_path / "smoke/latest").resolve() == five[0].root
    fencepost("results", name, "--unpin", results=tmp_path)
    fencepost("results", "--older", "1h", "--remove", results=tmp_path)
    assert [run.root.exists() for run in five] == [False, False, False, False, True]


def test_a_run_whose_process_is_gone_is_not_running_whoever_has_its_pid_now(
    fencepost: Fencepost, tmp_path: Path, make: Make
) -> None:
    run = make("storm", hours=1, verdict="running")
    run.verdict_path.unlink()
    manifest = read_manifest(run.manifest_path)
    pid, namespace = os.getpid(), harness_mark().split(":", 2)[2]
    for harness in (None, "no mark", f"{'9' * 300}:1:{namespace}", mark_of_a_reused_pid()):
        write_manifest(run.manifest_path, replace(manifest, harness=harness, harness_pid=pid))
        (told,) = json.loads(fencepost("results", "--json", results=tmp_path).stdout)
        assert told["verdict"] == "not checked"
    assert listed(fencepost("results", "storm", "--remove", "--json", results=tmp_path))
    assert not run.root.exists()


@pytest.mark.parametrize("action", ["--remove", "--thin", "--pin"])
def test_nothing_is_done_to_all_runs_unasked(
    fencepost: Fencepost, tmp_path: Path, five: list[RunDirectory], action: str
) -> None:
    ended = fencepost("results", action, results=tmp_path)
    assert ended.returncode == 254
    assert "say which runs" in ended.stderr
    assert all(run.root.exists() for run in five)


def test_a_thinned_run_keeps_what_was_found_and_says_that_no_more_can_be(
    fencepost: Fencepost, tmp_path: Path, five: list[RunDirectory]
) -> None:
    fencepost("results", "--verdict", "valid", "--thin", results=tmp_path)
    for run, thinned in zip(five, (True, False, True, False, False), strict=True):
        assert run.history.exists() is not thinned
        assert run.report_path.read_text() == "page"
    for command in ("check", "report"):
        ended = fencepost(command, str(five[0].root), results=tmp_path)
        assert ended.returncode == 254
        assert "was thinned" in ended.stderr
        assert "no check can be made again" in ended.stderr
    assert five[0].report_path.read_text() == "page"
    assert not listed(
        fencepost(*("results", "--json", "--verdict", "failed", "--thin"), results=tmp_path)
    )
