"""A bound on what nodes may send, until it is healed by its name.

- bandwidth: {of: broker-1, rate: 1Mbit, as: thin}     # what it sends
- heal: thin

A mix draws from an old line out of town to a busy one; heartbeats pass through any in time.
"""

import re
from dataclasses import dataclass
from typing import Final

from history.failure import SpecError
from nemesis.targets import NamedNodes, Target, parse_target, target_data
from nemesis.verbs.episode import Begun, Episode, Opening
from nemesis.verbs.heal import HealPartition
from nemesis.verbs.predicted_state import PredictedState
from nemesis.verbs.prerequisite import Prerequisite
from nemesis.verbs.step import Breaking
from nemesis.verbs.step_source import StepSource
from nemesis.verbs.verb import Director, Verb
from nemesis.words import did_you_mean, rule_name

_KEYS: Final = ("as", "of", "rate")
_RATE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(kbit|mbit|gbit)", re.IGNORECASE)
_UNITS: Final = {"kbit": 1000, "mbit": 1000**2, "gbit": 1000**3}
_RATE_MIN: Final = 8000
_DRAWN_BITS_PER_S: Final = (1_000_000, 5_000_000, 20_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth(Breaking):
    """Bound what each of these nodes may send, until it is healed by its name."""

    name: str
    target: Target
    bits_per_s: int


def _parse(written: StepSource) -> Bandwidth:
    operand, stage = written.operand, written.stage
    if not isinstance(operand, dict) or not {"of", "rate"} <= set(operand):
        raise SpecError((), "bandwidth takes {of: broker-1, rate: 1Mbit}")
    data = {str(key): value for key, value in operand.items()}
    for key in data:
        if key not in _KEYS:
            raise SpecError((key,), f"unknown key {key!r}; {did_you_mean(key, _KEYS)}")
    try:
        target = parse_target(data["of"], stage)
    except SpecError as error:
        raise error.below("of") from None
    name = rule_name(data.get("as", "bandwidth"))
    return Bandwidth(name=name, target=target, bits_per_s=_rate(data["rate"]))


def _data(step: Bandwidth) -> dict[str, object]:
    rate = f"{step.bits_per_s / 1000:g}kbit"
    return {"bandwidth": {"as": step.name, "of": target_data(step.target), "rate": rate}}


def _perform(step: Bandwidth, director: Director) -> bool:
    return director.on_the_wire(step)


def _follow(step: Bandwidth, predicted: PredictedState) -> None:
    predicted.begin(step.name, predicted.partitions, what="partition or bandwidth")


def _begin(draft: Opening) -> Begun | None:
    end_s = draft.drawn_end_s()
    nodes = (draft.draw.choice(draft.scene.serving),)
    rate = draft.draw.choice(_DRAWN_BITS_PER_S)
    if draft.free(nodes) != nodes:
        return None
    bound = Bandwidth(name=draft.name, target=NamedNodes(nodes=nodes), bits_per_s=rate)
    return Begun(nodes=nodes, due=[(draft.now_s, bound), (end_s, HealPartition(name=draft.name))])


def _rate(value: object) -> int:
    found = _RATE.fullmatch(str(value))
    bits_per_s = 0 if found is None else int(float(found[1]) * _UNITS[found[2].lower()])
    if bits_per_s < _RATE_MIN:
        raise SpecError(("rate",), f"expected 8kbit or more, as 500kbit or 10Mbit, found {value!r}")
    return bits_per_s


VERBS = (
    Verb(
        word="bandwidth",
        example=("bandwidth: {as: b, of: broker-1, rate: 1Mbit}",),
        step=Bandwidth,
        parse=_parse,
        data=_data,
        perform=_perform,
        follow=_follow,
        fault=True,
        why_not=lambda _step, there: there.why_no_packets,
        why_not_tried=lambda _step: "a trial does not do it",
        episodes=(Episode(kind="bandwidth", begin=_begin, prerequisite=Prerequisite.NETWORKS),),
        tones=("#be123c", "#f08aa0"),
    ),
)
