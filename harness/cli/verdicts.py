"""The outcomes of runs as lines, as JSON and as an exit code."""

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from fencepost.checkers.grounds.fault_kinds import kinds_in
from fencepost.checkers.verdict import Validity
from fencepost.harness.run.outcome import RunOutcome
from fencepost.harness.scenario.expectation import expected_findings
from fencepost.harness.series.window_grid import kinds_json, windows_of_run
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import read_manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.report.service import service_json
from fencepost.report.terminal import verdict_text

_WORST_FIRST = (1, 255, 2, 0)


def say_verdict(outcome: RunOutcome, *, aside: bool) -> None:
    """Print the verdict, its grounds and where the report lies.

    `aside`: to standard error, because standard output belongs to a JSON document.
    """
    console = Console(stderr=aside, soft_wrap=True, highlight=False)
    console.print(verdict_text(outcome.verdict, outcome.run, as_expected=outcome.as_expected))


def outcome_json(outcome: RunOutcome | HarnessError) -> dict[str, Any]:
    """Return the outcome of one run as JSON data."""
    if isinstance(outcome, HarnessError):
        return {"validity": "failed", "error": str(outcome), "exit_code": 255}
    windows = windows_of_run(outcome)
    manifest = read_manifest(outcome.run.manifest_path)
    return {
        "waived": list(manifest.waived),
        **manifest.tested,
        "seed": manifest.seed,
        "run": str(outcome.run.root),
        "validity": str(outcome.verdict.validity),
        "as_expected": outcome.as_expected,
        "exit_code": outcome.verdict.exit_code,
        "reason": _reason(outcome),
        "findings": findings_of(outcome),
        "expected": list(expected_findings(manifest, outcome.verdict)),
        "verdict": str(outcome.run.verdict_path),
        "report": str(outcome.run.report_path),
        "service_level": None
        if (level := outcome.verdict.service_level) is None
        else (service_json(level)),
        "faults": {
            one.kind: {
                "begun": one.begun_count,
                "took_effect": one.effect_count,
                "acknowledged_sends": one.acknowledged_sends_count,
                "reads": one.reads_count,
            }
            for one in kinds_in(outcome.verdict)
        },
        "nemesis": _figures(outcome, "as-planned"),
        "windows": None if windows is None else kinds_json(windows),
        "checks": {
            check.check: {
                "validity": str(check.validity),
                "cases": check.case_count,
                "anomalies": check.anomaly_count,
                "reason": check.reason,
            }
            for check in outcome.verdict.checks
        },
    }


def findings_of(outcome: RunOutcome) -> list[str]:
    """Return the identities of the run's findings, the known ones among them.

    `verdict.json` has them; one that has none names its findings by the checks.
    """
    try:
        content = json.loads(outcome.run.verdict_path.read_bytes())
        told = content.get("findings") if isinstance(content, dict) else None
        if told is not None:
            return [str(one["identity"]) for one in told]
    except (OSError, ValueError, TypeError, KeyError):
        pass  # what cannot be read is told by the checks below
    scenario = read_manifest(outcome.run.manifest_path).scenario
    found = (Validity.INVALID, Validity.KNOWN)
    return [
        f"{scenario}:{check.check}" for check in outcome.verdict.checks if check.validity in found
    ]


def _reason(outcome: RunOutcome) -> str:
    """Return why the run is not valid: the reason of the first check that says so."""
    validity = outcome.verdict.validity
    if validity is Validity.VALID:
        return ""
    reasons = (
        f"{check.check}: {check.reason}"
        for check in outcome.verdict.checks
        if check.validity is validity and not check.follows_from
    )
    return next(reasons, "no check had a case to judge")


def _figures(outcome: RunOutcome, name: str) -> dict[str, float]:
    """Return the figures of a check; those of the run's course are about its random faults."""
    checks = outcome.verdict.checks
    return next((dict(check.figures) for check in checks if check.check == name), {})


def invalid_runs(outcomes: Sequence[RunOutcome | HarnessError]) -> list[RunDirectory]:
    """Return the runs whose verdict is invalid, whether their scenario expects it or not."""
    return [
        one.run
        for one in outcomes
        if isinstance(one, RunOutcome) and one.verdict.validity is Validity.INVALID
    ]


def exit_code_of(outcomes: Sequence[RunOutcome | HarnessError]) -> int:
    """Return 1 if any run is invalid, else 255 if any failed, else 2 if any is unknown, else 0."""
    codes = {
        255 if isinstance(outcome, HarnessError) else outcome.verdict.exit_code
        for outcome in outcomes
    }
    return next(code for code in _WORST_FIRST if code in codes)
