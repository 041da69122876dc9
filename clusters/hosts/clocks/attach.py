"""The time that a JVM believes it is, asked of the JVM itself.

HotSpot answers diagnostic commands on a Unix socket, which it opens when it gets SIGQUIT while a
file `.attach_pid<pid>` lies in its working directory (what `jcmd` does, which a bare runtime does
not bring). `VM.uptime -date` says its wall clock to the millisecond. Source: HotSpot's
`attachListener_posix.cpp`, JDK 9 to 25.
"""

import os
import re
import signal
import socket
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from fencepost.history.failure import HarnessError

_COMMAND: Final = b"1\0jcmd\0VM.uptime -date\0\0\0"
_STAMP: Final = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4}")
_POLL_S: Final = 0.005
_AGAIN_S: Final = 1.0
_NS_A_MILLISECOND: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReading:
    """The lead of a process's wall clock over this machine's (negative: it is behind)."""

    ahead_ns: int
    doubt_ns: int
    """The truth is at most so far from `ahead_ns`."""


def jvm_clock(pid: int, *, timeout_s: float = 10.0) -> ClockReading:
    """Ask the JVM with this pid, as this machine counts.

    Raises HarnessError if it does not answer within the bound, or is no HotSpot JVM.
    """
    deadline = time.monotonic() + timeout_s
    path = _opened(pid, deadline)
    before_ns = time.time_ns()
    answer = _asked(pid, path, deadline)
    after_ns = time.time_ns()
    stamp = _STAMP.search(answer)
    if stamp is None:
        raise HarnessError(f"the JVM with pid {pid} did not report its time: {answer[:200]!r}")
    # The stamp is cut off to whole milliseconds: on average half of one is missing.
    at_ms = round(datetime.fromisoformat(stamp[0].decode()).timestamp() * 1000)
    said_ns = at_ms * _NS_A_MILLISECOND + _NS_A_MILLISECOND // 2
    return ClockReading(
        ahead_ns=said_ns - (before_ns + after_ns) // 2,
        doubt_ns=(after_ns - before_ns + _NS_A_MILLISECOND) // 2,
    )


def socket_left_by(pid: int) -> Path | None:
    """Return the socket that a killed JVM leaves in our /tmp, once asked; None in a container.

    Raises HarnessError if there is no such process.
    """
    path = Path(f"/tmp/.java_pid{_inner_pid(pid)}")  # noqa: S108  # HotSpot's own, whatever TMPDIR
    try:
        ours = Path(f"/proc/{pid}/root/tmp").samefile("/tmp")  # noqa: S108
    except OSError as error:
        raise HarnessError(
            f"cannot ask process {pid} for its time: it is gone, or out of reach"
        ) from error
    return path if ours else None


def _opened(pid: int, deadline: float) -> Path:
    """The socket of this JVM, there once it was asked for."""
    inner = _inner_pid(pid)
    path = Path(f"/proc/{pid}/root/tmp/.java_pid{inner}")
    if path.exists():
        return path
    wish = Path(f"/proc/{pid}/cwd/.attach_pid{inner}")
    try:
        wish.touch()
        ask_s = 0.0
        while not path.exists():
            if time.monotonic() > deadline:
                raise HarnessError(f"the JVM with pid {pid} did not open its socket in time")
            # A JVM that has just begun may catch it before it knows what it is for.
            if time.monotonic() > ask_s and _catches_quit(pid):
                os.kill(pid, signal.SIGQUIT)
                ask_s = time.monotonic() + _AGAIN_S
            time.sleep(_POLL_S)
    except OSError as error:
        raise HarnessError(f"cannot ask the JVM with pid {pid} for its time: {error}") from error
    finally:
        wish.unlink(missing_ok=True)
    return path


def _asked(pid: int, path: Path, deadline: float) -> bytes:
    answer = b""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(max(_POLL_S, deadline - time.monotonic()))
            connection.connect(str(path))
            connection.sendall(_COMMAND)
            while part := connection.recv(4096):
                answer += part
    except OSError as error:
        raise HarnessError(f"the JVM with pid {pid} did not report its time: {error}") from error
    return answer


def _inner_pid(pid: int) -> int:
    """Return its pid as it counts itself: another one in a container."""
    return int(_status(pid, "NSpid").split()[-1])


def _catches_quit(pid: int) -> bool:
    """Return whether it handles SIGQUIT by now: a JVM that has just started would die of it."""
    return bool(int(_status(pid, "SigCgt"), 16) & 1 << (signal.SIGQUIT - 1))


def _status(pid: int, name: str) -> str:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(line.split(":", 1)[1] for line in lines if line.startswith(f"{name}:"))
    except (OSError, StopIteration) as error:
        raise HarnessError(
            f"cannot ask process {pid} for its time: it is gone, or out of reach"
        ) from error
