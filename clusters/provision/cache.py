"""The cache kept between runs: releases, archives, trust stores. All of it can be made again.

Entries are directories. They appear whole or not at all (built beside, then renamed), and one
process at a time makes one: a second waits for it, with a bound.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import platformdirs
from filelock import FileLock, Timeout

from fencepost.history.failure import HarnessError

CACHE_VARIABLE: Final = "FENCEPOST_CACHE"
"""Environment variable: where to keep it, instead of the user's cache directory."""

Progress = Callable[[str], None]
"""Gets one line about something that takes long."""

Entry = TypeVar("Entry")

_DRAFT: Final = ".fencepost-draft-"
"""The mark of a half-made entry."""
_APPEARED: Final = (errno.ENOTEMPTY, errno.EEXIST)
_LOCK_TIMEOUT_S: Final = 900.0
"""A release over a slow line takes minutes; longer than this, its owner hangs."""


def cache_dir() -> Path:
    """Return $FENCEPOST_CACHE, else the user's cache directory. It may not exist yet."""
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen).absolute() if chosen else platformdirs.user_cache_path("fencepost")


def kept(
    entry: Path,
    *,
    read: Callable[[Path], Entry | None],
    build: Callable[[Path], None],
    doing: str,
    progress: Progress,
) -> Entry:
    """Read an entry; if it is missing or damaged (`read` gives None), build it first.

    `build` fills an empty directory. `doing` says what building is: "fetching Kafka 3.4.1". Raises
    what `build` raises, and HarnessError if the cache cannot be written or another process does
    not get done.
    """
    if (found := read(entry)) is not None:
        return found
    with locked(entry, doing=doing, progress=progress):
        if (found := read(entry)) is not None:
            return found
        damaged = entry.exists()
        progress(f"{doing} again: it is damaged in the cache" if damaged else doing)
        shutil.rmtree(entry, ignore_errors=True)
        with built_beside(entry) as draft:
            build(draft)
    found = read(entry)
    assert found is not None
    return found


@contextlib.contextmanager
def locked(
    entry: Path, *, doing: str, progress: Progress, timeout_s: float = _LOCK_TIMEOUT_S
) -> Iterator[None]:
    """Be the only process that makes this entry; its parent directory exists afterwards.

    Raises HarnessError if another process still makes it after `timeout_s`, or if the cache cannot
    be written.
    """
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(entry.with_name(f".{entry.name}.lock"))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            progress(f"waiting for another process that is {doing}")
            lock.acquire(timeout=timeout_s)
    except Timeout:
        raise HarnessError(
            f"another process has been {doing} for {timeout_s:.0f} s; "
            f"if none is, delete {lock.lock_file}"
        ) from None
    except OSError as error:
        raise _unwritable(error) from error
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def built_beside(target: Path) -> Iterator[Path]:
    """Give an empty directory to build in, which becomes `target` if the block succeeds.

    If `target` has appeared meanwhile it stays: two that build the same need no lock. Raises
    HarnessError if the disk is full or the cache cannot be written.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f"{_DRAFT}{target.name}.", dir=target.parent))
        held = os.open(draft, os.O_RDONLY)
    except OSError as error:
        raise _unwritable(error) from error
    try:
        # Held so that the draft is seen to be in use: see `abandoned_drafts`.
        fcntl.flock(held, fcntl.LOCK_SH)
        yield draft
        draft.chmod(0o755)
        draft.rename(target)
    except OSError as error:
        if error.errno not in _APPEARED:
            raise _unwritable(error) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        os.close(held)


def abandoned_drafts() -> tuple[Path, ...]:
    """Return the half-made entries of the cache that no process is making any more.

    The cache may be a directory that others use, too: only what bears our mark is one.
    """
    here = cache_dir()
    found = (path for depth in ("*", "*/*") for path in here.glob(f"{depth}/{_DRAFT}*.*"))
    drafts = sorted(path for path in found if path.is_dir() and not path.is_symlink())
    return tuple(draft for draft in drafts if _is_abandoned(draft))


def _is_abandoned(draft: Path) -> bool:
    try:
        held = os.open(draft, os.O_RDONLY)
    except OSError:  # it has just gone
        return False
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(held)


def _unwritable(error: OSError) -> HarnessError:
    return HarnessError(
        f"cannot write the cache {cache_dir()}: {error.strerror or error} ({error.filename}); "
        f"make room or set {CACHE_VARIABLE} to another directory"
    )
