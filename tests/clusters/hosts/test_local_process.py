"""Each thing done to a process is seen on the host before the call returns."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fencepost.clusters.hosts.command import run_command
from fencepost.clusters.hosts.local import LocalProcess
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.port import NodeState
from fencepost.history.failure import HarnessError

SLEEP = ["sleep", "600"]
DEAF = ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"]


@pytest.fixture
def process(warden: Warden, tmp_path: Path) -> LocalProcess:
    return LocalProcess("broker-1", warden=warden, directory=tmp_path, log=tmp_path / "server.log")


def test_a_process_never_started_is_down(process: LocalProcess) -> None:
    assert process.state() is NodeState.DOWN
    assert process.pid is None
    assert process.exit_code is None
    assert process.stop(timeout_s=60)
    process.kill()


def test_it_is_running_after_a_start_and_down_after_a_kill(process: LocalProcess) -> None:
    process.start(SLEEP)
    assert process.state() is NodeState.RUNNING
    process.kill()
    assert process.state() is NodeState.DOWN
    assert process.exit_code == -9
    process.kill()


def test_it_is_paused_and_runs_again(process: LocalProcess) -> None:
    process.start(SLEEP)
    process.pause()
    process.pause()
    assert process.state() is NodeState.PAUSED
    process.resume()
    assert process.state() is NodeState.RUNNING


def test_a_paused_process_can_be_killed(process: LocalProcess) -> None:
    process.start(SLEEP)
    process.pause()
    process.kill()
    assert process.state() is NodeState.DOWN


def test_it_can_be_started_again_once_it_is_down_and_not_before(process: LocalProcess) -> None:
    process.start(SLEEP)
    first = process.pid
    with pytest.raises(
        HarnessError, match=r"broker-1 is running \(pid \d+\): it cannot be started"
    ):
        process.start(SLEEP)
    process.kill()
    process.start(SLEEP)
    assert process.pid != first
    assert process.state() is NodeState.RUNNING


def test_a_stop_tells_who_went_by_itself_from_who_had_to_be_killed(
    process: LocalProcess, tmp_path: Path, until: Callable[..., bool]
) -> None:
    process.start(SLEEP)
    assert process.stop(timeout_s=10)
    process.start(DEAF)
    assert until(lambda: "ready" in (tmp_path / "server.log").read_text())
    assert not process.stop(timeout_s=0.1)
    assert process.state() is NodeState.DOWN


def test_a_process_that_is_down_cannot_be_paused(process: LocalProcess) -> None:
    process.start(["true"])
    assert process.stop(timeout_s=10)
    with pytest.raises(HarnessError, match="broker-1 is down: it cannot become paused"):
        process.pause()


def test_a_command_says_how_it_ended_and_what_it_said(warden: Warden, tmp_path: Path) -> None:
    argv = ["sh", "-c", "echo said; echo complained >&2; exit 3"]
    done = run_command(argv, warden=warden, name="tool", directory=tmp_path, timeout_s=10)
    assert (done.exit_code, done.output) == (3, "said\ncomplained\n")


def test_a_command_that_does_not_end_is_killed_at_the_bound(warden: Warden, tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="tool had not ended after 0 s and was killed"):
        run_command(SLEEP, warden=warden, name="tool", directory=tmp_path, timeout_s=0.1)
