"""Matching frames are passed on later; what follows one on its connection stays behind it.

- delay: {as: slow, from: brokers, by: [5ms, 40ms]}

A mix delays what one broker, or every broker, dials, in one direction: from a slow switch to a
satellite, and far below every time-out.
"""

from typing import Final

from fencepost.history.failure import SpecError
from fencepost.nemesis.schedules.deeds import Catch, DelayOf, ReleaseRule
from fencepost.nemesis.schedules.draws import Among, Drawn
from fencepost.nemesis.schedules.schedule import Let, Name, Pick, lasting, one_of
from fencepost.nemesis.schedules.scope import ONE, SERVING
from fencepost.nemesis.verbs.episode import on_cluster
from fencepost.nemesis.verbs.prerequisite import Prerequisite
from fencepost.nemesis.verbs.rule import Operand, count_of, rule_verb
from fencepost.nemesis.wire.rules import Delay
from fencepost.nemesis.words import duration_s, duration_text


def _action(data: Operand) -> Delay:
    low_s, high_s = _span_s(data)
    seed = count_of(data, "seed", minimum=0) if "seed" in data else None
    return Delay(min_ms=low_s * 1000, max_ms=high_s * 1000, seed=seed)


def _span_s(data: Operand) -> tuple[float, float]:
    value = data.get("by", "")
    ends = value if isinstance(value, list) else [value, value]
    try:
        low_s, high_s = (duration_s(end) for end in ends)
    except (SpecError, ValueError):
        raise SpecError(("by",), f"expected 20ms or [5ms, 40ms], found {value!r}") from None
    if low_s > high_s:
        raise SpecError(("by",), f"expected the shorter duration first; found {value!r}")
    return low_s, high_s


def _own_data(action: Delay) -> dict[str, object]:
    drawn: dict[str, object] = {} if action.seed is None else {"seed": action.seed}
    ends = [duration_text(end_ms / 1000) for end_ms in (action.min_ms, action.max_ms)]
    return {"by": ends, **drawn}


_SOURCES: Final = "sources"
_ACTION: Final = "delay"
_SCHEDULE: Final = lasting(
    Pick(ONE, Among((SERVING,))),
    one_of(Name(_SOURCES, Among((ONE,))), Name(_SOURCES, Among((SERVING,)))),
    Let(_ACTION, DelayOf((5.0, 20.0, 50.0, 200.0), low_divisor=5)),
    one_of(
        *(
            Catch(api=None, action=Drawn(_ACTION), source=_SOURCES, answers=answers)
            for answers in (0.0, 1.0)
        )
    ),
    healed=ReleaseRule(),
)

VERBS = (
    rule_verb(
        "delay",
        ("delay: {as: r, api: Fetch, from: broker-1, by: [1ms, 2ms]}",),
        Delay,
        _action,
        own=("by", "seed"),
        own_data=_own_data,
        episodes=(
            on_cluster("delay", _SCHEDULE, prerequisite=Prerequisite.PROXY, between_nodes=True),
        ),
        tones=("#2f7fb8", "#67b3e6"),
    ),
)
