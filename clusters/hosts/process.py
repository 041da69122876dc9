"""The host's view of processes: their state, and which of ours outlived their harness.

Every process of a run carries two marks in its environment: the run's id, and the harness's own
identity. A pid alone would not do, since pids are used again: the identity adds the start time, the
boot since which that counts, and the pid namespace in which all of it means something.

/proc is read by hand. psutil's start times are dates, which move when a fault sets the machine's
clock; here they are the kernel's ticks since boot. Its threads have no state; an object for each
takes 3.4 ms for 61 threads instead of 1.4, in a loop that waits for a pause. In the middle of an
exec it has no environment. What is left for it, the usage of a process, would be as many lines, and
its 19 modules would be imported by every refusal.
"""

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from fencepost.clusters.abilities import NodeUsage
from fencepost.clusters.port import NodeState
from fencepost.history.failure import HarnessError

RUN_VARIABLE: Final = "FENCEPOST_RUN"
"""The variable with the run's id in the environment of each process of a run."""
HARNESS_VARIABLE: Final = "FENCEPOST_HARNESS"
"""The variable with the harness that it belongs to, as `pid:start time@boot:pid
namespace`."""

_PROC: Final = Path("/proc")
_GONE: Final = frozenset("ZXx")
_STOPPED: Final = frozenset("Tt")
_POLL_S: Final = 0.001
_EXEC_TIMEOUT_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """A process of a run whose harness is gone."""

    pid: int
    run_id: str
    command: str


def process_state(pid: int) -> NodeState:
    """Return its state: paused only if *every* thread is stopped; down if gone or a zombie."""
    states = set(_thread_states(pid)) - _GONE
    if not states:
        return NodeState.DOWN
    return NodeState.PAUSED if states <= _STOPPED else NodeState.RUNNING


def process_usage(pid: int) -> NodeUsage | None:
    """Return what a process uses, all its threads together; None if it does not exist."""
    try:
        fields = _stat_fields(_PROC / str(pid))
        resident_pages = int((_PROC / str(pid) / "statm").read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None
    if fields[0] in _GONE:
        return None
    ticks = int(fields[11]) + int(fields[12])
    return NodeUsage(
        rss_bytes=resident_pages * os.sysconf("SC_PAGE_SIZE"),
        cpu_s=ticks / os.sysconf("SC_CLK_TCK"),
    )


def await_state(pid: int, wanted: NodeState, *, timeout_s: float) -> bool:
    """Wait until the host sees the process in this state. False if it does not within the bound."""
    deadline = time.monotonic() + timeout_s
    while process_state(pid) is not wanted:
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def harness_mark() -> str:
    """The identity of this process, for `HARNESS_VARIABLE`."""
    return f"{os.getpid()}:{_start_time(os.getpid())}@{_boot()}:{_pid_namespace()}"


def harness_lives(mark: str) -> bool:
    """Return whether the harness with this mark lives.

    In another pid namespace of the same boot, it is taken as alive. Marks of older releases name no
    boot. Raises ValueError for what is no mark.
    """
    pid, started, namespace = mark.split(":", 2)
    start_time, _, boot = started.partition("@")
    if boot not in ("", _boot()):
        return False
    return namespace != _pid_namespace() or _start_time(int(pid)) == start_time


def end_harness(mark: str, *, timeout_s: float) -> None:
    """Send SIGTERM to the harness with this mark, which lives; kill it after `timeout_s`.

    Returns when it is gone. Raises HarnessError if it is out of reach, or survives even that.
    """
    pid, _, namespace = mark.split(":", 2)
    if namespace != _pid_namespace():
        raise HarnessError(f"process {pid} is in another pid namespace, and out of reach from here")
    try:
        descriptor = os.pidfd_open(int(pid))
    except ProcessLookupError:
        return
    try:
        # Asked once the descriptor is there: from here on the number is this process's.
        if not harness_lives(mark) or _is_ended(descriptor, signal.SIGTERM, timeout_s=timeout_s):
            return
        if not _is_ended(descriptor, signal.SIGKILL, timeout_s=timeout_s):
            raise HarnessError(f"process {pid} is still there {timeout_s:.0f} s after SIGKILL")
    except PermissionError:
        raise HarnessError(f"process {pid} belongs to another user, who has to end it") from None
    finally:
        os.close(descriptor)


def orphans() -> tuple[Orphan, ...]:
    """Return processes of runs whose harness is gone, as far as this user may see, by pid."""
    return tuple(orphan for pid in sorted(_pids()) if (orphan := _orphan_of(pid)) is not None)


def end_orphans(found: Iterable[Orphan], *, timeout_s: float = 10.0) -> None:
    """Kill these orphans, and return when they are gone.

    Raises HarnessError naming the pids that are still there after `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    left = [orphan for orphan in found if not _end(orphan, deadline=deadline)]
    if left:
        pids = ", ".join(str(orphan.pid) for orphan in left)
        raise HarnessError(f"still there {timeout_s:.0f} s after SIGKILL: {pids}")


def _thread_states(pid: int) -> Iterator[str]:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in (_PROC / str(pid) / "task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                yield _stat_fields(thread)[0]


def _stat_fields(directory: Path) -> list[str]:
    """The fields of `stat` after the command, which is in brackets and may hold anything."""
    return (directory / "stat").read_text(errors="replace").rpartition(")")[2].split()


def _start_time(pid: int) -> str | None:
    """Return when the process started, in clock ticks since boot; None if gone (or a zombie)."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        fields = _stat_fields(_PROC / str(pid))
        if fields[0] not in _GONE:
            return fields[19]
    return None


@cache
def _boot() -> str:
    """Return the kernel's random name for the time since the machine's last start, or ""."""
    with contextlib.suppress(OSError):
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    return ""


def _pid_namespace() -> str:
    return str((_PROC / "self/ns/pid").readlink())


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal())


def _orphan_of(pid: int) -> Orphan | None:
    try:
        environment = _environment(pid)
        run_id, mark = environment[RUN_VARIABLE], environment[HARNESS_VARIABLE]
        if harness_lives(mark) or process_state(pid) is NodeState.DOWN:
            return None
        command = (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ")
    except (OSError, KeyError, ValueError):  # gone, another user's, or no mark of ours
        return None
    return Orphan(pid=pid, run_id=run_id, command=command.decode(errors="replace").strip())


def _environment(pid: int) -> dict[str, str]:
    directory = _PROC / str(pid)
    deadline = time.monotonic() + _EXEC_TIMEOUT_S
    executed = False
    # In the middle of an exec a process has no environment for a moment, and no command line. The
    # file that it runs it has even then; a thread of the kernel has none, and is left here.
    while not (environment := (directory / "environ").read_bytes()) and not executed:
        (directory / "exe").readlink()
        executed = bool((directory / "cmdline").read_bytes()) or time.monotonic() > deadline
        time.sleep(_POLL_S)
    entries = environment.decode(errors="replace").split("\0")
    return dict(entry.partition("=")[::2] for entry in entries)


def _end(orphan: Orphan, *, deadline: float) -> bool:
    """Send SIGKILL through a pidfd, so that no other process with the same number is hit."""
    try:
        descriptor = os.pidfd_open(orphan.pid)
    except ProcessLookupError:
        return True
    try:
        if _orphan_of(orphan.pid) != orphan:
            return True
        left_s = max(0.0, deadline - time.monotonic())
        return _is_ended(descriptor, signal.SIGKILL, timeout_s=left_s)
    finally:
        os.close(descriptor)


def _is_ended(descriptor: int, number: int, *, timeout_s: float) -> bool:
    """Send a signal to the process of a pidfd; return whether it is gone within the time."""
    signal.pidfd_send_signal(descriptor, number)
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(timeout_s * 1000))
