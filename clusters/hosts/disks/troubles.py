"""The troubles of a disk, short of losing power: full, read-only, failed, stalled, slow.

Each trouble says by what it was seen to have come, and knows how it ends: a full disk is emptied
and a stalled one let go while its node runs; one that failed, or that the kernel made read-only
after an error, has to be mounted anew, during which no process may use it.

- *full*: a file takes every block. A process that appends gets ENOSPC.
- *read-only*: the file system is told that it has an error, and does what it was mounted to do then
  (`errors=remount-ro`): writes get EROFS, reads go on. Its journal is given up, so what was not
  synced is lost with the next mount, as on a disk that really fails.
- *failed*: everything gets EIO. Unsynced writes are lost.
- *stalled*: it is frozen. Writers wait, readers go on, no process gets an error.
- *slow*: it is stalled for a while again and again.
"""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fencepost.clusters.hosts.disks.calls import freeze, is_frozen, shut_down, thaw
from fencepost.clusters.hosts.disks.image import ImageDisk, device_of
from fencepost.clusters.port import DiskTrouble
from fencepost.history.failure import HarnessError

_FILLER: Final = "filler"
_BLOCK_BYTES: Final = 4096
_GOING_ON_S: Final = 0.02
"""The time between two stalls of a slow disk: writers get through, and not all of them."""
_TIMEOUT_S: Final = 10.0


_ANEW: Final = frozenset({DiskTrouble.READ_ONLY, DiskTrouble.FAILED})


class TroubledDisk:
    """The troubles of one disk, one at a time."""

    def __init__(self, disk: ImageDisk) -> None:
        self._disk = disk
        self._slowness: _Slowness | None = None
        self.trouble: DiskTrouble | None = None

    @property
    def in_the_way(self) -> bool:
        """True if it can be mended only while no process uses the disk."""
        return self.trouble in _ANEW

    def bring(self, trouble: DiskTrouble, *, stall_s: float) -> str:
        """Let it come; what shows that it has, in words. `stall_s`: how long at a time, if slow."""
        if self.trouble is not None:
            raise HarnessError(f"{self._at} is {self.trouble} already; mend it first")
        bring: dict[DiskTrouble, Callable[[], str]] = {
            DiskTrouble.FULL: self._fill,
            DiskTrouble.READ_ONLY: self._forbid_writes,
            DiskTrouble.FAILED: self._fail,
            DiskTrouble.STALLED: self._stall,
            DiskTrouble.SLOW: lambda: self._slow_down(stall_s),
        }
        self.trouble = trouble
        try:
            return bring[trouble]()
        except OSError as error:
            raise HarnessError(f"{self._at} did not become {trouble}: {error}") from error

    def mend(self) -> None:
        """End its trouble, if it has one. If that is `in_the_way`, no process may use the disk."""
        match self.trouble:
            case None:
                return
            case DiskTrouble.FULL:
                (self._at / _FILLER).unlink(missing_ok=True)
            case DiskTrouble.SLOW:
                assert self._slowness is not None
                self._slowness.end()
            case DiskTrouble.STALLED:
                thaw(self._at)
            case DiskTrouble.READ_ONLY | DiskTrouble.FAILED:
                self._disk.renew()
        self.trouble = None

    def came_back(self) -> None:
        """Take note that it was mounted anew, whyever."""
        if self.in_the_way:
            self.trouble = None

    def let_go(self) -> None:
        """Let go whoever waits for it, so that processes can end. It may be full or have failed."""
        if self.trouble in (DiskTrouble.SLOW, DiskTrouble.STALLED):
            self.mend()

    @property
    def _at(self) -> Path:
        return self._disk.mount_point

    def _fill(self) -> str:
        filler = os.open(self._at / _FILLER, os.O_CREAT | os.O_WRONLY, 0o600)
        try:
            taken_bytes = _take_all(filler)
            os.fsync(filler)
        finally:
            os.close(filler)
        free_bytes = os.statvfs(self._at).f_bavail * _BLOCK_BYTES
        if free_bytes > 0:
            raise HarnessError(f"{self._at} still has {free_bytes} bytes free")
        return f"no block is free, {taken_bytes / 2**20:,.0f} MiB were"

    def _forbid_writes(self) -> str:
        Path(f"/sys/fs/ext4/{device_of(self._at)}/trigger_fs_error").write_text("1")
        return f"a write gets: {self._refusal()}"

    def _fail(self) -> str:
        shut_down(self._at)
        return f"a write gets: {self._refusal()}"

    def _refusal(self) -> str:
        try:
            (self._at / _FILLER).write_bytes(b"")
        except OSError as error:
            return str(error.strerror)
        raise HarnessError(f"{self._at}: a write succeeded, though the disk should refuse it")

    def _stall(self) -> str:
        freeze(self._at)
        if not is_frozen(self._at):
            raise HarnessError(f"{self._at} did not freeze")
        return "it is frozen: writers wait"

    def _slow_down(self, stall_s: float) -> str:
        before_s = _timed_write(self._at)
        self._slowness = _Slowness(self._at, stall_s=stall_s)
        self._slowness.await_begin()
        after_s = _timed_write(self._at)
        # A busy machine may let the probe's thread sleep through the first stall, not through all.
        deadline = time.monotonic() + _TIMEOUT_S
        while after_s < stall_s / 2:
            if time.monotonic() > deadline:
                raise HarnessError(
                    f"{self._at} is not slow: a synced write takes {after_s:.3f} s, not {stall_s}"
                )
            after_s = _timed_write(self._at)
        return f"a synced write takes {after_s * 1000:.0f} ms, it took {before_s * 1000:.0f}"


class _Slowness:
    """A thread that freezes a file system again and again, and leaves it thawed."""

    def __init__(self, directory: Path, *, stall_s: float) -> None:
        self._directory = directory
        self._stall_s = stall_s
        self._begun = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go, name="slow disk", daemon=True)
        self._thread.start()

    def await_begin(self) -> None:
        """Return once it is stalled for the first time."""
        if not self._begun.wait(_TIMEOUT_S):
            raise HarnessError(f"{self._directory} did not freeze within {_TIMEOUT_S:.0f} s")

    def end(self) -> None:
        """Return once it is thawed for good."""
        self._over.set()
        self._thread.join(_TIMEOUT_S)
        if self._thread.is_alive():
            raise HarnessError(f"{self._directory} did not thaw within {_TIMEOUT_S:.0f} s")

    def _go(self) -> None:
        while not self._over.is_set():
            freeze(self._directory)
            self._begun.set()
            self._over.wait(self._stall_s)
            thaw(self._directory)
            self._over.wait(_GOING_ON_S)


def _take_all(descriptor: int) -> int:
    """Allocate blocks to the file until the disk is full; return the number of bytes taken."""
    taken_bytes, step_bytes = 0, 1 << 30
    while step_bytes >= _BLOCK_BYTES:
        try:
            os.posix_fallocate(descriptor, taken_bytes, step_bytes)
        except OSError:
            step_bytes //= 2
        else:
            taken_bytes += step_bytes
    return taken_bytes


def _timed_write(directory: Path) -> float:
    """Return the time that a small, synced write takes."""
    begin_s = time.monotonic()
    with (directory / _FILLER).open("wb") as file:
        file.write(b"x")
        file.flush()
        os.fsync(file.fileno())
    (directory / _FILLER).unlink()
    return time.monotonic() - begin_s
