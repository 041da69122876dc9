"""The stored runs of a directory of results, as the web page lists them."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from fencepost.harness.doctor.stored_runs import is_running
from fencepost.harness.kept.kept_cluster import kept_of
from fencepost.harness.serve.memory import Remembered, stamp_of
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Manifest, RunState, read_manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.report.notation import one_line
from fencepost.report.serve.archive import ListedRun

TIME: Final = re.compile(r"\d{8}T\d{6}Z(-\d\d)?")
"""The name of the directory of a run or a night."""
_NIGHTS: Final = "nights"
_NO_RELEASE: Final = ("none", "not recorded")


@dataclass(frozen=True, slots=True)
class _Known:
    """What the files of a run say; whether it is running, the machine says."""

    listed: ListedRun
    manifest: Manifest | None


class StoredRuns:
    """The runs below a directory. What was read is kept until its files change."""

    def __init__(self, results: Path) -> None:
        self._results = results
        self._known: Remembered[_Known] = Remembered()

    def listed(self) -> list[ListedRun]:
        """Return the runs, the newest first; one that cannot be read says so."""
        found = sorted(self._roots(), key=lambda root: (root.name, root.parent.name), reverse=True)
        return [self._listed(root) for root in found]

    def _roots(self) -> Iterator[Path]:
        for of_scenario in _directories(self._results):
            if of_scenario.name != _NIGHTS:
                yield from (one for one in _directories(of_scenario) if TIME.fullmatch(one.name))

    def _listed(self, root: Path) -> ListedRun:
        run = RunDirectory(root)
        stamp = stamp_of((run.manifest_path, run.verdict_path))
        known = self._known.of(root, stamp, lambda: _read(run))
        if known.manifest is not None and is_running(known.manifest):
            return replace(known.listed, verdict="running")
        if (kept := kept_of(run)) is not None:
            return replace(known.listed, kept_until=kept.until)
        return known.listed


def subject_words(*, cluster: str, release: str, host: str, variant: str = "") -> str:
    """Return what a run ran on: `kafka 4.3.1, docker`; the local host goes without saying."""
    own = not release or release.startswith(_NO_RELEASE)
    first = cluster if own else f"{cluster} {release}"
    return ", ".join(filter(None, (first, "" if host in ("local", "") else host, variant)))


def _directories(parent: Path) -> Iterator[Path]:
    """Yield the directories in one; links lead elsewhere, and are left out."""
    try:
        with os.scandir(parent) as entries:
            names = [one.name for one in entries if one.is_dir(follow_symlinks=False)]
    except OSError:
        return
    yield from (parent / name for name in names if not name.startswith("."))


def _read(run: RunDirectory) -> _Known:
    row = ListedRun(scenario=run.root.parent.name, time=run.root.name, verdict="not readable")
    try:
        manifest = read_manifest(run.manifest_path)
        started = datetime.fromisoformat(manifest.started_at)
    except (HarnessError, ValueError, RecursionError) as error:
        return _Known(replace(row, trouble=one_line(str(error))), None)
    tested = manifest.tested
    row = replace(
        row,
        subject=subject_words(
            cluster=tested["cluster"], release=tested["release"], host=tested["host"]
        ),
        seed=manifest.seed,
        started_at=started.isoformat(),
    )
    if manifest.state is RunState.FAILED:
        why = one_line(manifest.failure or "no reason was recorded")
        return _Known(replace(row, verdict="failed", trouble=why), manifest)
    return _Known(_judged(row, run, manifest), manifest)


def _judged(row: ListedRun, run: RunDirectory, manifest: Manifest) -> ListedRun:
    try:
        verdict: Any = json.loads(run.verdict_path.read_bytes())
        findings = tuple(str(one["identity"]) for one in verdict.get("findings", ()))
        word = _word(verdict["validity"])
        why = _doubt(verdict["checks"]) if word == "unknown" else ""
        return replace(row, verdict=word, findings=findings, trouble=why)
    except FileNotFoundError:
        trouble = "its verdict is gone" if manifest.state is RunState.CHECKED else ""
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        trouble = "its verdict cannot be read"
    return replace(row, verdict="not checked", trouble=trouble)


def _word(validity: object) -> str:
    if validity not in ("valid", "invalid", "unknown"):
        raise ValueError(validity)
    return str(validity)


def _doubt(checks: Any) -> str:
    """Return the reason of the first check without an answer that follows from no other one."""
    for one in checks:
        if one["validity"] == "unknown" and not one.get("follows_from"):
            return one_line(f"{one['check']}: {one['reason']}")
    return ""
