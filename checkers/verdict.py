"""The answers of checks, and how they merge: invalid first, then unknown.

A check that crashed, ran out of its budget, was skipped, lacked grounds or whose assumptions do not
hold is *unknown*. Unknown never passes a gate and never hides an invalid. A check without a single
case to judge is *not judged*, one that cannot fail on this cluster is a *figure*, and one of which
all findings are *known* by name, as the scenario says, holds nothing against this run: none of
these is evidence for anything, so a run of nothing else is unknown.

`verdict.json` holds a verdict whole, with the first few anomalies of each check; all of them are in
`anomalies/<check>.parquet`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fencepost.checkers.service_level import ServiceLevel
from fencepost.history.atomic import write_atomically
from fencepost.history.failure import HarnessError
from fencepost.history.parsing import parsed

if TYPE_CHECKING:
    from fencepost.checkers.anomaly import Anomaly

_REASONS_MAX: Final = 3
_FORMAT_VERSION: Final = 2


class Validity(StrEnum):
    """The answer of a check and of a run."""

    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"
    NOT_JUDGED = "not judged"
    """The answer of a check only: there was no case to judge."""
    FIGURE = "figure"
    """The answer of a check only: anything that it finds is legal on this cluster."""
    KNOWN = "known"
    """The answer of a check only: all that it found is known by name, and the scenario says so."""


EXIT_CODES: Mapping[Validity, int] = {
    Validity.VALID: 0,
    Validity.INVALID: 1,
    Validity.UNKNOWN: 2,
}
"""The exit code of each validity of a run."""


def reasons_listed(reasons: Sequence[str]) -> str:
    """Return the first few reasons as one, and the number of the others."""
    shown = "; ".join(reasons[:_REASONS_MAX])
    rest = len(reasons) - _REASONS_MAX
    return f"{shown}; and {rest} more" if rest > 0 else shown


def worst(validities: Iterable[Validity]) -> Validity:
    """Return invalid if any is, else unknown if any is, else valid if any is; else unknown."""
    found = set(validities)
    decisive = (Validity.INVALID, Validity.UNKNOWN, Validity.VALID)
    return next((one for one in decisive if one in found), Validity.UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The answer of one check."""

    check: str
    """Its name in the catalogue, e.g. "lost-write"."""
    validity: Validity
    case_count: int = 0
    """Cases that were judged (`checkers.entry.CatalogueEntry.case`), those that hold included."""
    anomaly_count: int = 0
    """All that were found, legal ones included; `anomalies/<check>.parquet` spells out at most
    `checkers.anomaly.PROOFS_MAX` a key."""
    allowed_count: int = 0
    """The number of legal ones among them."""
    reason: str = ""
    """One sentence: why invalid, unknown or not judged. Empty when valid."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """The figures measured on the way; units are suffixes."""
    seconds: float = 0.0
    """The seconds of one core."""
    follows_from: str = ""
    """The check whose anomaly explains why this one is unknown (`checkers.explained`): it is
    told beneath that one, and remains unknown. Empty: it is a doubt of its own."""
    examples: "tuple[Anomaly, ...]" = ()
    """The first few anomalies, those that are never allowed first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """The anomalies of one check that follow from a finding."""

    check: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinding:
    """A cause, by the anomalies nearest to it, and what follows from it (`checkers.findings`)."""

    identity: str
    """The same from run to run: scenario, check, and the parts of the culprit's skeleton, between
    slashes."""
    check: str
    title: str
    scenario: str
    count: int
    """The anomalies of this check that it is."""
    culprit: tuple[str, ...]
    """The parts of the skeleton; empty if the check says no more than its name."""
    consequences: tuple[Consequence, ...] = ()
    """By nearness to the cause."""
    known: str | None = None
    """Its name in `checkers.known_findings`, where the scenario reckons with it; else None."""
    key: str = ""
    """The key of the first one."""
    first_index: int = 0
    """The row of the first one in `anomalies/<check>.parquet`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict on a run: the worst of its checks."""

    validity: Validity
    checks: tuple[CheckResult, ...]
    run_id: str = ""
    service_level: ServiceLevel | None = None
    """The service that the clients got; None: of a verdict by an earlier version."""
    findings: tuple[RunFinding, ...] = ()
    """The anomalies by cause; empty, too, of a run that was checked before causes were told."""

    @staticmethod
    def of(
        checks: Iterable[CheckResult], *, run_id: str = "", findings: Iterable[RunFinding] = ()
    ) -> "Verdict":
        """Return the worst of these, which stand in the order of the catalogue."""
        kept = tuple(checks)
        validity = worst(check.validity for check in kept)
        return Verdict(validity=validity, checks=kept, run_id=run_id, findings=tuple(findings))

    @property
    def exit_code(self) -> int:
        """0 valid, 1 invalid, 2 unknown."""
        return EXIT_CODES[self.validity]


def write_verdict(path: Path, verdict: Verdict, *, about: Mapping[str, Any] = {}) -> None:
    """Replace the verdict at `path`, atomically. Raises HarnessError if the disk refuses.

    `about`: what a reader has to know before the verdict: what it is about, what was waived.
    """
    content = {
        "format_version": _FORMAT_VERSION,
        **about,
        "run_id": verdict.run_id,
        "validity": verdict.validity,
        "exit_code": verdict.exit_code,
        "service_level": None if verdict.service_level is None else asdict(verdict.service_level),
        "findings": [asdict(finding) for finding in verdict.findings],
        "checks": [_written(check) for check in verdict.checks],
    }
    write_atomically(path, (json.dumps(content, indent=2) + "\n").encode())


def read_verdict(path: Path) -> Verdict:
    """Return the verdict at `path`. Raises HarnessError if missing, torn or of another format."""
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise HarnessError(f"cannot read the verdict {path}: {error.strerror}") from error
    except ValueError as error:
        raise HarnessError(f"the verdict {path} is not JSON: {error}") from error
    found = content.get("format_version") if isinstance(content, dict) else None
    if found != _FORMAT_VERSION:
        raise HarnessError(f"the verdict {path} has format {found}, expected {_FORMAT_VERSION}")
    try:
        verdict = Verdict.of(
            map(_read, content["checks"]),
            run_id=content["run_id"],
            findings=map(_finding, content.get("findings", ())),
        )
        stated = Validity(content["validity"])
        if content.get("service_level") is not None:
            told = parsed(ServiceLevel, content["service_level"], where="service_level")
            verdict = replace(verdict, service_level=told)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise HarnessError(f"the verdict {path} is incomplete or wrong: {error!r}") from error
    if stated is not verdict.validity:
        raise HarnessError(
            f"the verdict {path} says {stated}, but its checks say {verdict.validity}"
        )
    return verdict


def _written(check: CheckResult) -> dict[str, Any]:
    plain = {field.name: getattr(check, field.name) for field in fields(check)}
    examples = [example.row() for example in check.examples]
    return plain | {"figures": dict(check.figures), "examples": examples}


def _finding(content: Mapping[str, Any]) -> RunFinding:
    told = {
        "culprit": tuple(content["culprit"]),
        "consequences": tuple(Consequence(**one) for one in content["consequences"]),
    }
    return RunFinding(**{**content, **told})


def _read(content: Mapping[str, Any]) -> CheckResult:
    from fencepost.checkers.anomaly import Anomaly  # noqa: PLC0415  # with pyarrow; scenarios take `Validity`

    examples = tuple(map(Anomaly.of_row, content["examples"]))
    return CheckResult(
        **{**content, "validity": Validity(content["validity"]), "examples": examples}
    )
