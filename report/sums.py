"""Runs summed up: the runs of a series or a night as rows, and all of them in one line.

Runs of one scenario on one release, host and variant are a group. A kind of fault that never took
effect, and a check that never had a case, is told of runs with a verdict alone.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

from fencepost.report.notation import counted, integer, one_line, shortened

VERDICTS: Final = ("valid", "invalid", "unknown", "failed")
"""The verdicts of summed runs; a run that failed has no verdict of the checks."""
_REASON_MAX: Final = 120
_NAMED_MAX: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SummedRun:
    """One run of a series or of a night."""

    scenario: str
    system: str
    cluster: str
    """The kind of its nodes, as `--cluster` names it."""
    release: str | None
    """The release, as it was asked for; None: nodes of our own run none."""
    host: str = "local"
    variant: str = ""
    """The flags that tell it from others of the scenario."""
    seed: int
    run: str | None
    """The run's directory, if it has one that is known."""
    verdict: str
    """One of VERDICTS."""
    reason: str = ""
    """The reason why it is not valid."""
    findings: tuple[str, ...] = ()
    """The identities of its findings, the known ones among them."""
    as_expected: bool = False
    """Of a night's run: `is_as_expected`."""
    seconds: float
    """The wall time to its verdict."""
    command: str = ""
    issue: str | None = None
    """The issue that the scenario is about."""
    faults: Mapping[str, int] = field(default_factory=dict)
    """The faults that took effect, by each kind that was asked for."""
    not_judged: frozenset[str] = frozenset()
    """The checks that had no case."""

    @property
    def subject(self) -> str:
        """What its scenario ran on: `kafka 4.3.1, docker, --metadata-version 3.3`."""
        release = None if self.release is None else f"{self.cluster} {self.release}"
        host = "" if self.host == "local" else self.host
        return ", ".join(filter(None, (release or self.cluster, host, self.variant)))

    @property
    def found(self) -> tuple[str, ...]:
        """Its findings, without the scenario's name where they begin with it."""
        return tuple(one.removeprefix(f"{self.scenario}:") for one in self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutCell:
    """Runs that were not made."""

    scenario: str
    subject: str
    run_count: int
    """0: as many as there would have been time for."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGroup:
    """The runs of one scenario on one subject."""

    scenario: str
    subject: str
    runs: tuple[SummedRun, ...]

    def count(self, verdict: str) -> int:
        """Return the number of runs with this verdict."""
        return sum(run.verdict == verdict for run in self.runs)

    @property
    def found(self) -> Mapping[str, int]:
        """The number of runs with each finding, the most frequent first."""
        return _found(self.runs)

    @property
    def median_seconds(self) -> float:
        """The median of the wall times."""
        return median(run.seconds for run in self.runs)


def is_as_expected(verdict: str, findings: Collection[str], expected: Collection[str]) -> bool:
    """Return whether a run is invalid by nothing but what its scenario expects of the release."""
    return verdict == "invalid" and bool(findings) and set(findings) <= set(expected)


def summed_run(told: Mapping[str, Any], **known: Any) -> SummedRun:
    """Return a run of which `--json` told this (`harness.cli.verdicts.outcome_json`).

    `known`: the other fields.
    """
    checks = told.get("checks", {})
    empty = (name for name, one in checks.items() if one["validity"] == "not judged")
    return SummedRun(
        verdict=told["validity"],
        run=told.get("run"),
        reason=one_line(told.get("error") or told.get("reason", "")),
        findings=tuple(told.get("findings", ())),
        faults={kind: one["took_effect"] for kind, one in told.get("faults", {}).items()},
        not_judged=frozenset(empty),
        **known,
    )


def run_groups(runs: Iterable[SummedRun]) -> tuple[RunGroup, ...]:
    """Return the groups in the order of their first runs."""
    found: dict[tuple[str, str], list[SummedRun]] = {}
    for run in runs:
        found.setdefault((run.scenario, run.subject), []).append(run)
    return tuple(
        RunGroup(scenario=scenario, subject=subject, runs=tuple(own))
        for (scenario, subject), own in found.items()
    )


def sum_line(runs: Sequence[SummedRun], *, left_out: Sequence[LeftOutCell] = ()) -> str:
    """Return all of them in one line.

    `18 of 20 valid, 1 invalid: lost-write (KAFKA-1), 1 unknown: …; no kill took effect
    in 8 runs`.
    """
    if not runs:
        return f"no run was made{_left_out(left_out)}"
    by_verdict = {
        verdict: [run for run in runs if run.verdict == verdict and not run.as_expected]
        for verdict in VERDICTS[1:]
    }
    by_verdict["invalid as expected"] = [run for run in runs if run.as_expected]
    valid = len(runs) - sum(map(len, by_verdict.values()))
    parts = [f"{integer(valid)} of {integer(len(runs))} valid"]
    for verdict, those in by_verdict.items():
        if those:
            words = _found_words(those) if "invalid" in verdict else _reasons(those)
            parts.append(f"{integer(len(those))} {verdict}: {words}")
    known = [run for run in runs if run.verdict != "invalid" and run.findings]
    if known:
        parts.append(f"findings that are known: {_found_words(known)}")
    return "; ".join((", ".join(parts), *_idle_faults(runs))) + _left_out(left_out)


def not_judged_in(runs: Sequence[SummedRun]) -> tuple[str, ...]:
    """Return the checks that had no case in any of the runs with a verdict."""
    judged = [run.not_judged for run in runs if run.verdict != "failed"]
    return tuple(sorted(frozenset.intersection(*judged))) if judged else ()


def _found(runs: Iterable[SummedRun]) -> Mapping[str, int]:
    return dict(Counter(name for run in runs for name in run.found).most_common())


def _found_words(runs: Sequence[SummedRun]) -> str:
    """Return each finding, how many runs have it, and the issue that their scenario is about."""
    named = []
    for name, count in _found(runs).items():
        issues = dict.fromkeys(run.issue for run in runs if run.issue and name in run.found)
        of = f" in {integer(count)}" if len(runs) > 1 else ""
        about = f" ({one_line(', '.join(issues))})" if issues else ""
        named.append(f"{one_line(name)}{of}{about}")
    return _first(named) or "no finding is named"


def _reasons(runs: Sequence[SummedRun]) -> str:
    reasons = dict(Counter(run.reason for run in runs).most_common())
    first, *others = (shortened(one, length_max=_REASON_MAX) or "no reason" for one in reasons)
    return f"{first} (and {counted(len(others), 'other reason')})" if others else first


def _idle_faults(runs: Sequence[SummedRun]) -> Iterator[str]:
    """Yield the kinds of fault that never took effect in a run that was asked for them."""
    idle = Counter(
        kind
        for run in runs
        if run.verdict != "failed"
        for kind, count in run.faults.items()
        if not count
    )
    named = [
        f"no {one_line(kind)} took effect in {counted(count, 'run')}"
        for kind, count in idle.most_common()
    ]
    if named:
        yield _first(named)


def _left_out(left_out: Sequence[LeftOutCell]) -> str:
    if not left_out:
        return ""
    subjects = [f"{one.scenario} on {one.subject} ({one_line(one.reason)})" for one in left_out]
    return f"; left out: {_first(subjects)}"


def _first(words: Sequence[str]) -> str:
    rest = len(words) - _NAMED_MAX
    return ", ".join(words[:_NAMED_MAX]) + (f" and {integer(rest)} more" if rest > 0 else "")
