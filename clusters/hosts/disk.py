"""Copies of data directories: shared blocks where the file system can, holes always kept.

Kafka preallocates its indexes as sparse files of 10 MiB; a plain copy would write them out.
"""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fencepost.history.failure import HarnessError

_FICLONE: Final = 0x40049409
"""The ioctl that makes one file share another's blocks until either is written (btrfs, xfs)."""


def copy_directory(source: Path, target: Path) -> None:
    """Copy a directory with modes and times; `target` must not exist.

    Raises HarnessError if it cannot be read or written, or if the copy is not complete.
    """
    try:
        shutil.copytree(source, target, symlinks=True, copy_function=_copy_file)
    except (OSError, shutil.Error) as error:
        raise HarnessError(f"cannot copy {source} to {target}: {error}") from error
    if file_sizes(source) != file_sizes(target):
        raise HarnessError(f"the copy {target} differs from {source}: was it written to meanwhile?")


def replace_directory(target: Path, *, by: Path) -> None:
    """Put a copy of `by` in the place of `target`. Raises HarnessError as copying does."""
    draft = target.with_name(f".{target.name}.new")
    remove_directory(draft)
    copy_directory(by, draft)
    remove_directory(target)
    draft.rename(target)


def remove_directory(directory: Path) -> None:
    """Delete a directory, if it is there, for certain. Raises HarnessError if it cannot be."""
    try:
        shutil.rmtree(directory)
    except FileNotFoundError:
        return
    except OSError as error:
        raise HarnessError(f"cannot delete {directory}: {error}") from error


def file_sizes(directory: Path) -> dict[Path, int]:
    """Return the size of each file of a directory, by its path within."""
    return {
        path.relative_to(directory): path.lstat().st_size
        for path in directory.rglob("*")
        if not path.is_dir()
    }


def _copy_file(source: str, target: str) -> str:
    with open(source, "rb") as reader, open(target, "wb") as writer:  # noqa: PTH123 -- given as text
        try:
            fcntl.ioctl(writer.fileno(), _FICLONE, reader.fileno())
        except OSError:  # this file system cannot, or not between these two places
            _copy_extents(reader.fileno(), writer.fileno())
    shutil.copystat(source, target)
    return target


def _copy_extents(reader: int, writer: int) -> None:
    os.truncate(writer, os.fstat(reader).st_size)
    for start, end in _extents(reader):
        os.lseek(writer, start, os.SEEK_SET)
        at = start
        while at < end:
            sent = os.sendfile(writer, reader, at, end - at)
            if sent == 0:
                return
            at += sent


def _extents(descriptor: int) -> Iterator[tuple[int, int]]:
    """Yield the stretches of a file that hold data, as (start, end)."""
    end = 0
    while True:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # only a hole is left
                return
            raise
        end = os.lseek(descriptor, start, os.SEEK_HOLE)
        yield start, end
