"""Runs without their evidence: what was found stays, and nothing can be judged again.

A thinned run keeps its manifest, verdict, anomalies, page and JUnit file, the scenario and the play
that repeat it. Its tables and the files of nodes and clients are gone. `thinned.json` is written
before anything is removed, so that half a history is never taken for a whole one.
"""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from fencepost.history.atomic import write_atomically
from fencepost.history.failure import UsageError
from fencepost.history.run_directory import RunDirectory

_REMOVED: Final = ("history", "raw", "nodes", "clients")


def thin(run: RunDirectory, *, now: datetime | None = None) -> None:
    """Remove the evidence of a run that was judged. Raises HarnessError if the disk refuses."""
    at = (now or datetime.now(UTC)).isoformat(timespec="seconds")
    content = json.dumps({"thinned_at": at, "removed": list(_REMOVED)}, indent=2)
    write_atomically(_marker(run), content.encode() + b"\n")
    for name in _REMOVED:
        shutil.rmtree(run.root / name, ignore_errors=True)


def is_thinned(run: RunDirectory) -> bool:
    """Return whether the run's evidence was removed."""
    return _marker(run).is_file()


def refuse_thinned(run: RunDirectory) -> None:
    """Raise UsageError if the run was thinned: its page and verdict say all that is left of it."""
    if is_thinned(run):
        raise UsageError(
            f"{run.root} was thinned: its tables and the logs of nodes and clients are gone, so "
            f"no check can be made again, and no page be drawn. {run.verdict_path.name} and "
            f"{run.report_path.name} are what was found; 'fencepost replay {run.root}' repeats it"
        )


def _marker(run: RunDirectory) -> Path:
    return run.root / "thinned.json"
