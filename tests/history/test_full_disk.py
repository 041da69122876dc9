"""A full disk is an error that names the file, never a signal and never a torn file."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

PRELUDE = """
import sys
from pathlib import Path
import numpy as np
from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError
from fencepost.history.journal import SampleJournal
from fencepost.history.run_directory import RunDirectory
from fencepost.history.seal import seal
from fencepost.history.poll_recorder import PollRecorder
from fencepost.history.send_recorder import SendRecorder

disk = Path(sys.argv[1])

def refused(step):
    try:
        step()
    except HarnessError as error:
        print(error)
    else:
        raise SystemExit("nothing was refused")

def fill():
    with (disk / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1024))
        except OSError:
            pass
"""


def outcome(program: str, directory: Path, *, wrapper: list[str]) -> subprocess.CompletedProcess:
    source = PRELUDE + textwrap.dedent(program)
    return subprocess.run(
        [*wrapper, sys.executable, "-c", source, str(directory)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )


def on_a_disk_of_1_mb(program: str, directory: Path) -> str:
    """What the program prints, run in a mount namespace of its own, which leaves nothing behind."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("mounting a small disk needs root and unshare")
    mount = f'mount -t tmpfs -o size=1m tmpfs "{directory}" && exec "$@"'
    wrapper = ["unshare", "--mount", "sh", "-c", mount, "sh"]
    if subprocess.run([*wrapper, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("this machine forbids mounting")
    done = outcome(program, directory, wrapper=wrapper)
    assert done.returncode == 0, f"exit {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def test_a_first_segment_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    printed = on_a_disk_of_1_mb(
        """
        refused(lambda: SendRecorder(disk, client="p", process=1, keys=["t-0"]))
        assert list(disk.iterdir()) == [], list(disk.iterdir())
        """,
        tmp_path,
    )
    assert f"bytes for the segment {tmp_path}/p-000000.segment: No space left" in printed


def test_a_next_segment_that_does_not_fit_is_refused_and_nothing_recorded_is_lost(
    tmp_path: Path,
) -> None:
    printed = on_a_disk_of_1_mb(
        """
        run = RunDirectory(disk)
        run.raw.mkdir()
        sends = SendRecorder(run.raw, client="p", process=1, keys=["t-0"], slot_count=4096)
        refused(lambda: [sends.invoke(np.zeros(100, np.int32), time_ns=n) for n in range(1000)])
        polls = PollRecorder(
            run.raw, client="c", process=2, keys=["t-0"], slot_count=4, record_count=16
        )
        refused(lambda: [polls.invoke(time_ns=n) for n in range(100_000)])
        from fencepost.history.raw import read_raw
        consumer, producer = read_raw(run.raw).clients[::-1]
        assert sum(len(segment.slots()) for segment in producer.segments) == 3 * 4096
        """,
        tmp_path,
    )
    assert "p-000003.segment: No space left" in printed
    assert ".polled: No space left" in printed


def test_a_manifest_and_a_journal_that_do_not_fit_leave_what_was_there(tmp_path: Path) -> None:
    printed = on_a_disk_of_1_mb(
        """
        from fencepost.history.manifest import Manifest, Promises, RunState
        from fencepost.history.manifest import read_manifest, write_manifest
        manifest = Manifest(
            run_id="r", state=RunState.RUNNING, scenario="s", title="", seed=1, started_at="",
            origin_ns=1, command="", fencepost_version="0",
            promises=Promises(idempotent=True, acks="all", consume="assign"),
        )
        path = disk / "manifest.json"
        write_manifest(path, manifest)
        journal = SampleJournal(disk, Clock(0))
        journal.add("run", "first_count", 1)
        fill()
        refused(lambda: write_manifest(path, manifest))
        assert read_manifest(path) == manifest
        refused(lambda: [journal.add("run", "n" * 100, n) for n in range(1000)])
        from fencepost.history.journal import journal_lines
        assert next(iter(journal_lines(disk / "samples.jsonl")))["metric"] == "first_count"
        assert (disk / "samples.jsonl").read_bytes().endswith(b"\\n")
        """,
        tmp_path,
    )
    assert f"cannot write {tmp_path}/manifest.json: No space left" in printed
    assert f"cannot write to {tmp_path}/samples.jsonl: " in printed


def test_a_seal_that_does_not_fit_keeps_the_recording(tmp_path: Path) -> None:
    printed = on_a_disk_of_1_mb(
        """
        run = RunDirectory(disk)
        run.raw.mkdir()
        sends = SendRecorder(run.raw, client="p", process=1, keys=["t-0"], slot_count=12_000)
        sends.invoke(np.zeros(10_000, np.int32), time_ns=1)
        sends.close()
        refused(lambda: seal(run))
        assert [path.name for path in disk.iterdir()] == ["raw"], list(disk.iterdir())
        assert [path.name for path in run.raw.iterdir()] == ["p-000000.segment"]
        """,
        tmp_path,
    )
    assert f"cannot write the history of {tmp_path}" in printed


def test_a_limit_on_file_sizes_is_reported_like_a_full_disk(tmp_path: Path) -> None:
    done = outcome(
        """
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        refused(lambda: SendRecorder(disk, client="p", process=1, keys=["t-0"]))
        """,
        tmp_path,
        wrapper=[],
    )
    assert done.returncode == 0, done.stderr
    assert f"bytes for the segment {tmp_path}/p-000000.segment: File too large" in done.stdout
