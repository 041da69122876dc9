"""One run of a night, as a process of its own: what hangs is ended, and what crashes is a result.

The warden starts it, in a session of its own. It dies with the night, and whatever of its group
outlives it is killed. What it prints on standard output is one JSON document; the rest is its log.
"""

import json
import signal
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from fencepost.checkers.verdict import Validity, read_verdict
from fencepost.clusters.hosts.warden import Warden
from fencepost.harness.scenario.expectation import expected_findings
from fencepost.harness.series.night_file import Cell
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Manifest, RunState, read_manifest
from fencepost.report.notation import length, one_line

_POLL_S: Final = 0.5
_GRACE_S: Final = 60.0
"""A run that is told to end heals its cluster and writes its manifest, in much less."""
_OURS: Final = "fencepost: "
_TAIL_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldRun:
    """What a run told, or what is known of one that told nothing."""

    told: Mapping[str, Any]
    """As `--json` says it (`harness.cli.verdicts.outcome_json`)."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildRuns:
    """Makes runs as processes."""

    warden: Warden
    results: Path
    logs: Path
    options: Sequence[str] = ()
    """Further words for each command."""
    program: Sequence[str] = (sys.executable, "-m", "fencepost")

    def run(self, cell: Cell, seed: int, *, number: int, look: Callable[[], None]) -> ToldRun:
        """Make a run and wait for its end; `look` is called about twice a second.

        KeyboardInterrupt ends the run first, and goes on. Raises HarnessError if no process can be
        started.
        """
        said, log = self.logs / f"{number:04}.json", self.logs / f"{number:04}.log"
        began, begin_s = datetime.now(UTC), time.monotonic()
        words = ["run", *cell.arguments, "--seed", str(seed), "--results", str(self.results)]
        pid = self.warden.spawn(
            # The warden has one file for both streams; the document has to be apart.
            ["/bin/sh", "-c", 'exec "$@" > "$0"', str(said), *self.program, *words, *self.options],
            name=f"run {number}",
            log=log,
        )
        late = False
        try:
            while (code := self.warden.wait(pid, timeout_s=_POLL_S)) is None:
                look()
                if time.monotonic() - begin_s > cell.bound_s:
                    late = True
                    code = self._end(pid)
                    break
        except BaseException:
            self._end(pid)
            raise
        seconds = time.monotonic() - begin_s
        told = _told(said)
        if told is None:
            bound = f"ended by its bound of {length(cell.bound_s * 1e9)}"
            why = bound if late else _why(log) or f"it ended with exit code {code}"
            told = self._failed(cell, seed, since=began, why=why)
        return ToldRun(told=told, seconds=round(seconds, 3))

    def _end(self, pid: int) -> int | None:
        """End a run by its group: it may say so first."""
        self.warden.signal(pid, signal.SIGTERM)
        if (code := self.warden.wait(pid, timeout_s=_GRACE_S)) is not None:
            return code
        self.warden.signal(pid, signal.SIGKILL, group=True)
        return self.warden.wait(pid, timeout_s=_GRACE_S)

    def _failed(self, cell: Cell, seed: int, *, since: datetime, why: str) -> dict[str, Any]:
        found = _run_since(self.results, cell, seed, since=since)
        place = {} if found is None else {"run": str(found[0])}
        return {"validity": "failed", "error": why, "exit_code": 255, **place}


def judged_run(
    results: Path, cell: Cell, seed: int, *, since: datetime, counted: Collection[str]
) -> dict[str, Any] | None:
    """Return what a run told that came to its verdict when its night was killed; None: none did.

    Its directory is all that is left of it. `counted`: the runs that the night has, relative to the
    results; cells of other releases and flags share their seed with this one.
    """
    found = _run_since(results, cell, seed, since=since, counted=counted)
    if found is None or found[1].state is not RunState.CHECKED:
        return None
    root, manifest = found
    try:
        verdict = read_verdict(root / "verdict.json")
    except HarnessError:
        return None  # it is made again
    named = [one.identity for one in verdict.findings]
    bad = [
        one.check for one in verdict.checks if one.validity in (Validity.INVALID, Validity.KNOWN)
    ]
    reasons = (
        f"{one.check}: {one.reason}"
        for one in verdict.checks
        if one.validity is verdict.validity is not Validity.VALID
    )
    return {
        "validity": str(verdict.validity),
        "run": str(root),
        "reason": next(reasons, ""),
        "findings": named or [f"{manifest.scenario}:{check}" for check in bad],
        "expected": expected_findings(manifest, verdict),
    }


def _run_since(
    results: Path, cell: Cell, seed: int, *, since: datetime, counted: Collection[str] = ()
) -> tuple[Path, Manifest] | None:
    """Return the newest run of the cell's scenario and this seed that began since then."""
    stamp = since.strftime("%Y%m%dT%H%M%SZ")
    for path in sorted((results / cell.scenario).glob("2*Z*/manifest.json"), reverse=True):
        if path.parent.name < stamp:
            return None
        if str(path.parent.relative_to(results)) in counted:
            continue
        try:
            manifest = read_manifest(path)
        except HarnessError:
            continue  # torn, or of another version: not this run's
        if manifest.seed == seed and manifest.cluster == cell.cluster:
            return path.parent, manifest
    return None


def _told(path: Path) -> dict[str, Any] | None:
    try:
        (told,) = json.loads(path.read_bytes())
    except (OSError, ValueError, TypeError):
        return None  # it was ended before, or refused
    return told if isinstance(told, dict) else None


def _why(log: Path) -> str:
    """Return the last words of the run, as its command line says them."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    ours = [line.removeprefix(_OURS) for line in lines if line.startswith(_OURS)]
    return one_line("; ".join(ours[-3:]))
