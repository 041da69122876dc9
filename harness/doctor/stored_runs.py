"""The runs in a directory of results: what they are, how large, and which of them may go.

A run that is pinned is never removed or thinned, nor is one under way, or whose cluster is kept
running.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from fencepost.clusters.hosts.process import harness_lives
from fencepost.harness.kept.kept_cluster import kept_of
from fencepost.history.atomic import write_atomically
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Manifest, RunState, read_manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.history.thinned import is_thinned

_PIN: Final = "pinned"
_AT_ITS_END: Final = frozenset({RunState.CHECKED, RunState.FAILED})
"""A series goes on in the process that made the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """One run on disk."""

    run: RunDirectory
    scenario: str
    started_at: datetime
    verdict: str
    """`valid`, `invalid`, `unknown`, `failed`, `not checked`, or `running`."""
    release: str
    seed: int
    size_bytes: int
    pinned: bool
    thinned: bool
    kept_until: str | None
    """UTC, ISO 8601, of a run whose cluster is kept running; else None."""

    @property
    def name(self) -> str:
        """The name by which commands find it: `smoke/20260301T080000Z`."""
        return f"{self.run.root.parent.name}/{self.run.root.name}"

    @property
    def may_go(self) -> bool:
        """Return whether it may be removed."""
        return not self.pinned and self.verdict != "running" and self.kept_until is None

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {
            "run": str(self.run.root),
            "scenario": self.scenario,
            "started_at": self.started_at.isoformat(),
            "verdict": self.verdict,
            "release": self.release,
            "seed": self.seed,
            "bytes": self.size_bytes,
            "pinned": self.pinned,
            "thinned": self.thinned,
            "kept_until": self.kept_until,
        }


def stored_runs(results: Path) -> list[StoredRun]:
    """Return the runs there are, the oldest first; one whose manifest cannot be read is none."""
    found = []
    for path in sorted(results.glob("*/2*Z*/manifest.json"), key=lambda path: path.parent.name):
        try:
            manifest = read_manifest(path)
        except HarnessError:
            continue  # of an older format: not ours to remove
        found.append(_stored(RunDirectory(path.parent), manifest))
    return found


def beyond_newest(runs: Sequence[StoredRun], count: int) -> list[StoredRun]:
    """Return the runs but for the newest `count` of each scenario."""
    spared: Counter[str] = Counter()
    older = []
    for run in reversed(runs):
        spared[run.scenario] += 1
        if spared[run.scenario] > count:
            older.append(run)
    return older[::-1]


def pin(runs: Iterable[RunDirectory]) -> None:
    """Keep these runs for good. Raises HarnessError if the disk refuses."""
    for run in runs:
        write_atomically(run.root / _PIN, b"")


def unpin(runs: Iterable[RunDirectory]) -> None:
    """Let these runs be removed again."""
    for run in runs:
        (run.root / _PIN).unlink(missing_ok=True)


def is_running(manifest: Manifest) -> bool:
    """Return whether the run is under way."""
    return manifest.state not in _AT_ITS_END and is_alive(manifest.harness)


def is_alive(harness: str | None) -> bool:
    """Return whether the process lives that a file names as the harness it was written by."""
    if harness is None:
        return False
    try:
        return harness_lives(harness)
    except (OSError, ValueError):
        return False  # no mark of ours: results may come from others


def _stored(run: RunDirectory, manifest: Manifest) -> StoredRun:
    return StoredRun(
        run=run,
        scenario=manifest.scenario,
        started_at=datetime.fromisoformat(manifest.started_at).astimezone(UTC),
        verdict=_verdict(run, manifest),
        release=manifest.release,
        seed=manifest.seed,
        size_bytes=_size_bytes(run.root),
        pinned=(run.root / _PIN).exists(),
        thinned=is_thinned(run),
        kept_until=None if (kept := kept_of(run)) is None else kept.until,
    )


def _verdict(run: RunDirectory, manifest: Manifest) -> str:
    if is_running(manifest):
        return "running"
    if manifest.state is RunState.FAILED:
        return "failed"
    try:
        return str(json.loads(run.verdict_path.read_bytes())["validity"])
    except (OSError, ValueError, KeyError, TypeError):
        return "not checked"


def _size_bytes(root: Path) -> int:
    """Return what its files occupy on the disk."""
    total = 0
    for directory, _, names in os.walk(root):
        for name in names:
            try:
                total += (Path(directory) / name).lstat().st_blocks * 512
            except OSError:
                continue  # it went meanwhile
    return total
