"""The first SIGINT ends the faults of a run, the next one the run."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fencepost.harness.run.ending import (
    EarlyEnd,
    InterruptedRunError,
    ended_by_a_signal,
    interruptible,
)
from fencepost.history.manifest import RunState, read_manifest
from fencepost.history.run_directory import RunDirectory


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_is_heard_at_the_next_check_and_the_second_at_once() -> None:
    heard: list[str] = []
    with interruptible(), ended_by_a_signal(heard.append) as check:
        check()
        interrupt()
        assert len(heard) == 1
        with pytest.raises(EarlyEnd):
            check()
        check()  # once: whatever heals next is not disturbed
        with pytest.raises(InterruptedRunError, match="SIGINT"):
            interrupt()


def test_sigterm_ends_the_run_at_once() -> None:
    heard: list[str] = []
    with (
        interruptible(),
        ended_by_a_signal(heard.append),
        pytest.raises(InterruptedRunError, match="SIGTERM"),
    ):
        os.kill(os.getpid(), signal.SIGTERM)
    assert heard == []


def test_handlers_are_what_they_were_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    with ended_by_a_signal(print):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_another_thread_leaves_signals_alone() -> None:
    found: list[object] = []

    def record() -> None:
        with ended_by_a_signal(print) as check:
            found.append(signal.getsignal(signal.SIGINT))
            check()

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=record)
    thread.start()
    thread.join(timeout=10)
    assert found == [before]


@pytest.mark.spark
@pytest.mark.slow
def test_a_run_that_is_interrupted_is_judged_as_far_as_it_came(tmp_path: Path) -> None:
    words = ("run", "storm", "--cluster", "simulated", "--time-limit", "4h", "--alongside")
    run = subprocess.Popen(
        [sys.executable, "-m", "fencepost", *words, "--results", str(tmp_path)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stderr is not None
    for line in run.stderr:
        if "of 14400 s" in line:
            run.send_signal(signal.SIGINT)
            break
    said, _ = run.communicate(timeout=300)
    assert run.returncode == 2, said
    assert "as-planned: the user ended the run after" in said
    [found] = (tmp_path / "storm").glob("2*")
    manifest = read_manifest(RunDirectory(found).manifest_path)
    assert (manifest.ended_early, manifest.failure) == (True, None)
    assert manifest.healed_ns is not None


def test_a_run_whose_judgement_is_broken_off_was_recorded_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.testing import CliRunner  # noqa: PLC0415

    from fencepost.harness.cli.main import cli  # noqa: PLC0415

    def broken_off(*_: object, **__: object) -> None:
        raise InterruptedRunError("interrupted by SIGINT")

    monkeypatch.setattr("fencepost.harness.run.run.judge", broken_off)
    words = ["run", "smoke", "--cluster", "simulated", "--nemesis", "none", "--time-limit", "2s"]
    found = CliRunner().invoke(cli, [*words, "--alongside", "--results", str(tmp_path)])
    assert found.exit_code != 0
    [run] = map(RunDirectory, (tmp_path / "smoke").glob("2*"))
    manifest = read_manifest(run.manifest_path)
    assert (manifest.state, manifest.failure) == (RunState.RECORDED, None)
    assert "has not been checked" in run.junit_path.read_text(encoding="utf-8")


@pytest.mark.parametrize("master", ["spork://x", "local[0]", "spark://nowhere"])
def test_a_wrong_spark_master_is_refused_before_anything_starts(
    tmp_path: Path, master: str
) -> None:
    from click.testing import CliRunner  # noqa: PLC0415

    from fencepost.harness.cli.main import cli  # noqa: PLC0415

    words = ["run", "smoke", "--cluster", "simulated", "--spark-master", master]
    found = CliRunner().invoke(cli, [*words, "--results", str(tmp_path)])
    assert found.exit_code == 2
    assert "not a Spark master" in found.output
    assert not list(tmp_path.iterdir())
