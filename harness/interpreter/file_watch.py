"""A watch on one file of a node, for a play that goes on the moment it changes."""

from contextlib import suppress
from pathlib import Path
from typing import Final

from harness.timing import Time

__all__ = ["FileWatch"]

_GLANCE_S: Final = 0.001


class FileWatch:
    """A comparison of a file with what it was. It need not exist, nor the directories above it.

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

    def changes_within(self, seconds: float, time: Time) -> bool:
        """Look a thousand times a second until it has changed; False: it did not in this time."""
        end_s = time.now_s() + seconds
        while not self.has_changed:
            if time.now_s() >= end_s:
                return False
            time.sleep(_GLANCE_S)
        return True

    def _mark(self) -> tuple[tuple[int, int, int], ...]:
        marks = []
        with suppress(OSError):  # a file or directory that goes while it is looked at
            for path in sorted(self._path.parent.glob(self._path.name)):
                found = path.stat()
                marks.append((found.st_ino, found.st_size, found.st_mtime_ns))
        return tuple(marks)
