"""The two controllers that hold a node back, each as version 1 and version 2 of the kernel's API.

A throttled process may run for a share of each tenth of a second, all its threads together. One
that is squeezed gives back what it has cached and mapped, again and again; if that is not enough,
it stands still until it has room again (version 1; no process is killed), or goes on very slowly
(version 2, `memory.high`).
"""

import contextlib
import errno
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from fencepost.history.failure import HarnessError

_PERIOD_US: Final = 100_000
_QUOTA_MIN_US: Final = 1000
"""The kernel takes no less."""
_NO_BOUNDS: Final = {
    "cpu.cfs_quota_us": "-1",
    "cpu.max": "max",
    "memory.limit_in_bytes": "-1",
    "memory.high": "max",
}
"""The values that lift each bound, by the file, of whichever version and controller."""


class _BusyError(HarnessError):
    """The kernel may take the same words later."""


class Cpu(Protocol):
    """A group's share of the processors."""

    def limit(self, share: float | None) -> None:
        """Allow this share of one core; None: no bound. HarnessError if the kernel refuses."""

    def throttled(self) -> tuple[int, float]:
        """Return how often its processes were held back, and for how many seconds in all."""


class Memory(Protocol):
    """A group's bound of memory."""

    def limit(self, size_bytes: int | None) -> bool:
        """Allow at most this size; None: no bound. HarnessError if the kernel refuses for good.

        False if it could not take back enough at once, and the bound is as it was: version 1 says
        EBUSY while too little is written to disk. Version 2 takes any bound.
        """

    def used_bytes(self) -> int:
        """Return the memory that is charged to it."""

    def held_bytes(self) -> int:
        """Return the bytes that it cannot give back without swap: heaps, stacks, the kernel's."""

    def pressed(self) -> int:
        """Return how often it reached its bound."""


def cpu_of(directory: Path, *, version: int) -> Cpu:
    """The controller of a group that is there."""
    return _Cpu1(directory) if version == 1 else _Cpu2(directory)


def memory_of(directory: Path, *, version: int) -> Memory:
    """The controller of a group that is there."""
    return _Memory1(directory) if version == 1 else _Memory2(directory)


def lift_bounds(directory: Path) -> None:
    """Bound the group no more, whichever controllers it has. Never raises; it may be gone."""
    for name, text in _NO_BOUNDS.items():
        with contextlib.suppress(OSError):
            if (directory / name).exists():
                (directory / name).write_text(text)


class _Cpu1:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def limit(self, share: float | None) -> None:
        _write(self._directory / "cpu.cfs_period_us", str(_PERIOD_US))
        _write(self._directory / "cpu.cfs_quota_us", str(-1 if share is None else _quota_us(share)))

    def throttled(self) -> tuple[int, float]:
        stat = _counts(self._directory / "cpu.stat")
        return stat["nr_throttled"], stat["throttled_time"] / 1e9


class _Cpu2:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def limit(self, share: float | None) -> None:
        quota = "max" if share is None else str(_quota_us(share))
        _write(self._directory / "cpu.max", f"{quota} {_PERIOD_US}")

    def throttled(self) -> tuple[int, float]:
        stat = _counts(self._directory / "cpu.stat")
        return stat["nr_throttled"], stat["throttled_usec"] / 1e6


class _Memory1:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        _write(directory / "memory.oom_control", "1")

    def limit(self, size_bytes: int | None) -> bool:
        wanted = -1 if size_bytes is None else size_bytes
        try:
            _write(self._directory / "memory.limit_in_bytes", str(wanted))
        except _BusyError:
            return False
        return True

    def used_bytes(self) -> int:
        return int((self._directory / "memory.usage_in_bytes").read_text())

    def held_bytes(self) -> int:
        kernels = int((self._directory / "memory.kmem.usage_in_bytes").read_text())
        return _counts(self._directory / "memory.stat")["rss"] + kernels

    def pressed(self) -> int:
        return int((self._directory / "memory.failcnt").read_text())


class _Memory2:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def limit(self, size_bytes: int | None) -> bool:
        wanted = "max" if size_bytes is None else str(size_bytes)
        _write(self._directory / "memory.high", wanted)
        return True

    def used_bytes(self) -> int:
        return int((self._directory / "memory.current").read_text())

    def held_bytes(self) -> int:
        stat = _counts(self._directory / "memory.stat")
        return stat["anon"] + stat.get("kernel", 0)

    def pressed(self) -> int:
        return _counts(self._directory / "memory.events")["high"]


def _quota_us(share: float) -> int:
    return max(_QUOTA_MIN_US, round(share * _PERIOD_US))


def _counts(path: Path) -> Mapping[str, int]:
    lines = (line.split() for line in path.read_text().splitlines())
    return {name: int(count) for name, count in lines}


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        kind = _BusyError if error.errno == errno.EBUSY else HarnessError
        raise kind(f"{path}: cannot be set to {text}: {error.strerror}") from error
