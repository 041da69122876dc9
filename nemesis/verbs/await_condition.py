"""The play goes on when a condition holds, and ends where it does not within its bound.

- await: {isr: {t-0: [1]}}        # `nemesis.condition_words` has them all
  within: 20s
"""

from dataclasses import dataclass

from clusters.abilities import KeepsFiles
from clusters.kafka_conditions import LogEnd, Registered
from clusters.kafka_port import LogEnds
from clusters.observation import Acknowledged, Changed, Condition, Down
from nemesis.condition_words import parse_condition
from nemesis.verbs.course import Now, PlayCourse
from nemesis.verbs.step import AWAIT_BOUND_S, Bounded
from nemesis.verbs.verb import Capabilities, Director, Verb
from nemesis.verbs.written import Written
from nemesis.words import duration_text

__all__ = ["VERBS", "Await"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Await(Bounded):
    """Go on when the condition holds; if it does not within the bound, the play ends there."""

    condition: Condition


def _parse(written: Written) -> Await:
    within_s = written.duration_s("within") if "within" in written.item else AWAIT_BOUND_S
    condition = parse_condition(written.operand, stage=written.stage)
    return Await(condition=condition, within_s=within_s)


def _data(step: Await) -> dict[str, object]:
    return {"await": step.condition.data(), "within": duration_text(step.within_s)}


def _perform(step: Await, director: Director) -> bool:
    return director.await_condition(step)


def _follow(step: Await, course: PlayCourse) -> None:
    condition = step.condition
    if isinstance(condition, Acknowledged):
        course.require_clients("await")
    for name in condition.rules:
        course.require(name, course.rules, word="await")
    if isinstance(condition, Down) and course.nodes.get(condition.node) is not Now.TROUBLED:
        course.nodes[condition.node] = Now.DOWN


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
            return "a trial looks at no log ends"
        case Changed():
            return "a trial looks at no files"
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
