"""The notation of numbers, times and foreign text: the same on a page, a terminal and in JUnit.

Times of a run are ns of its own clock and are written in seconds with milliseconds, so that any two
of them can be compared by eye. Lengths of time take the unit that leaves three or four digits.
Figures of a check carry their unit as a suffix of their name (`lag_p99_ms`), and lose it here.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

_NS_A_SECOND: Final = 1_000_000_000
_KIB: Final = 1024.0
_LISTED_MAX: Final = 8
# Control characters, lone surrogates and non-characters: an escape sequence in a server's message
# must not reach a terminal, and XML 1.0 has no way to write them. Bidirectional overrides can make
# a line read as what it is not.
_UNPRINTABLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def integer(number: float) -> str:
    """Return `12,345`."""
    return f"{round(number):,}"


def counted(number: int, noun: str, *, plural: str | None = None) -> str:
    """Return `1 fault`, `2 faults`, `3 replies` with `plural`."""
    return f"{integer(number)} {noun if number == 1 else plural or noun + 's'}"


def listed(numbers: Sequence[int]) -> str:
    """Return offsets, values or indices as the history writes them; the first few of many."""
    shown = ", ".join(map(str, numbers[:_LISTED_MAX]))
    rest = len(numbers) - _LISTED_MAX
    return f"{shown} and {integer(rest)} more" if rest > 0 else shown


def moment(time_ns: int) -> str:
    """Return a time of the run in seconds: `1,012.345 s`."""
    return f"{time_ns / _NS_A_SECOND:,.3f} s"


def length(duration_ns: float) -> str:
    """Return a length of time: `340 µs`, `3.42 ms`, `17.0 s`, `2 min 05 s`, `3 h 00 min`."""
    if duration_ns < 0:
        return "-" + length(-duration_ns)
    seconds = duration_ns / _NS_A_SECOND
    if seconds >= 3599.5:  # noqa: PLR2004  # from where on it rounds to an hour of seconds
        hours, minutes = divmod(round(seconds / 60), 60)
        return f"{hours:,} h {minutes:02} min"
    if seconds >= 99.95:  # noqa: PLR2004  # from where on three digits have no room for tenths
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest:02} s"
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= 0.9995 * scale:  # from where on it rounds to one of this unit
            return f"{_three_digits(seconds / scale)} {unit}"
    return f"{round(duration_ns)} ns" if duration_ns else "0 s"


def about(seconds: float) -> str:
    """Return `about 40 s`, `about 4 min`, `about 1 h 10 min`."""
    if seconds < 90:  # noqa: PLR2004  # from where on minutes say as much
        return f"about {max(10, round(seconds / 10) * 10)} s"
    minutes = round(seconds / 60)
    if seconds < 3600:  # noqa: PLR2004  # an hour
        return f"about {minutes} min"
    return f"about {minutes // 60} h {minutes % 60:02} min"


def size(byte_count: float) -> str:
    """Return `512 B`, `3.1 MiB`."""
    amount = float(byte_count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(amount) < _KIB:
            return f"{amount:.0f} B" if unit == "B" else f"{amount:,.1f} {unit}"
        amount /= _KIB
    return f"{amount:,.1f} TiB"


def figure(name: str, value: float) -> tuple[str, str]:
    """Return a figure's label and its value with unit, from the suffix of its name."""
    stem, _, unit = name.rpartition("_")
    if not stem or unit not in _UNITS:
        stem, unit = name, ""
    written = _UNITS[unit](value) if math.isfinite(value) else "none"
    return stem.replace("_", " "), written


def utc(iso: str) -> str:
    """Return `2026-03-01 08:00:00 UTC` of an ISO time; any other text as it is."""
    try:
        at = datetime.fromisoformat(iso)
    except ValueError:
        return iso
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def one_line(text: str) -> str:
    """Return printable text without line breaks: a message must not pass for lines of ours."""
    return printable(" ".join(text.split()))


def printable(text: str) -> str:
    """Return the text with every character that could act instead of show as `�`."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def shortened(text: str, *, length_max: int) -> str:
    """Return at most `length_max` characters, the last of them `…` if anything was cut."""
    return text if len(text) <= length_max else text[: length_max - 1] + "…"


def _plain(value: float) -> str:
    return integer(value) if value == round(value) else f"{value:,.4g}"


def _three_digits(value: float) -> str:
    """Return three significant digits, in plain notation, for 1 ≤ value < 1,000."""
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0  # noqa: PLR2004  # where it carries
    return f"{value:.{decimals}f}"


_UNITS: Final[Mapping[str, Callable[[float], str]]] = {
    "": _plain,
    "ns": length,
    "us": lambda value: length(value * 1e3),
    "ms": lambda value: length(value * 1e6),
    "s": lambda value: length(value * 1e9),
    "seconds": lambda value: length(value * 1e9),
    "bytes": size,
    "count": integer,
    "fraction": lambda value: f"{value * 100:.4g} %",
}
