"""What a killed harness left behind is closed."""

import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from manifests import MANIFEST, mark_of_a_reused_pid

from fencepost.clusters.hosts.process import harness_mark
from fencepost.harness.doctor.clean import clean_machine
from fencepost.history.manifest import Manifest, RunState, read_manifest, write_manifest
from fencepost.history.run_directory import RunDirectory


def manifest(**changes: object) -> Manifest:
    made = replace(MANIFEST, state=RunState.RUNNING)
    return replace(made, **changes)  # type: ignore[arg-type]  # by name


def dead_pid() -> int:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


@pytest.fixture(autouse=True)
def scratch(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory for temporary files, of these tests alone."""
    directory = tmp_path_factory.mktemp("scratch")
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    monkeypatch.setenv("FENCEPOST_CACHE", str(directory / "cache"))
    return directory


def test_files_of_a_process_that_is_gone_are_removed_and_no_others(
    tmp_path: Path, scratch: Path
) -> None:
    gone, alive = dead_pid(), os.getpid()
    left = scratch / f"fencepost-wire-{gone}-abcdef_1"
    left.mkdir()
    (left / "socket").touch()
    log = scratch / f"fencepost-spark-{gone}-abcdef_2.log"
    log.touch()
    kept = [
        scratch / f"fencepost-wire-{alive}-abcdef_3",
        scratch / f"fencepost-spark-0-{gone}.log",
        scratch / "other",
    ]
    for path in kept:
        path.touch()
    link = scratch / f"fencepost-spark-{gone}-abcdef_4.log"
    link.symlink_to(kept[2])
    lines = clean_machine(tmp_path)
    assert lines == [f"removed {path}, of a process that is gone" for path in (log, left)]
    assert sorted(scratch.iterdir()) == sorted([*kept, link])


def test_a_run_whose_harness_is_dead_is_closed_and_a_living_one_is_left(tmp_path: Path) -> None:
    marks = (mark_of_a_reused_pid(), harness_mark())
    for name, mark in zip(("20260101T000000Z", "20260101T000001Z"), marks, strict=True):
        run = RunDirectory(tmp_path / "s" / name)
        run.root.mkdir(parents=True)
        write_manifest(run.manifest_path, manifest(harness=mark, harness_pid=os.getpid()))
    (line,) = clean_machine(tmp_path)
    assert "20260101T000000Z as failed: the harness died while it recorded" in line
    states = [read_manifest(p).state for p in sorted(tmp_path.glob("s/2*/manifest.json"))]
    assert states == [RunState.FAILED, RunState.RUNNING]
    assert clean_machine(tmp_path) == []
