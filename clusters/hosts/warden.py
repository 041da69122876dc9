"""The harness's end of the warden, the one process that is the parent of all that a run starts.

Why not simply start children from here: when the harness is killed with -9, nobody tells its
children, and a death signal of theirs would be tied to whichever thread forked them. The warden
(`warden_server.py`, which says how) outlives the harness by the moment it takes to kill them all.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from clusters.hosts.process import HARNESS_VARIABLE, RUN_VARIABLE, harness_mark
from history.failure import HarnessError

__all__ = ["Warden"]

_SERVER: Final = Path(__file__).with_name("warden_server.py")
_ANSWER_TIMEOUT_S: Final = 30.0
"""An answer takes a few ms; a warden that has not answered by then is broken or starved."""
_CLOSE_TIMEOUT_S: Final = 15.0
_SURVIVORS_EXIT_CODE: Final = 3
"""The server's own, see there."""


class Warden:
    """Starts processes that die when the harness does; signals and reaps them.

    Thread-safe. A context manager; leaving it kills every child that is left. When the warden
    itself has died (and with it every child), each method raises HarnessError.
    """

    def __init__(self, *, run_id: str) -> None:
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
        self._sending = threading.Lock()
        self._changed = threading.Condition()
        # All below is guarded by `_changed`.
        self._request_count = 0
        self._answers: dict[int, dict[str, object]] = {}
        self._exit_codes: dict[int, int | None] = {}
        self._last_words: str | None = None
        self._listener = threading.Thread(target=self._listen, name="warden", daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        """The warden's own pid: the parent of all it started."""
        return self._server.pid

    def spawn(
        self,
        argv: Sequence[str],
        *,
        name: str,
        log: Path,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> int:
        """Start a process and return its pid once it runs the program that was asked for.

        It leads a session of its own, reads nothing, and appends stdout and stderr to `log`.
        `env` None means the harness's environment; FENCEPOST_RUN is added in any case.
        Raises HarnessError, with `name`, if it cannot be started.
        """
        answer = self._ask(
            op="spawn",
            argv=[str(argument) for argument in argv],
            cwd=None if cwd is None else str(cwd),
            env={**(os.environ if env is None else env), **self._marks},
            log=str(log),
        )
        if "error" in answer:
            raise HarnessError(f"{name} was not started: {answer['error']}")
        pid = answer["pid"]
        assert isinstance(pid, int)
        return pid

    def signal(self, pid: int, signal: int) -> bool:
        """Send a signal to a child. False if it has ended, whoever owns that pid by now."""
        answer = self._ask(op="signal", pid=pid, signal=int(signal))
        if "error" in answer:
            raise HarnessError(str(answer["error"]))
        return bool(answer["sent"])

    def exit_code(self, pid: int) -> int | None:
        """The exit code of a child, negative if a signal ended it; None while it lives."""
        with self._changed:
            self._refuse_if_dead()
            return self._exit_codes[pid]

    def wait(self, pid: int, *, timeout_s: float) -> int | None:
        """Wait for a child to end. Its exit code, or None if it still lives after `timeout_s`."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._exit_codes[pid] is not None or self._last_words is not None,
                timeout_s,
            )
            self._refuse_if_dead()
            return self._exit_codes[pid]

    def close(self) -> None:
        """Kill every child that is left, and end. Idempotent; raises HarnessError if one stays."""
        if self._connection.fileno() < 0:
            return
        with contextlib.suppress(OSError):  # it is dead already
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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _ask(self, **request: object) -> dict[str, object]:
        with self._changed:
            self._refuse_if_dead()
            self._request_count += 1
            number = self._request_count
        line = json.dumps({"id": number, **request}).encode() + b"\n"
        try:
            with self._sending:
                self._connection.sendall(line)
        except OSError:
            # Closed, or dead: the listener knows, or will in a moment.
            self._listener.join(_ANSWER_TIMEOUT_S)
        with self._changed:
            answered = self._changed.wait_for(
                lambda: number in self._answers or self._last_words is not None,
                _ANSWER_TIMEOUT_S,
            )
            if number in self._answers:
                return self._answers.pop(number)
            self._refuse_if_dead()
            assert not answered
        raise HarnessError(
            f"the warden (pid {self.pid}) did not answer within {_ANSWER_TIMEOUT_S:.0f} s; "
            "the machine may be out of memory or overloaded"
        )

    def _refuse_if_dead(self) -> None:
        if self._last_words is not None:
            raise HarnessError(self._last_words)

    def _listen(self) -> None:
        with self._connection.makefile("rb") as lines:
            try:
                for line in lines:
                    self._take(json.loads(line))
            except (OSError, ValueError):
                pass  # a torn line or a reset: the warden died while it spoke
        code = self._server.wait()
        with self._changed:
            if self._last_words is None:
                self._last_words = _obituary(self.pid, code)
            self._changed.notify_all()

    def _take(self, message: dict[str, object]) -> None:
        with self._changed:
            match message:
                case {"exited": int(pid), "code": int(code)}:
                    self._exit_codes[pid] = code
                case {"fatal": str(error)}:
                    self._last_words = f"the warden (pid {self.pid}) failed: {error}"
                case {"id": int(number)}:
                    self._answers[number] = message
                    if isinstance(started := message.get("pid"), int):
                        self._exit_codes[started] = None
                case _:
                    raise AssertionError(message)
            self._changed.notify_all()


def _server_command(descriptor: int) -> list[str]:
    # -I and -S: a bare interpreter starts in 15 ms and reads nothing of the user's environment.
    isolated = [sys.executable, "-I", "-S", "-X", "utf8"]
    return [*isolated, str(_SERVER), str(descriptor), str(os.getpid())]


def _obituary(pid: int, code: int) -> str:
    if code == 0:
        return "the warden is closed: nothing can be started or signalled any more"
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    return f"the warden (pid {pid}) {how}; every process of the run is gone with it"
