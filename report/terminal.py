"""A verdict in a few lines of a terminal, with colours where it has any.

The lines stand in the order of urgency: the verdict, what is wrong, what holds, where the evidence
lies, and last, so that it is what one sees, the command that repeats the run.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rich.text import Text

from checkers.verdict import CheckResult, Validity, Verdict
from history.run_directory import RunDirectory
from report.headline import Standing, headline_of
from report.notation import figure, one_line
from report.reading import Answers, read_answers

__all__ = ["verdict_text"]

_FIGURES_MAX: Final = 3


class _Tone(StrEnum):
    """What a line is, as rich styles it."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    text: str
    tone: _Tone = _Tone.PLAIN


def verdict_text(verdict: Verdict | None, run: RunDirectory) -> Text:
    """The lines, without any control character. None: a run without a verdict, and why."""
    lines = _lines(verdict, run, read_answers(run))
    # Styled text, never markup: what a server said is not ours to interpret.
    return Text("\n").join(Text(line.text, style=line.tone.value) for line in lines)


def _lines(verdict: Verdict | None, run: RunDirectory, answers: Answers) -> Iterator[_Line]:
    headline = headline_of(verdict, manifest=answers.manifest)
    tone = _TONES[headline.standing]
    yield _Line(text=f"{headline.standing.value.upper()}: {headline.sentence}", tone=tone)
    if verdict is None:
        yield from (_Line(text=f"  {reason}", tone=tone) for reason in headline.reasons)
    else:
        yield from _checks(verdict)
    yield from _whereabouts(run, answers)


def _checks(verdict: Verdict) -> Iterator[_Line]:
    """What does not hold, each with its reason; then what holds, in one line, and how much."""
    sound = [result for result in verdict.checks if result.validity is Validity.VALID]
    for result in verdict.checks:
        if result not in sound:
            tone = _TONES[Standing(result.validity.value)]
            words = f"  {result.validity.value:<8}{one_line(result.check)}"
            yield _Line(text=f"{words}: {one_line(result.reason)}", tone=tone)
    if sound:
        names = ", ".join(one_line(result.check) for result in sound)
        yield _Line(text=f"  valid   {names}", tone=_Tone.VALID)
    yield from (
        _Line(text=f"  judged  {_sums(result)}") for result in verdict.checks if _sums(result)
    )


def _sums(result: CheckResult) -> str:
    """How much the verdict rests on: operations, records, faults."""
    if result.check != "statistics":
        return ""
    return one_line(", ".join(" ".join(figure(*item)) for item in _first(result.figures)))


def _first(figures: Mapping[str, float]) -> list[tuple[str, float]]:
    return list(figures.items())[:_FIGURES_MAX]


def _whereabouts(run: RunDirectory, answers: Answers) -> Iterator[_Line]:
    for trouble in answers.troubles:
        yield _Line(text=f"note: {one_line(trouble)}", tone=_Tone.UNKNOWN)
    if run.report_path.exists():
        yield _Line(text=f"report: {one_line(str(run.report_path))}")
    else:
        yield _Line(text=f"run: {one_line(str(run.root))}")
    if answers.manifest is not None:
        yield _Line(text=f"seed: {answers.manifest.seed}")
        yield _Line(text=f"repeat: {one_line(answers.manifest.command)}")
