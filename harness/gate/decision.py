"""Whether a night passes: each call held against the known issues, and the exit code.

Whatever a night found gates, new or not: a cluster that broke a promise yesterday, too, is not well
today. A known issue suspends that until its date, and the scenario what it expects of the release.
The code masks nothing: 1 comes before 255, that before 2, as over several runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from fencepost.harness.gate.called import (
    CONFIDENCE,
    CalledFinding,
    Doubt,
    FindingCall,
    called,
    doubts,
    excess_p_value,
)
from fencepost.harness.gate.known_issues import KnownIssue
from fencepost.harness.gate.nights import NightRecord, NightVerdict

PASSED: Final = 0
GATED: Final = 1
UNSURE: Final = 2
FAILED: Final = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedFinding:
    """A call, and whether it gates."""

    found: CalledFinding
    suspended: str = ""
    """Why it does not gate although it was seen; empty if nothing suspends it."""
    lapsed: str = ""
    """Why a known issue that is about it suspends nothing."""

    @property
    def gates(self) -> bool:
        """Whether it fails the gate."""
        return self.found.call in {FindingCall.NEW, FindingCall.ONGOING} and not self.suspended


@dataclass(frozen=True, slots=True, kw_only=True)
class GateDecision:
    """What is to be said of a night."""

    night: NightRecord
    against: tuple[str, ...]
    """The labels of the nights that it was held against, newest first."""
    judgements: tuple[GatedFinding, ...]
    """Those that gate first, then new, ongoing, resolved, not seen."""
    doubts: tuple[Doubt, ...]
    warnings: tuple[str, ...]

    @property
    def gating(self) -> tuple[GatedFinding, ...]:
        """What fails the gate."""
        return tuple(one for one in self.judgements if one.gates)

    @property
    def new(self) -> tuple[GatedFinding, ...]:
        """The new findings that gate."""
        return tuple(one for one in self.gating if one.found.call is FindingCall.NEW)

    @property
    def lacking(self) -> tuple[str, ...]:
        """Why the night is not enough to pass, a sentence each."""
        told = [] if self.night.ended else ["the night did not come to its end"]
        if not self.night.runs:
            told.append("no run was made")
        told += (
            f"{one.runs} runs of {one.scenario} {one.release} were left out: {one.reason}"
            for one in self.night.left_out
            if one.runs
        )
        return tuple(told)

    @property
    def exit_code(self) -> int:
        """1 if anything gates, else 255 if a run failed, else 2 if it is not enough, else 0."""
        if self.gating:
            return GATED
        verdicts = {one.verdict for one in self.doubts}
        if NightVerdict.FAILED in verdicts:
            return FAILED
        return UNSURE if verdicts or self.lacking else PASSED


def decided(
    night: NightRecord, before: Sequence[NightRecord], issues: Sequence[KnownIssue], *, today: date
) -> GateDecision:
    """Return the decision on a night; `before`: the nights that it is held against, oldest first.

    `today`: the day that known issues have to outlast.
    """
    used: set[KnownIssue] = set()
    judged = [_judged(one, issues, today, used) for one in called(night, before)]
    scenarios = {run.subject.scenario for run in night.runs}
    warnings = [
        f"{issue.place}: {reason}"
        for issue in issues
        if (reason := issue.lapsed(today) or _unused(issue, used, scenarios))
    ]
    return GateDecision(
        night=night,
        against=tuple(one.label for one in reversed(before)),
        judgements=tuple(sorted(judged, key=lambda one: not one.gates)),
        doubts=doubts(night),
        warnings=tuple(warnings),
    )


def day_of(night: NightRecord) -> date:
    """Return the day on which a night began; today if it does not tell."""
    try:
        return datetime.fromisoformat(night.started_at).date()
    except ValueError:
        return date.today()  # noqa: DTZ011 - known issues end by the user's own calendar


def _judged(
    found: CalledFinding, issues: Sequence[KnownIssue], today: date, used: set[KnownIssue]
) -> GatedFinding:
    lapsed = []
    for issue in issues:
        if not issue.covers(found.identity, found.subject.release):
            continue
        used.add(issue)
        reason = issue.lapsed(today) or _too_often(found, issue)
        if not reason:
            words = f"{issue.issue} until {issue.until}: {issue.reason}"
            return GatedFinding(found=found, suspended=words)
        lapsed.append(f"{issue.issue}: {reason}")
    by_scenario = ""
    if found.in_valid_runs:
        by_scenario = "the scenario, which reckons with it by name"
    elif found.is_expected:
        by_scenario = "the scenario, which expects it of this release"
    return GatedFinding(found=found, suspended=by_scenario, lapsed="; ".join(lapsed))


def _too_often(found: CalledFinding, issue: KnownIssue) -> str:
    """Return why the finding surely shows more often than it is known to, or ""."""
    seen = found.tonight
    if issue.rate_max is None or not seen.hits:
        return ""
    p_value = excess_p_value(seen, issue.rate_max)
    if p_value > 1 - CONFIDENCE:
        return ""
    return f"{seen.hits} of {seen.runs} runs is more than rate_max {issue.rate_max:g}"


def _unused(issue: KnownIssue, used: set[KnownIssue], scenarios: set[str]) -> str:
    if issue in used:
        return ""
    if issue.finding.split("/", 1)[0] not in scenarios:
        return f"{issue.finding}: no run of its scenario in this night"
    return f"{issue.finding}: nothing of this night or those before; is it fixed?"
