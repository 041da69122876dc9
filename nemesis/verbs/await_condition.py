"""The play goes on when a condition holds, and ends where it does not within its bound.

- await: {isr: {t-0: [1]}}
  within: 20s

Each condition has one word and one value. Some are every system's, the others the cluster's own
system's.
"""

from dataclasses import dataclass

from fencepost.clusters.abilities import KeepsFiles
from fencepost.clusters.kafka_conditions import LogEnd, Registered
from fencepost.clusters.kafka_port import LogEnds
from fencepost.clusters.observation import (
    CONDITIONS,
    Acknowledged,
    AllRecovered,
    Changed,
    Condition,
    Down,
)
from fencepost.clusters.stage import Stage
from fencepost.clusters.systems import SYSTEMS
from fencepost.history.failure import SpecError
from fencepost.nemesis.verbs.predicted_state import Now, PredictedState
from fencepost.nemesis.verbs.step import AWAIT_BOUND_S, Bounded
from fencepost.nemesis.verbs.step_source import StepSource
from fencepost.nemesis.verbs.verb import Capabilities, Director, Verb
from fencepost.nemesis.words import did_you_mean, duration_text

_RECOVERED = "recovered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Await(Bounded):
    """Go on when the condition holds; if it does not within the bound, the play ends there."""

    condition: Condition


def parse_condition(value: object, *, stage: Stage) -> Condition:
    """Parse `{isr: {t-0: [1]}}`, `{unfenced: broker-2}`, …: one word, one value."""
    if value == _RECOVERED:
        return AllRecovered()
    known = {**SYSTEMS[stage.system].conditions, **CONDITIONS}
    if not isinstance(value, dict) or len(value) != 1:
        words = ", ".join((*known, _RECOVERED))
        raise SpecError((), f"an await takes one condition; allowed: {words}")
    word, operand = next(iter(value.items()))
    if word not in known:
        found = f"unknown condition {word!r}; {did_you_mean(str(word), (*known, _RECOVERED))}"
        raise SpecError((str(word),), found)
    try:
        return known[word](word, operand, stage)
    except SpecError as error:
        raise error.below(str(word)) from None


def _parse(written: StepSource) -> Await:
    within_s = written.duration_s("within") if "within" in written.item else AWAIT_BOUND_S
    condition = parse_condition(written.operand, stage=written.stage)
    return Await(condition=condition, within_s=within_s)


def _data(step: Await) -> dict[str, object]:
    return {"await": step.condition.data(), "within": duration_text(step.within_s)}


def _perform(step: Await, director: Director) -> bool:
    return director.await_condition(step)


def _follow(step: Await, predicted: PredictedState) -> None:
    condition = step.condition
    if isinstance(condition, Acknowledged):
        predicted.require_clients("await")
    for name in condition.rules:
        predicted.require(name, predicted.rules, word="await")
    if isinstance(condition, Down) and predicted.nodes.get(condition.node) is not Now.TROUBLED:
        predicted.nodes[condition.node] = Now.DOWN


def _why_not(step: Await, there: Capabilities) -> str | None:
    match step.condition:
        case Registered():
            return there.why_no_wire
        case LogEnd():
            return there.lacks(LogEnds)
        case Changed():
            return there.why_not_here or there.lacks(KeepsFiles)
        case _:
            return None


def _why_not_tried(step: Await) -> str | None:
    match step.condition:
        case LogEnd():
            return "a trial does not observe log ends"
        case Changed():
            return "a trial does not observe files"
        case _:
            return None


VERBS = (
    Verb(
        word="await",
        example=("await: recovered",),
        step=Await,
        parse=_parse,
        data=_data,
        perform=_perform,
        modifiers=("within",),
        follow=_follow,
        why_not=_why_not,
        why_not_tried=_why_not_tried,
    ),
)
