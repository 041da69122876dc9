"""A wall clock that is wrong: it jumps, runs too fast or too slow, or goes back and forth.

    - {skew: broker-1, jump: -60s}               # or drift: 1.05, or strobe: 2s, every: 100ms

A mix draws up to 5 s, so that whatever stands still after a clock went back, until its old time has
come again (Kafka's own timers never go back), goes on within a short run; and far less than what
records are kept for.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from fencepost.clusters.abilities import Skew, Skews
from fencepost.clusters.port import Cluster, NodeName
from fencepost.history.failure import SpecError
from fencepost.nemesis.schedules.draws import Amount, Between
from fencepost.nemesis.schedules.schedule import Act, lasting
from fencepost.nemesis.schedules.scope import TARGET, Scope
from fencepost.nemesis.verbs.episode import on_nodes
from fencepost.nemesis.verbs.on_nodes import each, node_verb
from fencepost.nemesis.verbs.predicted_state import Now
from fencepost.nemesis.verbs.prerequisite import Prerequisite
from fencepost.nemesis.verbs.step import OnNodes
from fencepost.nemesis.verbs.step_source import StepSource
from fencepost.nemesis.verbs.verb import Healing, NodeAction
from fencepost.nemesis.words import duration_s, duration_text

_JUMP_MIN_S: Final = 0.1
_DRIFT_MIN: Final = 0.005
_RATE_MAX: Final = 100.0
_EVERY_MIN_S: Final = 0.01


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _DrawnSkew(Amount):
    """A jump, a drift or a strobe, forwards or backwards."""

    jump_s: Between
    drift: Between
    strobe_s: Between
    every_s: Between

    def drawn(self, scope: Scope) -> Skew:
        """Draw which, how far, and which way."""
        way, side = scope.draw.choice(("jump", "drift", "strobe")), scope.draw.choice((-1, 1))
        match way:
            case "jump":
                return Skew(jump_s=round(side * self.jump_s.drawn(scope), 3))
            case "drift":
                return Skew(rate=round(1 + side * self.drift.drawn(scope), 6))
            case _:
                strobe_s = round(side * self.strobe_s.drawn(scope), 3)
                return Skew(strobe_s=strobe_s, every_s=round(self.every_s.drawn(scope), 3))


_DRAWN: Final = _DrawnSkew(
    jump_s=Between(0.5, 5.0),
    drift=Between(0.02, 0.2),
    strobe_s=Between(0.2, 2.0),
    every_s=Between(0.05, 0.5),
)
_SCHEDULE: Final = lasting(
    Act(SkewClock, TARGET, of=(("by", _DRAWN),)), healed=Act(UnskewClock, TARGET)
)


def _clear_span(value: object) -> float:
    text = str(value).strip()
    span_s = duration_s(text.lstrip("+-")) * (-1 if text.startswith("-") else 1)
    if abs(span_s) < _JUMP_MIN_S:
        raise SpecError((), f"{value!r} is too small to be observed; expected 100ms or more")
    return span_s


def _rate(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise SpecError(
            (), f"expected the clock's seconds per real second, e.g. 1.05, found {value!r}"
        )
    if not 0 <= value <= _RATE_MAX or abs(value - 1) < _DRIFT_MIN:
        raise SpecError((), f"expected 0 to 100, at least 0.005 away from 1, found {value!r}")
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
    episodes=(on_nodes("skew", _SCHEDULE),),
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
