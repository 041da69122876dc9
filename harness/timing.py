"""The source of a run's time: the machine's clock, or a simulated world's; a watch on a file."""

import time
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

_GLANCE_S: Final = 0.001


class Time(Protocol):
    """A clock that does not go back, and a way to let it go on."""

    def now_s(self) -> float:
        """Return the seconds since some moment."""

    def sleep(self, seconds: float) -> None:
        """Return when so much time has passed."""

    def sleep_until(self, moment_s: float) -> None:
        """Return at this moment of the clock, or at once if it has passed."""


class RealTime:
    """The machine's."""

    def now_s(self) -> float:
        """Return the seconds of the monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Sleep for this many seconds."""
        time.sleep(seconds)

    def sleep_until(self, moment_s: float) -> None:
        """Do nothing until then."""
        time.sleep(max(0.0, moment_s - self.now_s()))


class FileWatch:
    """A watch on one file of a node, for a play that goes on the moment it changes.

    It need not exist, nor the directories above it.

    A file changed if it was made, deleted, replaced or written, a directory if a name in it was.
    The last part of the path may be a pattern, as in `snapshot.*`: then any file that fits counts.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._before = self._mark()

    @property
    def has_changed(self) -> bool:
        """True if the file is not what it was when the watch began."""
        return self._mark() != self._before

    def changes_within(self, seconds: float, clock: Time) -> bool:
        """Look a thousand times a second until it has changed; False: it did not in this time."""
        end_s = clock.now_s() + seconds
        while not self.has_changed:
            if clock.now_s() >= end_s:
                return False
            clock.sleep(_GLANCE_S)
        return True

    def _mark(self) -> tuple[tuple[int, int, int], ...]:
        marks = []
        with suppress(OSError):  # a file or directory that goes while it is looked at
            for path in sorted(self._path.parent.glob(self._path.name)):
                found = path.stat()
                marks.append((found.st_ino, found.st_size, found.st_mtime_ns))
        return tuple(marks)
