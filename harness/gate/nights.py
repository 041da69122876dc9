"""Nights as they are stored: `results/nights/<name>/<time>/night.json`, a line of facts a run.

A file that is torn, or has another shape, is refused in one line that names it: a night that is
read wrong would pass a gate.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from fencepost.history.failure import UsageError

FILE: Final = "night.json"
NIGHTS_MAX: Final = 90
"""The nights before that a night is held against: three months."""
_TIME: Final = re.compile(r"\d{8}T\d{6}Z")


class NightVerdict(StrEnum):
    """The verdict of one run of a night."""

    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"
    FAILED = "failed"
    """The harness could not do its work, and there is no verdict."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class RunSubject:
    """What was run: runs of one subject are repetitions, and their findings have one rate."""

    scenario: str
    system: str
    cluster: str
    release: str
    host: str
    variant: str

    @property
    def words(self) -> str:
        """The subject in a few words: scenario, release, and what is out of the ordinary."""
        rest = (self.release, self.variant, *((self.host,) if self.host != "local" else ()))
        plain = " ".join(filter(None, rest)) or self.cluster
        return f"{self.scenario} on {plain}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One run."""

    subject: RunSubject
    seed: int | None
    run: str | None
    """Its directory, relative to the results."""
    verdict: NightVerdict
    reason: str
    findings: tuple[str, ...]
    """Their identities (`checkers.findings`)."""
    expected: frozenset[str]
    """Those of them that the scenario expects of this release."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutRecord:
    """Runs that were planned and not made."""

    scenario: str
    release: str
    runs: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NightRecord:
    """A night, whole or as far as it came."""

    name: str
    path: Path
    started_at: str
    """UTC, ISO 8601."""
    ended: bool
    harness: str | None
    """The identity of the process that made or makes it; None: it is of an older release."""
    runs: tuple[RunRecord, ...]
    left_out: tuple[LeftOutRecord, ...]

    @property
    def label(self) -> str:
        """Its name and time."""
        return f"{self.name}/{self.path.parent.name}"


def stored_night(results: Path, name: str | None) -> Path:
    """Return the file of a night: by path, by `NAME/TIME`, or of a name the newest; None: of all.

    Raises UsageError if there is none.
    """
    nights = results / "nights"
    if name is not None:
        for path in (Path(name), nights / name):
            if path.is_file():
                return path
            if (path / FILE).is_file():
                return path / FILE
    found = sorted(_stored(nights / (name or "*")), key=lambda path: path.parent.name)
    if found:
        return found[-1]
    wanted = "is no night, nor the file of one" if name else "has no night"
    raise UsageError(f"{name or nights} {wanted}; `fencepost night` makes them in {nights}")


def nights_before(night: NightRecord, *, at_most: int) -> tuple[Path, ...]:
    """Return the files of the nights of this name that began before, newest first."""
    if not _TIME.fullmatch(night.path.parent.name):
        return ()
    before = (
        path
        for path in _stored(night.path.parent.parent)
        if path.parent.name < night.path.parent.name
    )
    return tuple(sorted(before, key=lambda path: path.parent.name, reverse=True)[:at_most])


def _stored(of_name: Path) -> Iterable[Path]:
    found = of_name.parent.glob(f"{of_name.name}/*/{FILE}")
    return (path for path in found if _TIME.fullmatch(path.parent.name))


def read_night(path: Path) -> NightRecord:
    """Return the night of a file. Raises UsageError, in one line, if it is not whole."""
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: cannot read it: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not JSON: {error}") from None
    try:
        return NightRecord(
            name=_of(content, "night", str),
            path=path.resolve(),
            started_at=_of(content, "started_at", str),
            ended=_of(content, "ended_at", str | None) is not None,
            harness=_of({"harness": None, **content}, "harness", str | None),
            runs=tuple(_each(content, "runs", _run)),
            left_out=tuple(_each(content, "left_out", _left_out)),
        )
    except ValueError as error:
        raise UsageError(f"{path}: not the file of a night: {error}") from None


def _run(found: Mapping[str, Any]) -> RunRecord:
    verdict = _of(found, "verdict", str)
    if verdict not in set(NightVerdict):
        raise ValueError(f"verdict: expected one of {', '.join(NightVerdict)}, found {verdict!r}")
    findings = _identities(found, "findings")
    # Nights of older releases have no such key.
    expected = _identities(found, "expected") if "expected" in found else ()
    return RunRecord(
        subject=RunSubject(
            **{name: _of(found, name, str) for name in ("scenario", "system", "cluster")},
            **{name: _of(found, name, str | None) or "" for name in ("release", "host", "variant")},
        ),
        seed=_of(found, "seed", int | None),
        run=_of(found, "run", str | None),
        verdict=NightVerdict(verdict),
        reason=_of(found, "reason", str | None) or "",
        findings=findings,
        expected=frozenset(expected),
        seconds=float(_of(found, "seconds", int | float | None) or 0),
    )


def _identities(found: Mapping[str, Any], name: str) -> tuple[str, ...]:
    identities = _of(found, name, list)
    if not all(isinstance(one, str) and one for one in identities):
        raise ValueError(f"{name}: expected a list of identities")
    return tuple(dict.fromkeys(identities))


def _left_out(found: Mapping[str, Any]) -> LeftOutRecord:
    return LeftOutRecord(
        scenario=_of(found, "scenario", str),
        release=_of(found, "release", str | None) or "",
        runs=_of(found, "runs", int),
        reason=_of(found, "reason", str | None) or "",
    )


def _each(content: Mapping[str, Any], name: str, read: Any) -> Sequence[Any]:
    told = []
    for place, one in enumerate(_of(content, name, list)):
        try:
            told.append(read(one))
        except ValueError as error:
            raise ValueError(f"{name}[{place}]: {error}") from None
    return told


def _of(content: object, name: str, kind: Any) -> Any:
    """Return the value of a key, if it is there and of its kind; else raise ValueError."""
    if not isinstance(content, Mapping):
        raise ValueError("expected an object")  # noqa: TRY004 - of the file, not of an argument
    if name not in content:
        raise ValueError(f"{name} is missing")
    value = content[name]
    if isinstance(value, bool) or not isinstance(value, kind):
        raise ValueError(f"{name} has the wrong type: {json.dumps(value):.80}")  # noqa: TRY004 - as above
    return value
