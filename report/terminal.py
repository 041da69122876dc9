"""A verdict in a few lines of a terminal, with colours where it has any.

The first line names what was tested. The others stand in the order of urgency: the verdict, what is
wrong, what holds (a line a subject, with how much was judged), where the evidence lies and the
command that repeats the run. The last line, which is what one sees, is the outcome.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rich.text import Text

from fencepost.checkers.grounds.decided_span import known_in_sum_until_s
from fencepost.checkers.grounds.windows import window_kinds_in
from fencepost.checkers.verdict import CheckResult, Validity, Verdict
from fencepost.history.run_directory import RunDirectory
from fencepost.report.found import finding_words
from fencepost.report.headline import Standing, headline_of, not_judged, tested_line
from fencepost.report.kinds import kinds_line
from fencepost.report.nemesis_work import work_line
from fencepost.report.notation import counted, figure, integer, one_line
from fencepost.report.operation_kinds import operations_line, topics_line
from fencepost.report.proofs import known_entry
from fencepost.report.reading import RunAnswers, read_answers
from fencepost.report.service import service_lines
from fencepost.report.windows import window_line

_FIGURES_MAX: Final = 3


class _Tone(StrEnum):
    """The kind of a line, as rich styles it."""

    PLAIN = ""
    QUIET = "dim"
    VALID = "green"
    INVALID = "bold red"
    UNKNOWN = "yellow"


_TONES: Final = {
    Standing.VALID: _Tone.VALID,
    Standing.INVALID: _Tone.INVALID,
    Standing.UNKNOWN: _Tone.UNKNOWN,
    Standing.FAILED: _Tone.INVALID,
    Standing.UNCHECKED: _Tone.UNKNOWN,
}


_WRONG: Final = {
    Validity.INVALID: _Tone.INVALID,
    Validity.UNKNOWN: _Tone.UNKNOWN,
    Validity.KNOWN: _Tone.UNKNOWN,
}
"""The answers that hold something against the cluster, or the run, and how they are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    text: str
    tone: _Tone = _Tone.PLAIN


def verdict_text(
    verdict: Verdict | None, run: RunDirectory, *, as_expected: bool | None = None
) -> Text:
    """Return the lines, without any control character.

    `verdict`: None is a run without one, and why. `as_expected`: whether the scenario expects this
    verdict; None: it does not say.
    """
    lines = [*_lines(verdict, run, read_answers(run)), *_outcome(verdict, as_expected=as_expected)]
    # Styled text, never markup: what a server said is not ours to interpret.
    return Text("\n").join(Text(line.text, style=line.tone.value) for line in lines)


def _lines(verdict: Verdict | None, run: RunDirectory, answers: RunAnswers) -> Iterator[_Line]:
    if answers.manifest is not None:
        yield _Line(text=f"tested: {tested_line(answers.manifest)}")
    headline = headline_of(verdict, manifest=answers.manifest)
    tone = _TONES[headline.standing]
    yield _Line(text=f"{headline.standing.value.upper()}: {headline.sentence}", tone=tone)
    if verdict is None:
        yield from (_Line(text=f"  {reason}", tone=tone) for reason in headline.reasons)
    else:
        if verdict.service_level is not None:
            lines = service_lines(verdict.service_level)
            yield from (_Line(text=f"  service {line}") for line in lines)
        yield from _checks(verdict)
        yield from _work(answers)
        yield from _windows(verdict, answers)
    yield from _whereabouts(run, answers)


def _checks(verdict: Verdict) -> Iterator[_Line]:
    """Yield the findings; the checks that do not hold, with reasons; those that do, how much."""
    for finding in verdict.findings:
        tone = _Tone.UNKNOWN if finding.known else _Tone.INVALID
        yield _Line(text=f"  finding {one_line(finding_words(finding))}", tone=tone)
    for validity, tone in _WRONG.items():
        for result in verdict.checks:
            if result.validity is validity and not result.follows_from:
                words = f"  {validity.value:<8}{one_line(result.check)}"
                yield _Line(text=f"{words}: {one_line(result.reason)}", tone=tone)
                yield from _consequences(verdict, result)
    for subject, sound in _sound(verdict).items():
        yield _Line(text=f"  valid   {subject}: {_extent(sound)}", tone=_Tone.VALID)
    if verdict.validity is not Validity.VALID:
        yield from _unjudged(verdict)
    if kinds := kinds_line(verdict):
        yield _Line(text=f"  faults  that took effect: {kinds}")
    if operations := operations_line(verdict):
        yield _Line(text=f"  clients that succeeded: {operations}")
    if until_s := known_in_sum_until_s(verdict):
        yield _Line(text=f"  known   in sum alone: what the cluster decided before {until_s:.1f} s")
    if topics := topics_line(verdict):
        yield _Line(text=f"  topics  of clients: {topics}")
    yield from (
        _Line(text=f"  judged  {_sums(result)}") for result in verdict.checks if _sums(result)
    )


def _work(answers: RunAnswers) -> Iterator[_Line]:
    work = None if answers.manifest is None else answers.manifest.nemesis
    if work is not None:
        yield _Line(text=f"  nemesis {work_line(work)}")


def _consequences(verdict: Verdict, cause: CheckResult) -> Iterator[_Line]:
    """Yield the checks that could not answer because of an anomaly, beneath it."""
    for result in verdict.checks:
        if result.follows_from == cause.check:
            yield _Line(text=f"    follows {one_line(result.check)}: {one_line(result.reason)}")


def _windows(verdict: Verdict, answers: RunAnswers) -> Iterator[_Line]:
    """Yield a line a kind of window; open histories have none."""
    kinds = window_kinds_in(verdict)
    if kinds is None and answers.manifest is not None and not answers.manifest.model:
        yield _Line(text="  windows not recorded", tone=_Tone.QUIET)
    laid = [kind for kind in kinds or () if kind.laid_count]
    yield from (_Line(text=f"  windows {window_line(kind)}") for kind in laid)
    if others := [one_line(kind.kind) for kind in kinds or () if not kind.laid_count]:
        yield _Line(text=f"  windows never laid: {', '.join(others)}", tone=_Tone.QUIET)


def _sound(verdict: Verdict) -> Mapping[str, list[CheckResult]]:
    """Return the checks that hold, by subject."""
    found: dict[str, list[CheckResult]] = {}
    for result in verdict.checks:
        if result.validity is Validity.VALID:
            entry = known_entry(result.check)
            found.setdefault(entry.subject if entry else "others", []).append(result)
    return found


def _extent(sound: Sequence[CheckResult]) -> str:
    """Say how many checks hold, and between which counts of cases."""
    fewest = min(sound, key=lambda one: one.case_count)
    most = max(sound, key=lambda one: one.case_count)
    if len(sound) == 1:
        return f"{fewest.check} holds in {counted(fewest.case_count, 'case')}"
    return (
        f"{counted(len(sound), 'check')} hold, in {integer(fewest.case_count)} ({fewest.check}) "
        f"to {integer(most.case_count)} ({most.check}) cases"
    )


def _unjudged(verdict: Verdict) -> Iterator[_Line]:
    """Yield the checks that prove nothing; of a valid run they stand in its first line."""
    names, reasons = not_judged(verdict.checks)
    figures = [one_line(one.check) for one in verdict.checks if one.validity is Validity.FIGURE]
    said = [f"{Validity.NOT_JUDGED}: {reason}" for reason in reasons]
    if names:
        listed = f"{len(names)} had nothing to judge: {', '.join(names)}"
        said = [f"{Validity.NOT_JUDGED}: {listed}", *said]
    if figures:
        said.append(f"{Validity.FIGURE}: {len(figures)} cannot fail here: {', '.join(figures)}")
    yield from (_Line(text=f"  {text}", tone=_Tone.QUIET) for text in said)


def _outcome(verdict: Verdict | None, *, as_expected: bool | None) -> Iterator[_Line]:
    if verdict is None:
        return
    expected = {
        None: "",
        True: ", as the scenario expects of this release",
        False: ", NOT as the scenario expects of this release",
    }[as_expected]
    text = f"outcome: {verdict.validity.value}, exit code {verdict.exit_code}{expected}"
    yield _Line(text=text, tone=_TONES[Standing(verdict.validity.value)])


def _sums(result: CheckResult) -> str:
    """Return the extent of the evidence for the verdict: operations, records, faults."""
    if result.check != "statistics":
        return ""
    return one_line(", ".join(" ".join(figure(*item)) for item in _first(result.figures)))


def _first(figures: Mapping[str, float]) -> list[tuple[str, float]]:
    return list(figures.items())[:_FIGURES_MAX]


def _whereabouts(run: RunDirectory, answers: RunAnswers) -> Iterator[_Line]:
    for trouble in answers.troubles:
        yield _Line(text=f"note: {one_line(trouble)}", tone=_Tone.UNKNOWN)
    if run.report_path.exists():
        yield _Line(text=f"report: {one_line(str(run.report_path))}")
    else:
        yield _Line(text=f"run: {one_line(str(run.root))}")
    if answers.manifest is not None:
        yield _Line(text=f"repeat: {one_line(answers.manifest.command)}")
