"""The verdict in one word and one sentence: the same words on the page and on the terminal.

A valid run says what its word rests on: how many checks hold, which had nothing to judge and which
could not have failed. One that is unknown says first why.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fencepost.checkers.grounds.windows import window_kinds_in
from fencepost.checkers.verdict import CheckResult, Validity, Verdict
from fencepost.history.manifest import Manifest, RunState
from fencepost.report.kinds import without_effect
from fencepost.report.notation import counted, integer, length, one_line, shortened

_FIRST_REASON_MAX: Final = 240


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
    """The facts that a reader takes in at one glance."""

    standing: Standing
    sentence: str
    reasons: tuple[str, ...]
    """The reasons, a sentence each: of every violated check, of every check without an answer."""


def headline_of(verdict: Verdict | None, *, manifest: Manifest | None) -> Headline:
    """Return the headline of a run, whether it has a verdict or not."""
    if verdict is None:
        return _without_verdict(manifest)
    invalid = sorted(
        (check for check in verdict.checks if check.validity is Validity.INVALID),
        key=_causes_first(verdict),
    )
    unknown = [check for check in verdict.checks if check.validity is Validity.UNKNOWN]
    standing = Standing(verdict.validity.value)
    match standing:
        case Standing.INVALID:
            sentence = _violated(invalid, of=len(verdict.checks))
        case Standing.VALID:
            sentence = "; ".join((*_held(verdict.checks), *_idle(verdict))) + "."
        case _:
            sentence = _unanswered(unknown, of=len(verdict.checks))
    return Headline(
        standing=standing,
        sentence=f"{waived_words(manifest)}{sentence}",
        reasons=tuple(_reasons([*invalid, *unknown])),
    )


def _causes_first(verdict: Verdict) -> Callable[[CheckResult], int]:
    """Return the place of a check: causes before what followed from them, then all others."""
    names = dict.fromkeys(
        name
        for one in verdict.findings
        for name in (one.check, *(consequence.check for consequence in one.consequences))
    )
    places = {name: place for place, name in enumerate(names)}
    return lambda check: places.get(check.check, len(places))


def tested_line(manifest: Manifest) -> str:
    """Return in one line what the verdict is about: system, release, host, seed, duration."""
    told = [f"{key} {value}" for key, value in manifest.tested.items()]
    told += [f"duration {length(manifest.end_ns)}"] if manifest.end_ns is not None else []
    return one_line(", ".join(told))


def waived_words(manifest: Manifest | None) -> str:
    """Return a sentence on the demands that a flag took back, with a space behind it, or nothing.

    It stands before all else that is said of a verdict: without them a run proves less.
    """
    if manifest is None or not manifest.waived:
        return ""
    return f"Waived, though the scenario demands it: {'; '.join(map(one_line, manifest.waived))}. "


def not_judged(checks: Sequence[CheckResult]) -> tuple[list[str], list[str]]:
    """Return the checks that were not judged: names, and `name: reason` of those that give one."""
    found = [check for check in checks if check.validity is Validity.NOT_JUDGED]
    return (
        [one_line(check.check) for check in found if not check.reason],
        [f"{one_line(check.check)}: {one_line(check.reason)}" for check in found if check.reason],
    )


def _held(checks: Sequence[CheckResult]) -> Iterator[str]:
    holding = _named(checks, Validity.VALID)
    yield f"{counted(len(holding), 'check')} {'holds' if len(holding) == 1 else 'hold'}"
    unjudged, reasons = not_judged(checks)
    if unjudged:
        yield f"{integer(len(unjudged))} had nothing to judge: {', '.join(unjudged)}"
    yield from reasons
    known = [check for check in checks if check.validity is Validity.KNOWN]
    for check in known:
        yield f"{one_line(check.check)} is known: {one_line(check.reason)}"
    figures = _named(checks, Validity.FIGURE)
    if figures:
        yield f"{integer(len(figures))} cannot fail on this cluster: {', '.join(figures)}"


def _idle(verdict: Verdict) -> Iterator[str]:
    if kinds := without_effect(verdict):
        words = counted(len(kinds), "kind of fault", plural="kinds of fault")
        yield f"{words} never took effect: {', '.join(kinds)}"
    windows = window_kinds_in(verdict) or ()
    if unstruck := sum(not one.struck_count for one in windows):
        words = counted(len(windows), "kind of window", plural="kinds of window")
        yield f"{integer(unstruck)} of {words} had no strike"


def _named(checks: Sequence[CheckResult], validity: Validity) -> list[str]:
    return [one_line(check.check) for check in checks if check.validity is validity]


def _violated(checks: Sequence[CheckResult], *, of: int) -> str:
    named = ", ".join(
        f"{one_line(check.check)} ({integer(check.anomaly_count - check.allowed_count)})"
        for check in checks
    )
    verb = "is" if len(checks) == 1 else "are"
    return f"{integer(len(checks))} of {counted(of, 'check')} {verb} violated: {named}."


def _unanswered(checks: Sequence[CheckResult], *, of: int) -> str:
    if not of:
        return "No check ran, so nothing is proven."
    if not checks:
        return f"None of {counted(of, 'check')} had anything to judge, so nothing is proven."
    first = shortened(one_line(checks[0].reason), length_max=_FIRST_REASON_MAX).rstrip(".")
    return (
        f"{first or 'no reason was given'}. No violation was found, but "
        f"{integer(len(checks))} of {counted(of, 'check')} could not answer, so nothing is proven."
    )


def _reasons(checks: Iterable[CheckResult]) -> Iterable[str]:
    for check in checks:
        reason = one_line(check.reason) or "no reason was given."
        answer = f"follows from {check.follows_from}" if check.follows_from else check.validity
        yield f"{one_line(check.check)} {'' if check.follows_from else 'is '}{answer}: {reason}"


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
