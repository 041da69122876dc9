"""Files that are there whole or not at all, whenever the machine or the process stops.

Each is written beside its place, forced to disk, and then renamed into it. A full disk is reported
as a HarnessError that names the path; whatever stood there before stays as it was.
"""

import os
from pathlib import Path

from fencepost.history.failure import HarnessError


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` by `content`. Raises HarnessError, naming the path, if it cannot."""
    beside = _beside(path)
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        sync(path.parent)
        _remove_abandoned(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise HarnessError(f"cannot write {path}: {error.strerror}") from error


def link_atomically(path: Path, target: str) -> None:
    """Replace the symbolic link `path` by one to `target`."""
    beside = _beside(path)
    try:
        beside.unlink(missing_ok=True)
        beside.symlink_to(target)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise HarnessError(f"cannot link {path} to {target}: {error.strerror}") from error


def sync(path: Path) -> None:
    """Force a file, or the entries of a directory, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_abandoned(path: Path) -> None:
    """Remove the unfinished files of writers of this path that were killed on the way."""
    for draft in path.parent.glob(f".{path.name}.*"):
        pid = draft.name.rpartition(".")[2]
        if pid.isdecimal() and not Path("/proc", pid).exists():
            draft.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")
