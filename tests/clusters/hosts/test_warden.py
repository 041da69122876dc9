"""The warden kept to its word: nothing outlives the harness, and nobody else is ever hit."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fencepost.clusters.hosts.process import await_state, process_state
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.port import NodeState
from fencepost.history.failure import HarnessError

pytestmark = pytest.mark.slow

Until = Callable[..., bool]

IGNORES_SIGTERM = "trap '' TERM; echo ready; while :; do sleep 0.05; done"

HARNESS = """
import signal, sys, time
from pathlib import Path
from fencepost.clusters.hosts.warden import Warden

warden = Warden(run_id="proof")
log = Path(sys.argv[1])
obeys = warden.spawn(["sleep", "600"], name="obeys", log=log)
ignores = warden.spawn(["sh", "-c", sys.argv[2]], name="ignores", log=log)
paused = warden.spawn(["sleep", "600"], name="paused", log=log)
warden.signal(paused, signal.SIGSTOP)
while "ready" not in log.read_text():
    time.sleep(0.001)
print(warden.pid, obeys, ignores, paused, flush=True)
time.sleep(600)
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "child.log"


def gone(pid: int) -> bool:
    return process_state(pid) is NodeState.DOWN


@pytest.fixture
def harness(log: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A harness of its own with three children, one of them paused, one deaf to SIGTERM."""
    command = [sys.executable, "-c", HARNESS, str(log), IGNORES_SIGTERM]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        assert len(pids) == 4
        assert await_state(pids[3], NodeState.PAUSED, timeout_s=60)
        try:
            yield process, pids
        finally:
            process.kill()


def test_nothing_outlives_a_harness_that_is_killed(
    harness: tuple[subprocess.Popen[str], list[int]], until: Until
) -> None:
    process, pids = harness
    process.kill()
    process.wait()
    assert until(lambda: all(map(gone, pids)))


def test_nothing_outlives_a_warden_that_is_killed(
    harness: tuple[subprocess.Popen[str], list[int]], until: Until
) -> None:
    _, pids = harness
    os.kill(pids[0], signal.SIGKILL)
    assert until(lambda: all(map(gone, pids)))


def test_nothing_outlives_harness_and_warden_killed_together(
    harness: tuple[subprocess.Popen[str], list[int]], until: Until
) -> None:
    process, pids = harness
    os.kill(pids[0], signal.SIGSTOP)
    process.kill()
    os.kill(pids[0], signal.SIGKILL)
    assert until(lambda: all(map(gone, pids)))


def test_a_forked_copy_of_the_harness_does_not_keep_its_children_alive(
    log: Path, until: Until
) -> None:
    program = HARNESS.replace("print(", "import os\nif os.fork() == 0: time.sleep(600)\nprint(")
    command = [sys.executable, "-W", "ignore", "-c", program, str(log), IGNORES_SIGTERM]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        process.kill()
        process.wait()
        try:
            assert until(lambda: all(map(gone, pids)))
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_children_live_on_when_the_thread_that_started_them_has_ended(log: Path) -> None:
    started: list[tuple[Warden, int]] = []

    def start() -> None:
        warden = Warden(run_id="thread")
        started.append((warden, warden.spawn(["sleep", "600"], name="child", log=log)))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    [(warden, pid)] = started
    with warden:
        assert warden.wait(pid, timeout_s=0.3) is None
        assert process_state(pid) is NodeState.RUNNING


def test_closing_kills_every_child_and_what_it_started(
    warden: Warden, log: Path, until: Until
) -> None:
    argv = ["sh", "-c", "sleep 600 & echo $!; wait"]
    pid = warden.spawn(argv, name="family", log=log)
    assert until(lambda: log.read_text().endswith("\n"))
    grandchild = int(log.read_text())
    warden.close()
    warden.close()
    assert gone(pid)
    assert until(lambda: gone(grandchild))


def test_what_a_child_leaves_behind_ends_with_it(warden: Warden, log: Path, until: Until) -> None:
    pid = warden.spawn(["sh", "-c", "sleep 600 & echo $!"], name="child", log=log)
    assert warden.wait(pid, timeout_s=60) == 0
    assert until(lambda: gone(int(log.read_text())))


def test_exit_codes_tell_an_exit_from_a_signal(warden: Warden, log: Path) -> None:
    exits = warden.spawn(["sh", "-c", "exit 7"], name="exits", log=log)
    killed = warden.spawn(["sleep", "600"], name="killed", log=log)
    assert warden.wait(exits, timeout_s=60) == 7
    assert warden.exit_code(killed) is None
    assert warden.signal(killed, signal.SIGKILL)
    assert warden.wait(killed, timeout_s=60) == -signal.SIGKILL
    assert warden.exit_code(killed) == -signal.SIGKILL


def test_a_signal_reaches_what_a_child_has_started_where_that_is_asked_for(
    warden: Warden, log: Path, until: Until
) -> None:
    pid = warden.spawn(["sh", "-c", "sleep 600 & echo $!; wait"], name="parent", log=log)
    assert until(lambda: log.read_text().strip() != "")
    grandchild = int(log.read_text())
    warden.signal(pid, signal.SIGSTOP)
    assert await_state(pid, NodeState.PAUSED, timeout_s=60)
    assert process_state(grandchild) is NodeState.RUNNING
    warden.signal(pid, signal.SIGSTOP, group=True)
    assert await_state(grandchild, NodeState.PAUSED, timeout_s=60)
    warden.signal(pid, signal.SIGCONT, group=True)
    assert await_state(grandchild, NodeState.RUNNING, timeout_s=60)


def test_waiting_for_a_child_that_lives_ends_at_the_bound(warden: Warden, log: Path) -> None:
    pid = warden.spawn(["sleep", "600"], name="child", log=log)
    assert warden.wait(pid, timeout_s=0.05) is None


def test_an_exited_child_is_not_signalled(warden: Warden, log: Path) -> None:
    pid = warden.spawn(["true"], name="child", log=log)
    assert warden.wait(pid, timeout_s=60) == 0
    assert not warden.signal(pid, signal.SIGKILL)


def test_a_process_that_got_the_pid_of_an_exited_child_is_not_signalled(
    warden: Warden, log: Path
) -> None:
    last_pid = Path("/proc/sys/kernel/ns_last_pid")
    if not os.access(last_pid, os.W_OK):
        pytest.skip("only root may choose the next pid")
    for _ in range(200):
        pid = warden.spawn(["true"], name="child", log=log)
        assert warden.wait(pid, timeout_s=60) == 0
        last_pid.write_text(str(pid - 1))
        with subprocess.Popen(["sleep", "600"]) as bystander:
            try:
                if bystander.pid == pid:
                    assert not warden.signal(pid, signal.SIGKILL)
                    assert process_state(pid) is NodeState.RUNNING
                    return
            finally:
                bystander.kill()
    pytest.skip("somebody else was always quicker to take the pid")


def test_many_children_from_many_threads_are_all_started_and_reaped(
    warden: Warden, tmp_path: Path
) -> None:
    codes: dict[int, int | None] = {}

    def start(code: int) -> None:
        log = tmp_path / f"{code}.log"
        for _ in range(5):
            pid = warden.spawn(["sh", "-c", f"exit {code}"], name="child", log=log)
            codes[code] = warden.wait(pid, timeout_s=20)

    threads = [threading.Thread(target=start, args=(code,)) for code in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == {code: code for code in range(20)}


def test_arguments_of_any_size_and_content_arrive_whole(warden: Warden, log: Path) -> None:
    arguments = ["x" * 100_000] * 10 + ["", "a b", "'\"\\\n", "ä\udcff"]
    program = "import sys; print(ascii(sys.argv[1:]))"
    pid = warden.spawn([sys.executable, "-c", program, *arguments], name="huge", log=log)
    assert warden.wait(pid, timeout_s=10) == 0
    assert log.read_text() == ascii(arguments) + "\n"


@pytest.mark.parametrize(
    ("argv", "cwd", "reason"),
    [
        (["/nowhere/java"], None, "cannot run /nowhere/java: No such file or directory"),
        (["no-such-program"], None, "cannot run no-such-program: No such file or directory"),
        (["true"], Path("/nowhere"), "cannot enter /nowhere: No such file or directory"),
        (["true", "x" * 10_000_000], None, "cannot run true: Argument list too long"),
    ],
)
def test_a_child_that_cannot_be_started_is_one_clear_error(
    warden: Warden, log: Path, argv: list[str], cwd: Path | None, reason: str
) -> None:
    with pytest.raises(HarnessError) as raised:
        warden.spawn(argv, name="broker-1", log=log, cwd=cwd)
    assert str(raised.value) == f"broker-1 was not started: {reason}"


def test_a_log_that_cannot_be_written_is_one_clear_error(warden: Warden, tmp_path: Path) -> None:
    log = tmp_path / "missing" / "server.log"
    with pytest.raises(HarnessError, match=f"cannot open the log {log}: No such file"):
        warden.spawn(["true"], name="broker-1", log=log)


def test_logs_are_appended_and_hold_both_streams(warden: Warden, log: Path) -> None:
    for text in ("first", "second"):
        argv = ["sh", "-c", f"echo {text}; echo {text} >&2"]
        pid = warden.spawn(argv, name="child", log=log)
        warden.wait(pid, timeout_s=60)
    assert log.read_text() == "first\nfirst\nsecond\nsecond\n"


def test_a_child_gets_its_environment_directory_and_a_session_of_its_own(
    warden: Warden, log: Path, tmp_path: Path
) -> None:
    argv = ["sh", "-c", 'echo "$FENCEPOST_RUN $ADDED $HOME"; pwd; ps -o sid= -p $$; cat']
    pid = warden.spawn(argv, name="child", log=log, cwd=tmp_path, env={"ADDED": "this"})
    assert warden.wait(pid, timeout_s=60) == 0
    said = log.read_text().split()
    assert said == ["test", "this", os.environ["HOME"], str(tmp_path), str(pid)]


def test_a_dead_warden_is_named_by_every_call(log: Path, until: Until) -> None:
    with Warden(run_id="test") as warden:
        pid = warden.spawn(["sleep", "600"], name="child", log=log)
        os.kill(warden.pid, signal.SIGKILL)
        message = "was killed by signal 9; every process of the run is gone with it"
        with pytest.raises(HarnessError, match=message):
            warden.wait(pid, timeout_s=10)
        with pytest.raises(HarnessError, match=message):
            warden.spawn(["true"], name="child", log=log)
        with pytest.raises(HarnessError, match=message):
            warden.signal(pid, signal.SIGKILL)
    assert until(lambda: gone(pid))


def test_a_closed_warden_says_so(warden: Warden, log: Path) -> None:
    warden.close()
    with pytest.raises(HarnessError, match="the warden is closed"):
        warden.spawn(["true"], name="child", log=log)
