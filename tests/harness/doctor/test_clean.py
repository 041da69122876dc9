"""What a killed harness left behind is closed."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from harness.doctor.clean import clean_machine
from history.manifest import Manifest, Promises, RunState, read_manifest, write_manifest
from history.run_directory import RunDirectory


def manifest(**changes: object) -> Manifest:
    made = Manifest(
        run_id="s/1",
        state=RunState.RUNNING,
        scenario="s",
        title="s",
        seed=1,
        started_at="2026-01-01T00:00:00+00:00",
        origin_ns=0,
        command="fencepost run s",
        fencepost_version="1",
        promises=Promises(idempotent=True, acks="all", consume="assign"),
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # by name


def dead_pid() -> int:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def test_a_run_whose_harness_is_dead_is_closed_and_a_living_one_is_left(tmp_path: Path) -> None:
    for name, pid in (("20260101T000000Z", dead_pid()), ("20260101T000001Z", os.getpid())):
        run = RunDirectory(tmp_path / "s" / name)
        run.root.mkdir(parents=True)
        write_manifest(run.manifest_path, manifest(harness_pid=pid))
    (line,) = clean_machine(tmp_path)
    assert "20260101T000000Z as failed: the harness died while it recorded" in line
    states = [read_manifest(p).state for p in sorted(tmp_path.glob("s/2*/manifest.json"))]
    assert states == [RunState.FAILED, RunState.RUNNING]
    assert clean_machine(tmp_path) == []
