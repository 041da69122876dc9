"""Durations, names and suggestions: the small words that plays and scenarios share."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from fencepost.history.failure import Mistakes, SpecError

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_LONGEST_S = 30 * 86_400.0
_DURATION = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|min|h)?\s*")
_NAME = re.compile(r"[A-Za-z][\w.-]*")


def duration_s(value: object) -> float:
    """Return the seconds of `45`, `45s`, `500ms`, `2m` or `1h`; raise SpecError otherwise."""
    found = None if isinstance(value, bool) else _DURATION.fullmatch(str(value))
    if found is None:
        raise SpecError((), f"{value!r:.60} is not a duration; write 45s, 500ms, 2m or 1h")
    seconds = float(found[1]) * _UNITS_S[found[2] or "s"]
    if seconds > _LONGEST_S:
        raise SpecError((), f"{value!r:.60} is longer than {_LONGEST_S / 86400:.0f} days")
    return seconds


def duration_text(seconds: float) -> str:
    """Return the duration as a play states it: whole milliseconds, in seconds."""
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"


def rule_name(value: object) -> str:
    """Return the name that `as` gives; raise SpecError if a later step cannot say it."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise SpecError(("as",), f"a name is a word, found {value!r}")
    return value


def _property_text(value: object) -> str:
    """Return a value as a properties file has it: `true`, not `True`.

    Raise SpecError for what is no single value: a list would become one text for every node.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        found = "one value, the same for every node: a text, a number, true or false"
        raise SpecError((), f"expected {found}; found {value!r}")
    return str(value)


def property_texts(values: Mapping[Any, object]) -> dict[str, str]:
    """Return properties as a file has them; raise SpecError with the names of those that cannot."""
    found, mistakes = {}, Mistakes()
    for name, value in values.items():
        with mistakes.below(str(name)):
            found[str(name)] = _property_text(value)
    mistakes.refuse()
    return found


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """Return the second half of an error message: the nearest name, if any is near, and all."""
    known = sorted(map(str, allowed))
    near = difflib.get_close_matches(word, known, n=1)
    return (f"did you mean {near[0]!r}? " if near else "") + "allowed: " + ", ".join(known)
