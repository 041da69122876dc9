"""Matching frames are passed on later; what follows one on its connection stays behind it.

- delay: {as: slow, from: brokers, by: [5ms, 40ms]}

A mix delays what one broker, or every broker, dials, in one direction: from a slow switch to a
satellite, and far below every time-out.
"""

from random import Random
from typing import Final

from history.failure import SpecError
from nemesis.targets import NamedNodes, Scene
from nemesis.verbs.episode import Begun, Episode, Opening
from nemesis.verbs.lift import Lift
from nemesis.verbs.prerequisite import Prerequisite
from nemesis.verbs.rule import Lay, Operand, count_of, rule_verb
from nemesis.verbs.step import Parties
from nemesis.wire.rules import Delay, Direction, Match
from nemesis.words import duration_s, duration_text

_DRAWN_MAX_MS: Final = (5.0, 20.0, 50.0, 200.0)


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
        raise SpecError(("by",), f"the first duration is the shorter one; found {value!r}")
    return low_s, high_s


def _own_data(action: Delay) -> dict[str, object]:
    drawn: dict[str, object] = {} if action.seed is None else {"seed": action.seed}
    ends = [duration_text(end_ms / 1000) for end_ms in (action.min_ms, action.max_ms)]
    return {"by": ends, **drawn}


def _begin(draft: Opening) -> Begun:
    end_s = draft.drawn_end_s()
    lay = _drawn(draft.name, draft.scene, draft.draw)
    return Begun(nodes=(), due=[(draft.now_s, lay), (end_s, Lift(name=draft.name))])


def _drawn(name: str, scene: Scene, draw: Random) -> Lay:
    brokers = scene.serving
    node = draw.choice(brokers)
    sources = draw.choice([(node,), tuple(brokers)])
    low, high = sorted(draw.choices(_DRAWN_MAX_MS, k=2))
    return Lay(
        name=name,
        action=Delay(min_ms=low / 5, max_ms=high),
        match=Match(direction=draw.choice((Direction.REQUEST, Direction.RESPONSE))),
        source=Parties(target=NamedNodes(nodes=sources)),
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
            Episode(
                kind="delay", begin=_begin, prerequisite=Prerequisite.PROXY, between_nodes=True
            ),
        ),
        tones=("#2f7fb8", "#67b3e6"),
    ),
)
