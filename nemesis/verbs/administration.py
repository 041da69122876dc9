"""Verbs of an operator: requests to the cluster in the middle of a play, with a bound."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from fencepost.clusters.port import Cluster, NodeName
from fencepost.clusters.stage import Stage
from fencepost.history.failure import SpecError
from fencepost.nemesis.verbs.predicted_state import PredictedState
from fencepost.nemesis.verbs.step import AWAIT_BOUND_S, Bounded
from fencepost.nemesis.verbs.step_source import StepSource
from fencepost.nemesis.verbs.verb import Director, Verb
from fencepost.nemesis.words import duration_text

B = TypeVar("B", bound=Bounded)


def admin_verb(
    word: str,
    example: tuple[str, ...],
    step: type[B],
    *,
    own: Callable[[StepSource], dict[str, Any]],
    operand: Callable[[B], object],
    do: Callable[[Cluster, B], None],
    ability: type,
    follow: Callable[[B, PredictedState], None] = lambda _step, _course: None,
    own_data: Callable[[B], dict[str, object]] = lambda _step: {},
    modifiers: tuple[str, ...] = (),
    one_by_one: Callable[[B], Sequence[B]] = lambda step: (step,),
    tried: bool = False,
) -> Verb[B]:
    """Make one: `own` reads the operand and `modifiers` as fields of the step.

    `operand` and `own_data` write them.
    `one_by_one`: the step as several, each of which may be refused.
    """

    def parse(written: StepSource) -> B:
        within_s = written.duration_s("within") if "within" in written.item else AWAIT_BOUND_S
        return step(within_s=within_s, **own(written))

    def perform(asked: B, director: Director) -> bool:
        return director.administer(asked, do, one_by_one)

    return Verb(
        word=word,
        example=example,
        step=step,
        parse=parse,
        data=lambda asked: {
            "within": duration_text(asked.within_s),
            word: operand(asked),
            **own_data(asked),
        },
        perform=perform,
        modifiers=("within", *modifiers),
        follow=follow,
        why_not=lambda _step, there: there.lacks(ability),
        why_not_tried=lambda _step: None if tried else "a trial does not do it",
    )


def by_key(written: StepSource, example: str) -> dict[object, object]:
    """Read the operand as values by key; raise SpecError if a key does not exist."""
    data, stage = written.operand, written.stage
    if not isinstance(data, dict) or not data:
        raise SpecError((), f"{written.word} takes keys and values, e.g. {example}")
    for key in data:
        if key not in stage.keys:
            raise SpecError((), f"no such partition: {key!r}; there are: {', '.join(stage.keys)}")
    return data


def broker_of(value: object, stage: Stage) -> int:
    """Read the number of a broker."""
    if not isinstance(value, int) or isinstance(value, bool) or value not in stage.broker_ids:
        raise SpecError((), f"no such broker: {value!r}; there are: {list(stage.broker_ids)}")
    return value


def nodes_of(written: StepSource) -> tuple[NodeName, ...]:
    """Read the operand as nodes whose membership can change."""
    value, stage = written.operand, written.stage
    items = value if isinstance(value, list) and value else [value]
    for item in items:
        if item not in stage.nodes:
            raise SpecError((), f"no such node: {item!r}; there are: {', '.join(stage.nodes)}")
        if item in stage.fixed:
            raise SpecError(
                (), f"{item} has a vote in a static quorum; set `quorum: dynamic` in the cluster"
            )
    return tuple(NodeName(str(item)) for item in items)


def nodes_data(nodes: tuple[NodeName, ...]) -> object:
    """Write what `nodes_of` reads."""
    return str(nodes[0]) if len(nodes) == 1 else [str(node) for node in nodes]
