"""The kernel's calls on a mounted file system: to shut down, to freeze, to write a part.

Linux's own calls, by their numbers. Each is given a directory or a file of the file system, and
raises OSError as the kernel says it.
"""

import ctypes
import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_FS_IOC_SHUTDOWN: Final = 0x8004587D
_NO_LOG_FLUSH: Final = 2
_FIFREEZE: Final = 0xC0045877
_FITHAW: Final = 0xC0045878
_WRITE_AND_WAIT: Final = 7
"""SYNC_FILE_RANGE_WAIT_BEFORE, _WRITE and _WAIT_AFTER together."""

_libc: Final = ctypes.CDLL(None, use_errno=True)


def shut_down(directory: Path) -> None:
    """Let the file system forget what it has not written yet, and refuse everything with EIO.

    Its journal is not flushed: the next mount finds what was synced, and what the kernel had
    written back of its own accord.
    """
    _ioctl(directory, _FS_IOC_SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))


def freeze(directory: Path) -> None:
    """Sync the file system, and let all its writers wait."""
    _ioctl(directory, _FIFREEZE, bytes(4))


def thaw(directory: Path) -> None:
    """Let those who wait go on; nothing if it is not frozen."""
    try:
        _ioctl(directory, _FITHAW, bytes(4))
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise


def is_frozen(directory: Path) -> bool:
    """Return whether writers wait there: then it cannot be frozen again. Otherwise sync it."""
    try:
        freeze(directory)
    except OSError as error:
        if error.errno == errno.EBUSY:
            return True
        raise
    thaw(directory)
    return False


def sync_all(directory: Path) -> None:
    """Make everything on the file system durable."""
    with _opened(directory) as descriptor:
        _checked(_libc.syncfs(descriptor))


def sync_head(file: Path, size_bytes: int) -> None:
    """Have the first bytes of a file written, whole pages of them; its metadata is not."""
    with _opened(file) as descriptor:
        length = ctypes.c_longlong(size_bytes)
        begin = ctypes.c_longlong(0)
        _checked(_libc.sync_file_range(descriptor, begin, length, _WRITE_AND_WAIT))


def _ioctl(directory: Path, request: int, argument: bytes) -> None:
    with _opened(directory) as descriptor:
        fcntl.ioctl(descriptor, request, argument)


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
