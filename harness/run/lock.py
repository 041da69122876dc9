"""The machine's run lock: one run of processes at a time.

Two clusters on the same cores starve each other's heartbeats, and both verdicts suffer. So a second
run on the machine is refused with the first one's place, unless `--alongside` lets it go on, or
FENCEPOST_WAIT_S lets it wait for so many seconds.
"""

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from fencepost.clusters.provision.cache import cache_dir
from fencepost.harness.scenario.options import RunOptions
from fencepost.harness.scenario.scenario import Scenario
from fencepost.history.failure import UsageError

WAIT_VARIABLE: Final = "FENCEPOST_WAIT_S"
"""The seconds for which a run waits until another one has ended; by default it is refused."""

_WAY_OUT: Final = "wait for it, or pass --alongside (they will compete for the machine)"


def alone(scenario: Scenario, options: RunOptions) -> AbstractContextManager[object]:
    """Keep other runs from taking the machine's time from processes; virtual time needs no lock."""
    if options.cluster.in_virtual_time:
        return nullcontext()
    where = f"{scenario.name} on {options.cluster.title.format(release=scenario.cluster.release)}"
    return only_run(cache_dir(), what=where, alongside=options.alongside)


def refuse_beside_another(scenario: Scenario, *, alongside: bool) -> None:
    """Raise UsageError if another run holds the lock: to be asked before anything is fetched."""
    with only_run(cache_dir(), what=scenario.name, alongside=alongside):
        pass


@contextmanager
def only_run(
    directory: Path, *, what: str, alongside: bool, way_out: str = _WAY_OUT
) -> Iterator[None]:
    """Hold the run lock in `directory`; raise UsageError, with the way out, if another keeps it."""
    if alongside:
        yield
        return
    directory.mkdir(parents=True, exist_ok=True)
    holder = directory / "run.json"
    lock = FileLock(directory / "run.lock")
    try:
        lock.acquire(timeout=_wait_s())
    except Timeout:
        raise UsageError(f"another run is under way: {_holder(holder)}; {way_out}") from None
    try:
        holder.write_text(json.dumps({"pid": os.getpid(), "run": what}))
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def _wait_s() -> float:
    text = os.environ.get(WAIT_VARIABLE, "0")
    try:
        return max(0.0, float(text))
    except ValueError:
        raise UsageError(f"{WAIT_VARIABLE} must be a number of seconds, found {text!r}") from None


def _holder(path: Path) -> str:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return "it has not said which yet"
    return f"{found['run']} (pid {found['pid']})"
