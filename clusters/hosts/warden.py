"""The harness's end of the warden, the one process that is the parent of all that a run starts.

Why not simply start children from here: when the harness is killed with -9, no process tells its
children, and a death signal of theirs would be tied to whichever thread forked them. The warden
(`warden_server.py`, which says how) outlives the harness by the moment it takes to kill them all.
"""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from fencepost.clusters.abilities import NodeUsage
from fencepost.clusters.hosts.process import (
    HARNESS_VARIABLE,
    RUN_VARIABLE,
    harness_mark,
    process_state,
    process_usage,
)
from fencepost.clusters.hosts.warden_client import WardenClient
from fencepost.clusters.port import NodeState
from fencepost.history.failure import HarnessError

_SERVER: Final = Path(__file__).with_name("warden_server.py")
_CLOSE_TIMEOUT_S: Final = 15.0
_SURVIVORS_EXIT_CODE: Final = 3
"""The server's own, see there."""


class Warden(WardenClient):
    """Starts processes on this machine that die when the harness does; signals and reaps them.

    `will`: a command that the warden runs when it has killed them all, unless `close` was called:
    the harness was killed then, and cannot do it itself.
    """

    def __init__(self, *, run_id: str, will: Sequence[str] | None = None) -> None:
        super().__init__()
        self._marks = {RUN_VARIABLE: run_id, HARNESS_VARIABLE: harness_mark()}
        self._connection, servers_end = socket.socketpair()
        with servers_end:
            self._server = subprocess.Popen(
                _server_command(servers_end.fileno()),
                env={**os.environ, **self._marks},
                pass_fds=[servers_end.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # Ctrl-C at the terminal is for the harness to handle.
                start_new_session=True,
            )
        self._listener.start()
        try:
            if will is not None:
                self.ask(op="will", argv=list(will))
        except BaseException:  # a signal: a warden that is not entered must not outlive its harness
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The warden's own pid: the parent of all it started."""
        return self._server.pid

    def state(self, pid: int) -> NodeState:
        """Return a process's state: paused only if *every* thread is; down if gone or a zombie."""
        return process_state(pid)

    def usage(self, pid: int) -> NodeUsage | None:
        """Return what a process uses, all its threads together; None if it does not exist."""
        return process_usage(pid)

    def close(self) -> None:
        """Kill every child that is left, and end. Idempotent; raises HarnessError if one stays."""
        if self._connection.fileno() < 0:
            return
        with contextlib.suppress(HarnessError):  # it is dead already
            self.ask(op="will", argv=None)
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)
        try:
            code = self._server.wait(_CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._server.kill()
            code = self._server.wait()
        self._listener.join(_CLOSE_TIMEOUT_S)
        self._connection.close()
        if code == _SURVIVORS_EXIT_CODE:
            raise HarnessError(
                "a process of this run survived SIGKILL; `fencepost clean` ends it once it can"
            )

    def _environment(self, env: Mapping[str, str] | None) -> dict[str, str]:
        return {**os.environ, **(env or {}), **self._marks}

    def _send(self, line: bytes) -> None:
        self._connection.sendall(line)

    def _lines(self) -> Iterator[bytes]:
        with self._connection.makefile("rb") as lines:
            yield from lines

    def _who(self) -> str:
        return f"the warden (pid {self.pid})"

    def _obituary(self) -> str:
        code = self._server.wait()
        if code == 0:
            return "the warden is closed: nothing can be started or signalled any more"
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"{self._who()} {how}; every process of the run is gone with it"


def _server_command(descriptor: int) -> list[str]:
    # -I and -S: a bare interpreter starts in 15 ms and reads nothing of the user's environment.
    isolated = [sys.executable, "-I", "-S", "-X", "utf8"]
    return [*isolated, str(_SERVER), str(descriptor), str(os.getpid())]
