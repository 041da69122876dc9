"""The words that put a node's clock wrong or hold it back, as a play writes them.

    - {skew: broker-1, jump: -60s}               # or drift: 1.05, or strobe: 2s, every: 100ms
    - {throttle: broker-1, cpu: 10%}             # of one core
    - {squeeze: broker-1, room: 16MiB}           # beyond its heap

Each holds until its counterpart with `un` before it, or `heal: all`.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from clusters.abilities import Skew
from history.failure import SpecError
from nemesis.steps import Hardship, Room, Share, Word
from nemesis.words import duration_s, duration_text

__all__ = ["HARDSHIP_MODIFIERS", "hardship_data", "parse_hardship"]

T = TypeVar("T")

HARDSHIP_MODIFIERS: Final[Mapping[str, tuple[str, ...]]] = {
    Word.SKEW: ("jump", "drift", "strobe", "every"),
    Word.THROTTLE: ("cpu",),
    Word.SQUEEZE: ("room",),
}
_PERCENT: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*%")
_SIZE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(KiB|MiB|GiB)")
_BYTES: Final = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_JUMP_MIN_S: Final = 0.1
_DRIFT_MIN: Final = 0.005
_RATE_MAX: Final = 100.0
_EVERY_MIN_S: Final = 0.01
_SHARE_MIN: Final = 0.01
_ROOM_MIN_BYTES: Final = 1 << 20


def parse_hardship(word: Word, item: Mapping[str, object]) -> Hardship | None:
    """How hard the word is to be, by its modifiers; None for words without. Or SpecError."""
    match word:
        case Word.SKEW:
            return _skew(item)
        case Word.THROTTLE:
            return Share(of_a_core=_at("cpu", item, _share))
        case Word.SQUEEZE:
            return Room(size_bytes=_at("room", item, _size))
        case _:
            return None


def hardship_data(hardship: Hardship | None) -> dict[str, object]:
    """The modifiers that `parse_hardship` reads back."""
    match hardship:
        case Skew(strobe_s=strobe_s, every_s=every_s) if strobe_s:
            return {"strobe": _signed(strobe_s), "every": duration_text(every_s)}
        case Skew(rate=rate) if rate != 1:
            return {"drift": round(rate, 6)}
        case Skew(jump_s=jump_s):
            return {"jump": _signed(jump_s)}
        case Share(of_a_core=share):
            return {"cpu": f"{share * 100:.6g}%"}
        case Room(size_bytes=size_bytes):
            return {"room": f"{size_bytes // _BYTES['KiB']}KiB"}
        case None:
            return {}


def _skew(item: Mapping[str, object]) -> Skew:
    ways = [way for way in ("jump", "drift", "strobe") if way in item]
    if len(ways) != 1:
        raise SpecError((), "skew needs one of 'jump', 'drift' and 'strobe' beside it")
    if "every" in item and ways != ["strobe"]:
        raise SpecError(("every",), "'every' goes with 'strobe' only")
    if ways == ["jump"]:
        return Skew(jump_s=_at("jump", item, _clear_span))
    if ways == ["drift"]:
        return Skew(rate=_at("drift", item, _rate))
    every_s = _at("every", item, _period) if "every" in item else Skew().every_s
    return Skew(strobe_s=_at("strobe", item, _clear_span), every_s=every_s)


def _clear_span(value: object) -> float:
    text = str(value).strip()
    span_s = duration_s(text.lstrip("+-")) * (-1 if text.startswith("-") else 1)
    if abs(span_s) < _JUMP_MIN_S:
        raise SpecError((), f"{value!r} is less than 100ms, and could not be told from no skew")
    return span_s


def _rate(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise SpecError((), f"expected seconds it counts in a second, e.g. 1.05, found {value!r}")
    if not 0 <= value <= _RATE_MAX or abs(value - 1) < _DRIFT_MIN:
        raise SpecError((), f"expected 0 to 100, and 0.005 from 1 at least, found {value!r}")
    return float(value)


def _period(value: object) -> float:
    every_s = duration_s(value)
    if every_s < _EVERY_MIN_S:
        raise SpecError((), f"expected 10ms or more, found {value!r}")
    return every_s


def _share(value: object) -> float:
    found = _PERCENT.fullmatch(str(value).strip())
    share = float(found[1]) / 100 if found else 0.0
    if not share >= _SHARE_MIN:
        raise SpecError((), f"expected a share of one core from 1% on, e.g. 10%, found {value!r}")
    return share


def _size(value: object) -> int:
    found = _SIZE.fullmatch(str(value).strip())
    size_bytes = round(float(found[1]) * _BYTES[found[2]]) if found else 0
    if size_bytes < _ROOM_MIN_BYTES:
        raise SpecError((), f"expected 1MiB or more, e.g. 16MiB, found {value!r}")
    return size_bytes


def _signed(span_s: float) -> str:
    return ("-" if span_s < 0 else "") + duration_text(abs(span_s))


def _at(key: str, item: Mapping[str, object], parse: Callable[[object], T]) -> T:
    if key not in item:
        raise SpecError((), f"{key!r} is needed beside it")
    try:
        return parse(item[key])
    except SpecError as error:
        raise error.below(key) from None
