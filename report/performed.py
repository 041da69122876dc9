"""The steps of the play that was performed, at their times in the run.

`play.yaml` counts its times from the moment the play could begin, tables from the start of the run.
The acts that broke something stand in both, in the same order, and tell how far these are apart.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import yaml

from fencepost.history.failure import HarnessError
from fencepost.report.faults import FaultSpan

_MODIFIERS: Final = frozenset(("at", "as", "to", "within", "keep_directory_id"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PerformedStep:
    """One step, when it began."""

    time_ns: int
    word: str
    text: str
    """`hold join: AlterPartition from broker-1`."""


def performed_steps(path: Path, spans: Sequence[FaultSpan]) -> tuple[PerformedStep, ...]:
    """Return the steps in order; none if there is no play, or nothing ties its times to the run's.

    Raises HarnessError if the file is not what a harness writes.
    """
    try:
        steps = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise HarnessError(f"cannot read the play {path}: {error}") from error
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        return ()
    timed = [(step, seconds) for step in steps if (seconds := _seconds(step.get("at"))) is not None]
    begin_ns = _begin_ns(timed, spans)
    if begin_ns is None:
        return ()
    return tuple(
        PerformedStep(
            time_ns=round(begin_ns + seconds * 1e9), word=_word(step), text=" ".join(_texts(step))
        )
        for step, seconds in timed
    )


def _begin_ns(
    timed: Sequence[tuple[Mapping[str, Any], float]], spans: Sequence[FaultSpan]
) -> float | None:
    """Return the time when the play began, by matching faults and steps, kind by kind, in order."""
    differences = []
    for kind in dict.fromkeys(span.kind for span in spans):
        begins = [span.begin_ns for span in spans if span.kind == kind]
        steps = [seconds for step, seconds in timed if _word(step) == kind]
        if len(begins) == len(steps):
            differences += [
                begin - seconds * 1e9 for begin, seconds in zip(begins, steps, strict=True)
            ]
    return median(differences) if differences else None


def _word(step: Mapping[str, Any]) -> str:
    return next((str(key) for key in step if key not in _MODIFIERS), "")


def _texts(step: Mapping[str, Any]) -> Iterator[str]:
    word = _word(step)
    operand = step.get(word)
    yield word.replace("_", " ")
    if isinstance(operand, Mapping) and "as" in operand:
        # A rule of the wire: its name, then what it concerns.
        yield f"{operand['as']}:"
        yield _flat({key: value for key, value in operand.items() if key != "as"})
    elif word != "heal" or operand != "all":
        yield _flat(operand)
    for modifier in ("as", "to"):
        if modifier in step:
            yield f"{modifier} {step[modifier]}"


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        parts = ((str(key), _flat(below)) for key, below in value.items())
        return " ".join(below if key == "api" else f"{key} {below}" for key, below in parts)
    if isinstance(value, list):
        whole = all(isinstance(item, str) for item in value)
        return ", ".join(value) if whole else f"[{', '.join(map(_flat, value))}]"
    return "none" if value is None else str(value)


def _seconds(at: object) -> float | None:
    """Return a duration as a harness writes it: `3.5s`."""
    try:
        return float(str(at).removesuffix("s"))
    except ValueError:
        return None
