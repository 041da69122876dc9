"""What the page of one run shows: little is read of it, however long the run was."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.checkers.proof import FactKind
from fencepost.checkers.verdict import CheckResult, RunFinding, Validity
from fencepost.history.run_directory import RunDirectory
from fencepost.report.forensics import Stories, stories_at
from fencepost.report.head import HeadFact, identity_facts
from fencepost.report.headline import Headline, headline_of
from fencepost.report.reading import Attempts, read_answers
from fencepost.report.service import ServiceFact, service_facts
from fencepost.report.tables import Folder, provenance_of

_DOWNLOADS: Final = ("junit.xml", "verdict.json", "manifest.json", "play.yaml", "scenario.yaml")
_NS: Final = 1e9
_FIRST: Final = {Validity.INVALID: 0, Validity.UNKNOWN: 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldFinding:
    """A finding, with its first example."""

    finding: RunFinding
    sentence: str
    """The proof of the first example; empty: the verdict has none."""
    at_s: float | None
    """The first time that the proof names, in seconds of the run's clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run in any state."""

    headline: Headline
    identity: tuple[HeadFact, ...]
    service: tuple[ServiceFact, ...]
    command: str
    failure: str
    findings: tuple[ToldFinding, ...]
    stories: Stories
    checks: Sequence[CheckResult]
    """Those that are invalid first, then those without an answer."""
    folders: tuple[Folder, ...]
    files_complete: bool
    has_report: bool
    downloads: tuple[str, ...]
    troubles: tuple[str, ...]


def run_view(root: Path) -> RunView:
    """Return what is to be shown of the run in a directory; what cannot be read is a trouble."""
    run, attempts = RunDirectory(root), Attempts()
    answers = read_answers(run)
    manifest, verdict = answers.manifest, answers.verdict
    stories = attempts.read(lambda: stories_at(run.forensics_path), Stories())
    provenance = provenance_of(run, answers)
    checks = verdict.checks if verdict else ()
    level = verdict.service_level if verdict else None
    return RunView(
        headline=headline_of(verdict, manifest=manifest),
        identity=tuple(identity_facts(manifest)) if manifest else (),
        service=tuple(service_facts(level)) if level else (),
        command=manifest.command if manifest else "",
        failure=(manifest.failure or "") if manifest and verdict else "",
        findings=tuple(_told(verdict.findings, checks)) if verdict else (),
        stories=stories,
        checks=sorted(checks, key=lambda check: _FIRST.get(check.validity, len(_FIRST))),
        folders=provenance.folders,
        files_complete=provenance.complete,
        has_report=run.report_path.is_file(),
        downloads=tuple(name for name in _DOWNLOADS if (root / name).is_file()),
        troubles=(*answers.troubles, *attempts.troubles),
    )


def _told(findings: Sequence[RunFinding], checks: Sequence[CheckResult]) -> Iterator[ToldFinding]:
    examples = {check.check: check.examples for check in checks}
    for finding in findings:
        told = [one for one in examples.get(finding.check, ()) if not one.allowed]
        first = next((one for one in told if one.key == finding.key), None)
        times = (
            []
            if first is None
            else [
                fact.value
                for fact in first.proof.facts
                if fact.kind is FactKind.TIME and isinstance(fact.value, int)
            ]
        )
        yield ToldFinding(
            finding=finding,
            sentence="" if first is None else first.detail,
            at_s=min(times) / _NS if times else None,
        )
