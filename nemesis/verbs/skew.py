"""A wall clock that is wrong: it jumps, runs too fast or too slow, or goes back and forth.

    - {skew: broker-1, jump: -60s}               # or drift: 1.05, or strobe: 2s, every: 100ms

A mix draws up to 5 s, so that whatever stands still after a clock went back, until its old time has
come again (Kafka's own timers never go back), goes on within a short run; and far less than what
records are kept for.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from clusters.abilities import Skew, Skews
from clusters.port import Cluster, NodeName
from history.failure import SpecError
from nemesis.targets import Target
from nemesis.verbs.episode import Due, Opening, on_nodes
from nemesis.verbs.on_nodes import each, node_verb
from nemesis.verbs.predicted_state import Now
from nemesis.verbs.prerequisite import Prerequisite
from nemesis.verbs.step import OnNodes
from nemesis.verbs.step_source import StepSource
from nemesis.verbs.verb import Healing, NodeAction
from nemesis.words import duration_s, duration_text

_JUMP_MIN_S: Final = 0.1
_DRIFT_MIN: Final = 0.005
_RATE_MAX: Final = 100.0
_EVERY_MIN_S: Final = 0.01
_DRAWN_JUMP_S: Final = (0.5, 5.0)
_DRAWN_DRIFT: Final = (0.02, 0.2)
_DRAWN_STROBE_S: Final = (0.2, 2.0)
_DRAWN_EVERY_S: Final = (0.05, 0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkewClock(OnNodes):
    """Put the wall clock of each node wrong."""

    by: Skew = field(default_factory=Skew)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnskewClock(OnNodes):
    """Put the wall clock right."""


def _own(written: StepSource) -> dict[str, Any]:
    ways = [way for way in ("jump", "drift", "strobe") if way in written.item]
    if len(ways) != 1:
        raise SpecError((), "skew needs one of 'jump', 'drift' and 'strobe' beside it")
    if "every" in written.item and ways != ["strobe"]:
        raise SpecError(("every",), "'every' goes with 'strobe' only")
    if ways == ["jump"]:
        return {"by": Skew(jump_s=written.read("jump", _clear_span))}
    if ways == ["drift"]:
        return {"by": Skew(rate=written.read("drift", _rate))}
    every_s = written.read("every", _period) if "every" in written.item else Skew().every_s
    return {"by": Skew(strobe_s=written.read("strobe", _clear_span), every_s=every_s)}


def _own_data(step: SkewClock) -> dict[str, object]:
    by = step.by
    if by.strobe_s:
        return {"strobe": _signed(by.strobe_s), "every": duration_text(by.every_s)}
    return {"drift": round(by.rate, 6)} if by.rate != 1 else {"jump": _signed(by.jump_s)}


def _do(cluster: Cluster, node: NodeName, step: SkewClock) -> str:
    assert isinstance(cluster, Skews)
    return cluster.skew_node(node, step.by)


def _undo(cluster: Cluster, node: NodeName, _step: UnskewClock) -> str:
    assert isinstance(cluster, Skews)
    return cluster.unskew_node(node)


def _script(draft: Opening, target: Target) -> Due:
    end_s = draft.drawn_end_s()
    skewed = SkewClock(target=target, by=_drawn(draft.draw))
    return [(draft.now_s, skewed), (end_s, UnskewClock(target=target))]


def _drawn(draw: Random) -> Skew:
    way, side = draw.choice(("jump", "drift", "strobe")), draw.choice((-1, 1))
    match way:
        case "jump":
            return Skew(jump_s=round(side * draw.uniform(*_DRAWN_JUMP_S), 3))
        case "drift":
            return Skew(rate=round(1 + side * draw.uniform(*_DRAWN_DRIFT), 6))
        case _:
            strobe_s = round(side * draw.uniform(*_DRAWN_STROBE_S), 3)
            return Skew(strobe_s=strobe_s, every_s=round(draw.uniform(*_DRAWN_EVERY_S), 3))


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


def _signed(span_s: float) -> str:
    return ("-" if span_s < 0 else "") + duration_text(abs(span_s))


_SKEW = node_verb(
    "skew",
    ("{skew: broker-1, jump: 1s}",),
    SkewClock,
    NodeAction(
        do=each(_do),
        abilities=(Skews,),
        on_this_machine=True,
        prerequisite=Prerequisite.CLOCKS,
    ),
    healed_by="unskew",
    modifiers=("jump", "drift", "strobe", "every"),
    own=_own,
    own_data=_own_data,
    before=(Now.UP, Now.PAUSED),
    episodes=(on_nodes("skew", _script),),
    state="clock wrong",
    tones=("#6b8a1e", "#a5c455"),
)
_UNSKEW = node_verb(
    "unskew",
    ("{skew: broker-1, jump: 1s}", "unskew: broker-1"),
    UnskewClock,
    NodeAction(
        do=each(_undo),
        abilities=(Skews,),
        heals=Healing(seen="runs, it takes part", of_running_nodes=False, of_the_living=True),
    ),
)
VERBS = (_SKEW, _UNSKEW)
