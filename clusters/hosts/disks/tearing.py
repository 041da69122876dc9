"""The unsynced writes of a process, of which a part reaches the disk before the power is lost.

The kernel writes back in any order and at any time, so a power cut may leave a log that ends in
the middle of a batch. Here it writes a drawn part of a drawn file, by its own means
(`sync_file_range`), and nothing that it could not have written on its own: the result is legal. The
parts are whole pages, or what the file system keeps together.
"""

import os
import random
from pathlib import Path
from typing import Final

from clusters.hosts.disks.calls import sync_head

__all__ = ["tear"]

_WITNESS: Final = "written-back"
_TORN_MAX: Final = 3


def tear(mount_point: Path, *, seed: str) -> str:
    """Write a part of up to three logs, each drawn from the seed; which, in words.

    The process that writes them must be stopped. Raises OSError as the kernel does.
    """
    draw = random.Random(seed)  # noqa: S311 -- a choice, no secret
    logs = sorted(
        path for path in mount_point.rglob("*.log") if path.is_file() and path.stat().st_size
    )
    chosen = draw.sample(logs, min(len(logs), draw.randint(1, _TORN_MAX)))
    parts = [(path, draw.randint(1, path.stat().st_size)) for path in chosen]
    for path, size_bytes in parts:
        sync_head(path, size_bytes)
    _commit(mount_point)
    names = (f"{size_bytes} bytes of {path.relative_to(mount_point)}" for path, size_bytes in parts)
    return f"written back before: {', '.join(names) or 'nothing'}"


def _commit(mount_point: Path) -> None:
    """Have the file system's journal written: sizes and names as they are, data left alone."""
    descriptor = os.open(mount_point / _WITNESS, os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    (mount_point / _WITNESS).unlink()
