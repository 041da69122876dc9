"""One run at a time on a machine, unless the user asks for more.

Two clusters on the same cores starve each other's heartbeats, and both verdicts suffer: a second
run is refused with the first one's place. `--alongside` lets it go on all the same.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from history.failure import UsageError

__all__ = ["only_run"]


@contextmanager
def only_run(directory: Path, *, what: str, alongside: bool) -> Iterator[None]:
    """Hold the machine's run lock in `directory`; raise UsageError if another run holds it."""
    if alongside:
        yield
        return
    directory.mkdir(parents=True, exist_ok=True)
    holder = directory / "run.json"
    lock = FileLock(directory / "run.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise UsageError(
            f"another run is under way: {_holder(holder)}; wait for it, or pass --alongside "
            "(they will compete for the machine)"
        ) from None
    try:
        holder.write_text(json.dumps({"pid": os.getpid(), "run": what}))
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def _holder(path: Path) -> str:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return "it has not said which yet"
    return f"{found['run']} (pid {found['pid']})"
