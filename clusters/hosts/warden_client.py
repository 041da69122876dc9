"""The harness's side of a warden's protocol, whatever the lines go over.

`warden_server.py` says what is asked and answered.
"""

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Final, Self

from fencepost.clusters.abilities import NodeUsage
from fencepost.clusters.port import NodeState
from fencepost.history.failure import HarnessError

ANSWER_TIMEOUT_S: Final = 30.0
"""An answer takes a few ms; a warden that has not answered by then is broken or starved."""


class WardenClient(ABC):
    """Asks a warden to start, signal and reap processes. Thread-safe.

    A context manager; leaving it closes it. When the warden itself has died (and with it every
    child), each method raises HarnessError.
    """

    def __init__(self) -> None:
        self._sending = threading.Lock()
        self._changed = threading.Condition()
        # All below is guarded by `_changed`.
        self._request_count = 0
        self._answers: dict[int, dict[str, object]] = {}
        self._exit_codes: dict[int, int | None] = {}
        self._last_words: str | None = None
        self._listener = threading.Thread(target=self._listen, name="warden", daemon=True)

    def spawn(
        self,
        argv: Sequence[str],
        *,
        name: str,
        log: PurePath,
        cwd: PurePath | None = None,
        env: Mapping[str, str] | None = None,
    ) -> int:
        """Start a process and return its pid once it runs the program that was asked for.

        It leads a session of its own, reads nothing, and appends stdout and stderr to `log`.
        `env` is added to the warden's own environment, and so is FENCEPOST_RUN.
        Raises HarnessError, with `name`, if it cannot be started.
        """
        answer = self.ask(
            op="spawn",
            argv=[str(argument) for argument in argv],
            cwd=None if cwd is None else str(cwd),
            env=self._environment(env),
            log=str(log),
        )
        if "error" in answer:
            raise HarnessError(f"{name} was not started: {answer['error']}")
        pid = answer["pid"]
        assert isinstance(pid, int)
        return pid

    def signal(self, pid: int, signal: int, *, group: bool = False) -> bool:
        """Send a signal to a child. False if it has ended, whoever owns that pid by now.

        `group`: to the processes that it started as well.
        """
        answer = self.ask(op="signal", pid=pid, signal=int(signal), group=group)
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

    @abstractmethod
    def state(self, pid: int) -> NodeState:
        """Return a process's state: paused only if *every* thread is; down if gone or a zombie."""

    @abstractmethod
    def usage(self, pid: int) -> NodeUsage | None:
        """Return what a process uses, all its threads together; None if it does not exist."""

    @abstractmethod
    def close(self) -> None:
        """Kill every child that is left, and end. Idempotent; raises HarnessError if one stays."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, **request: object) -> dict[str, object]:
        """Send one request and return its whole answer; HarnessError if no answer came in time."""
        with self._changed:
            self._refuse_if_dead()
            self._request_count += 1
            number = self._request_count
        line = json.dumps({"id": number, **request}).encode() + b"\n"
        try:
            with self._sending:
                self._send(line)
        except OSError:
            # Closed, or dead: the listener knows, or will in a moment.
            self._listener.join(ANSWER_TIMEOUT_S)
        with self._changed:
            answered = self._changed.wait_for(
                lambda: number in self._answers or self._last_words is not None,
                ANSWER_TIMEOUT_S,
            )
            if number in self._answers:
                return self._answers.pop(number)
            self._refuse_if_dead()
            assert not answered
        raise HarnessError(
            f"{self._who()} did not answer within {ANSWER_TIMEOUT_S:.0f} s; "
            "the machine may be out of memory or overloaded"
        )

    @abstractmethod
    def _environment(self, env: Mapping[str, str] | None) -> dict[str, str]:
        """Return what a child's environment has besides what the warden's server adds."""

    @abstractmethod
    def _send(self, line: bytes) -> None:
        """Send a line. Raises OSError if the warden does not hear it."""

    @abstractmethod
    def _lines(self) -> Iterator[bytes]:
        """Yield what it says until it ends; OSError or ValueError if it breaks off."""

    @abstractmethod
    def _who(self) -> str:
        """Return which warden this is, in words."""

    @abstractmethod
    def _obituary(self) -> str:
        """Return why it says nothing more, asked once it does not."""

    def _refuse_if_dead(self) -> None:
        if self._last_words is not None:
            raise HarnessError(self._last_words)

    def _listen(self) -> None:
        try:
            for line in self._lines():
                self._take(json.loads(line))
        except (OSError, ValueError):
            pass  # a torn line or a reset: the warden died while it spoke
        obituary = self._obituary()
        with self._changed:
            if self._last_words is None:
                self._last_words = obituary
            self._changed.notify_all()

    def _take(self, message: dict[str, object]) -> None:
        with self._changed:
            match message:
                case {"exited": int(pid), "code": int(code)}:
                    self._exit_codes[pid] = code
                case {"fatal": str(error)}:
                    self._last_words = f"{self._who()} failed: {error}"
                case {"id": int(number)}:
                    self._answers[number] = message
                    if isinstance(started := message.get("pid"), int):
                        self._exit_codes[started] = None
                case _:
                    raise AssertionError(message)
            self._changed.notify_all()
