"""Values read from files, kept for as long as the files are the same."""

from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


def stamp_of(paths: Iterable[Path]) -> tuple[tuple[int, int, int] | None, ...]:
    """Return what changes with any of these files; None stands for one that is not there."""
    return tuple(map(_stamp, paths))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class Remembered(Generic[T]):
    """Values by a key, each as of a stamp. Threads may read a value twice, never a wrong one."""

    def __init__(self) -> None:
        self._values: dict[Hashable, tuple[Hashable, T]] = {}
        self._lock = Lock()

    def of(self, key: Hashable, stamp: Hashable, read: Callable[[], T]) -> T:
        """Return the value of this key as of this stamp, read anew if the stamp is another."""
        with self._lock:
            found = self._values.get(key)
        if found is not None and found[0] == stamp:
            return found[1]
        value = read()
        with self._lock:
            self._values[key] = (stamp, value)
        return value
