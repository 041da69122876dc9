"""A bound on what nodes may send, until it is healed by its name.

- bandwidth: {of: broker-1, rate: 1Mbit, as: thin}     # what it sends
- heal: thin

A mix draws from an old line out of town to a busy one; heartbeats pass through any in time.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fencepost.clusters.port import NodeName
from fencepost.history.failure import SpecError
from fencepost.nemesis.schedules.deeds import HealCut
from fencepost.nemesis.schedules.draws import Among, AnyOf
from fencepost.nemesis.schedules.schedule import Pick, Schedule, lasting
from fencepost.nemesis.schedules.scope import SERVING, TARGET, Scope
from fencepost.nemesis.targets import NamedNodes, Scene, Target, parse_target, target_data
from fencepost.nemesis.verbs.episode import on_cluster
from fencepost.nemesis.verbs.predicted_state import PredictedState
from fencepost.nemesis.verbs.prerequisite import Prerequisite
from fencepost.nemesis.verbs.step import Breaking, Step
from fencepost.nemesis.verbs.step_source import StepSource
from fencepost.nemesis.verbs.verb import Director, Verb
from fencepost.nemesis.words import did_you_mean, rule_name

_KEYS: Final = ("as", "of", "rate")
_RATE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(kbit|mbit|gbit)", re.IGNORECASE)
_UNITS: Final = {"kbit": 1000, "mbit": 1000**2, "gbit": 1000**3}
_RATE_MIN: Final = 8000


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


@dataclass(frozen=True, slots=True)
class _Bound(Schedule):
    """Bandwidth of what the target sends: one of these rates."""

    bits_per_s: AnyOf

    def unfold(self, scope: Scope) -> Iterator[Step]:
        """Bound it."""
        scope.cut.append(scope.label)
        target = NamedNodes(nodes=scope.party(TARGET))
        yield Bandwidth(name=scope.label, target=target, bits_per_s=self.bits_per_s.drawn(scope))


_RATES: Final = AnyOf((1_000_000, 5_000_000, 20_000_000))
_SCHEDULE: Final = lasting(Pick(TARGET, Among((SERVING,))), _Bound(_RATES), healed=HealCut())


def _lost(step: Step, _scene: Scene) -> tuple[NodeName, ...]:
    assert isinstance(step, Bandwidth)
    assert isinstance(step.target, NamedNodes)
    return step.target.nodes


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
        episodes=(
            on_cluster("bandwidth", _SCHEDULE, prerequisite=Prerequisite.NETWORKS, lost=_lost),
        ),
        tones=("#be123c", "#f08aa0"),
    ),
)
