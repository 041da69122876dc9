"""The end of what is broken: of one partition or bandwidth by its name, or of all there is.

- heal: cut-off
- heal: all                       # whatever this play has broken so far
"""

from dataclasses import dataclass

from fencepost.nemesis.verbs.predicted_state import PredictedState
from fencepost.nemesis.verbs.step import Step
from fencepost.nemesis.verbs.step_source import StepSource
from fencepost.nemesis.verbs.verb import Director, Verb

_ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heal(Step):
    """Undo whatever is broken: release, unblock, resume what is paused, start what is down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealPartition(Step):
    """Undo the partition, or the bound on bandwidth, of this name."""

    name: str


def _parse(written: StepSource) -> Heal | HealPartition:
    name = written.name("heal takes 'all' or the name of a partition or a bandwidth")
    return Heal() if name == _ALL else HealPartition(name=name)


def _heal_all(_step: Heal, director: Director) -> bool:
    return director.heal_all()


def _heal_one(step: HealPartition, director: Director) -> bool:
    return director.on_the_wire(step)


def _follow_one(step: HealPartition, predicted: PredictedState) -> None:
    predicted.end(step.name, predicted.partitions, word="heal")


VERBS = (
    Verb(
        word="heal",
        example=("kill: broker-1", "heal: all"),
        step=Heal,
        parse=_parse,
        data=lambda _step: {"heal": _ALL},
        perform=_heal_all,
        follow=lambda _step, predicted: predicted.heal(),
    ),
    Verb(
        word="heal",
        example=("partition: {as: p, isolate: broker-1}", "heal: p"),
        step=HealPartition,
        parse=_parse,
        data=lambda step: {"heal": step.name},
        perform=_heal_one,
        follow=_follow_one,
    ),
)
