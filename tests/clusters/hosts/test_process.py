"""What /proc says, and which processes are ours to end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from manifests import mark_of_a_reused_pid

from fencepost.clusters.hosts.process import (
    HARNESS_VARIABLE,
    RUN_VARIABLE,
    Orphan,
    await_state,
    end_orphans,
    harness_lives,
    harness_mark,
    orphans,
    process_state,
    process_usage,
)
from fencepost.clusters.port import NodeState

THREADS = """
import threading, time
for _ in range(8):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
print("ready", flush=True)
time.sleep(600)
"""


@contextmanager
def process(*argv: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        argv, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True
    ) as started:
        try:
            yield started
        finally:
            started.kill()


def await_cpu(pid: int, *, more_than_s: float) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        usage = process_usage(pid)
        if usage is not None and usage.cpu_s > more_than_s:
            return True
    return False


def dead_harness_mark() -> str:
    """The mark of a harness that has ended."""
    program = "from fencepost.clusters.hosts.process import harness_mark; print(harness_mark())"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


def test_a_process_is_paused_once_all_its_threads_are_and_runs_again_after() -> None:
    with process(sys.executable, "-c", THREADS) as started:
        assert started.stdout is not None
        started.stdout.readline()
        assert process_state(started.pid) is NodeState.RUNNING
        started.send_signal(signal.SIGSTOP)
        assert await_state(started.pid, NodeState.PAUSED, timeout_s=60)
        started.send_signal(signal.SIGCONT)
        assert await_state(started.pid, NodeState.RUNNING, timeout_s=60)


def test_a_zombie_and_a_missing_process_are_down() -> None:
    with process("true") as started:
        os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOWAIT)
        assert process_state(started.pid) is NodeState.DOWN
    assert process_state(started.pid) is NodeState.DOWN


def test_usage_grows_with_what_a_process_does_and_ends_with_it() -> None:
    program = "x = bytearray(50_000_000); print('ready', flush=True)\nwhile True: pass"
    with process(sys.executable, "-c", program) as started:
        assert started.stdout is not None
        started.stdout.readline()
        first = process_usage(started.pid)
        assert first is not None
        assert 50_000_000 < first.rss_bytes < 500_000_000
        assert await_cpu(started.pid, more_than_s=first.cpu_s)
        started.kill()
        started.wait()
        assert process_usage(started.pid) is None


def test_awaiting_a_state_that_never_comes_ends_at_the_bound() -> None:
    assert not await_state(os.getpid(), NodeState.PAUSED, timeout_s=0.01)


@pytest.mark.alone  # tests beside it that clean up the machine would end its process
def test_a_process_whose_harness_is_gone_is_found_and_ended_even_paused() -> None:
    marks = {RUN_VARIABLE: "lost-run", HARNESS_VARIABLE: dead_harness_mark()}
    with process("sleep", "600", **marks) as started:
        started.send_signal(signal.SIGSTOP)
        [orphan] = [orphan for orphan in orphans() if orphan.pid == started.pid]
        assert (orphan.run_id, orphan.command) == ("lost-run", "sleep 600")
        end_orphans([orphan])
        assert process_state(started.pid) is NodeState.DOWN


def test_a_process_is_known_even_in_the_middle_of_its_exec() -> None:
    marks = {RUN_VARIABLE: "lost-run", HARNESS_VARIABLE: dead_harness_mark()}
    for _ in range(100):  # looked at once only, one in four had no environment yet
        with process("sleep", "600", **marks) as started:
            orphan = Orphan(pid=started.pid, run_id="lost-run", command="sleep 600")
            end_orphans([orphan])
            assert process_state(started.pid) is NodeState.DOWN


def test_a_process_without_any_environment_is_nobodys_orphan() -> None:
    with process("env", "-i", "sleep", "600") as started:
        assert started.pid not in {orphan.pid for orphan in orphans()}


@pytest.mark.parametrize(
    "mark",
    [
        harness_mark(),
        f"{dead_harness_mark().rsplit(':', 1)[0]}:[1]",
        "no mark of ours",
    ],
    ids=["its harness lives", "of another pid namespace", "not a mark"],
)
def test_a_process_that_may_not_be_ours_to_end_is_left_alone(mark: str) -> None:
    marks = {RUN_VARIABLE: "some-run", HARNESS_VARIABLE: mark}
    with process("sleep", "600", **marks) as started:
        assert started.pid not in {orphan.pid for orphan in orphans()}


def test_a_harness_whose_pid_was_given_to_another_process_counts_as_gone() -> None:
    marks = {RUN_VARIABLE: "lost-run", HARNESS_VARIABLE: mark_of_a_reused_pid()}
    with process("sleep", "600", **marks) as started:
        assert started.pid in {orphan.pid for orphan in orphans()}


def test_a_harness_of_before_the_machines_last_start_is_gone_whatever_has_its_pid() -> None:
    pid, started, namespace = harness_mark().split(":", 2)
    ticks, _, _ = started.partition("@")
    assert harness_lives(f"{pid}:{started}:{namespace}")
    assert harness_lives(f"{pid}:{ticks}:{namespace}"), "an older release named no boot"
    for elsewhere in (namespace, "pid:[1]"):
        assert not harness_lives(f"{pid}:{ticks}@another-boot:{elsewhere}")
