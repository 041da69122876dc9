"""The verdict in one word and one sentence: the same words on the page and on the terminal."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from checkers.verdict import CheckResult, Validity, Verdict
from history.manifest import Manifest, RunState
from report.notation import counted, integer, one_line

__all__ = ["Headline", "Standing", "headline_of"]


class Standing(StrEnum):
    """A run's verdict, or why it has none."""

    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"
    FAILED = "failed"
    """The harness could not do its work; this says nothing about the system under test."""
    UNCHECKED = "not checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """What a reader learns in one glance."""

    standing: Standing
    sentence: str
    reasons: tuple[str, ...]
    """Why, a sentence each: of every violated check, of every check without an answer."""


def headline_of(verdict: Verdict | None, *, manifest: Manifest | None) -> Headline:
    """The headline of a run, whether it has a verdict or not."""
    if verdict is None:
        return _without_verdict(manifest)
    invalid = [check for check in verdict.checks if check.validity is Validity.INVALID]
    unknown = [check for check in verdict.checks if check.validity is Validity.UNKNOWN]
    sentence = {
        Validity.VALID: lambda: f"All {counted(len(verdict.checks), 'check')} hold.",
        Validity.INVALID: lambda: _violated(invalid, of=len(verdict.checks)),
        Validity.UNKNOWN: lambda: _unanswered(unknown, of=len(verdict.checks)),
    }[verdict.validity]()
    return Headline(
        standing=Standing(verdict.validity.value),
        sentence=sentence,
        reasons=tuple(_reasons([*invalid, *unknown])),
    )


def _violated(checks: Sequence[CheckResult], *, of: int) -> str:
    named = ", ".join(
        f"{one_line(check.check)} ({integer(check.anomaly_count - check.allowed_count)})"
        for check in checks
    )
    verb = "is" if len(checks) == 1 else "are"
    return f"{integer(len(checks))} of {counted(of, 'check')} {verb} violated: {named}."


def _unanswered(checks: Sequence[CheckResult], *, of: int) -> str:
    if not checks:
        return "No check ran, so nothing is proven."
    return (
        f"No violation was found, but {integer(len(checks))} of {counted(of, 'check')} could not "
        "answer, so nothing is proven."
    )


def _reasons(checks: Iterable[CheckResult]) -> Iterable[str]:
    for check in checks:
        reason = one_line(check.reason) or "no reason was given."
        yield f"{one_line(check.check)} is {check.validity}: {reason}"


def _without_verdict(manifest: Manifest | None) -> Headline:
    if manifest is None:
        return Headline(
            standing=Standing.UNCHECKED,
            sentence="The run has no readable manifest, so nothing can be said about it.",
            reasons=(),
        )
    if manifest.state is RunState.FAILED:
        return Headline(
            standing=Standing.FAILED,
            sentence="The run failed before it could be judged. This is no verdict on the release.",
            reasons=(one_line(manifest.failure or "No reason was recorded."),),
        )
    sentence = {
        RunState.RUNNING: "The run had not ended when this was written, or it was killed.",
        RunState.RECORDED: "The run was recorded and has not been checked.",
        RunState.CHECKED: "The run was checked, but its verdict cannot be read.",
    }[manifest.state]
    return Headline(standing=Standing.UNCHECKED, sentence=sentence, reasons=())
