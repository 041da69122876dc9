"""The display of a run's progress: a live line on a terminal, plain lines now and then elsewhere.

Everything here goes to standard error; standard output belongs to results.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from rich.console import Console
from rich.status import Status as Spinner
from rich.styled import Styled
from rich.text import Text

_PLAIN_EVERY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The present state of a run."""

    now_s: float
    limit_s: float
    ok_per_s: float
    ok_count: int
    fail_count: int
    info_count: int
    polled_count: int
    broken: tuple[str, ...]
    """The open faults, e.g. `kill broker-2`."""


class Progress(Protocol):
    """The port through which a run reports its progress."""

    def say(self, line: str) -> None:
        """Say what happened; the line stays worth reading."""

    def live(self, line: str) -> None:
        """Show what is true for a moment, where it can be replaced; a log does not keep it."""

    def show(self, status: Status) -> None:
        """Show the present state, replacing the one before."""

    def elapsed_s(self) -> float:
        """Return the seconds since the start."""


def status_line(status: Status) -> str:
    """Return one line: time, acknowledged sends and their rate, reads, what is broken."""
    broken = ", ".join(status.broken) or "nothing"
    bad = f" fail {status.fail_count:,} info {status.info_count:,}"
    return (
        f"{status.now_s:5.1f} of {status.limit_s:.0f} s · {status.ok_count:,} acknowledged "
        f"({status.ok_per_s:,.0f}/s){bad if status.fail_count + status.info_count else ''} · "
        f"{status.polled_count:,} polled · broken: {broken}"
    )


class SilentProgress:
    """`Progress` for a caller who looks at the result alone."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def say(self, line: str) -> None:
        """Say nothing."""

    live = say

    def show(self, status: Status) -> None:
        """Show nothing."""

    def elapsed_s(self) -> float:
        """Return the seconds since it was made."""
        return time.monotonic() - self._begun


class TerminalProgress:
    """The progress as lines on standard error; the status as a spinner if that is a terminal."""

    def __init__(self, console: Console, spinner: Spinner | None) -> None:
        self._console = console
        self._spinner = spinner
        self._begin_s = time.monotonic()
        self._shown_s = 0.0

    def say(self, line: str) -> None:
        """Print a line that stays, with the seconds since the start."""
        self._console.print(f"{self.elapsed_s():6.1f}s  {line}", markup=False, highlight=False)
        self.live(line)  # what was shown is over: a run that is being checked no longer sends

    def live(self, line: str) -> None:
        """Show the line next to the spinner, if there is one."""
        if self._spinner is not None:
            self._spinner.update(_within(line))

    def elapsed_s(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self._begin_s

    def of_run(self, place: str) -> "RunProgress":
        """Return the progress of one run among several; `place`: `run 3 of 20`."""
        return RunProgress(self, self._spinner, place)

    def show(self, status: Status) -> None:
        """Update the spinner, or print a line every few seconds."""
        if self._spinner is not None:
            self.live(status_line(status))
        elif time.monotonic() - self._shown_s >= _PLAIN_EVERY_S:
            self._shown_s = time.monotonic()
            self.say(status_line(status))


class RunProgress:
    """The progress of one run among several: shown on a terminal for as long as it is true.

    A log keeps a line a run, and not the stages of each.
    """

    def __init__(self, whole: Progress, spinner: Spinner | None, place: str) -> None:
        self._whole = whole
        self._spinner = spinner
        self._place = place

    def say(self, line: str) -> None:
        """Show the line behind the run's place in the series."""
        if self._spinner is not None:
            self._spinner.update(_within(f"{self._place} · {line}"))

    def live(self, line: str) -> None:
        """Show the line as any other."""
        self.say(line)

    def show(self, status: Status) -> None:
        """Show the present state."""
        self.say(status_line(status))

    def elapsed_s(self) -> float:
        """Return the seconds since the start of the series."""
        return self._whole.elapsed_s()


def _within(line: str) -> Styled:
    """Return the line as it stands, cut at the width of the terminal: a live line is one line."""
    return Styled(Text(line, no_wrap=True, overflow="ellipsis"), "none")  # a spinner wraps a Text


@contextmanager
def terminal_progress() -> Iterator[TerminalProgress]:
    """Report progress on standard error for as long as the context lasts."""
    console = Console(stderr=True, soft_wrap=True)
    if not console.is_terminal:
        yield TerminalProgress(console, None)
        return
    with console.status("…") as spinner:
        yield TerminalProgress(console, spinner)
