"""Verbs that are done to nodes: their common parts, built from what each has of its own."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from fencepost.clusters.port import Cluster, NodeName, NodeState
from fencepost.history.failure import HarnessError, SpecError
from fencepost.nemesis.targets import target_data
from fencepost.nemesis.verbs.episode import Episode
from fencepost.nemesis.verbs.predicted_state import Now, PredictedState
from fencepost.nemesis.verbs.step import OnNodes
from fencepost.nemesis.verbs.step_source import StepSource
from fencepost.nemesis.verbs.verb import Capabilities, Director, NodeAction, Verb

N = TypeVar("N", bound=OnNodes)
_ELSEWHERE = "it is done on this machine, and the nodes are on others"

UP = (NodeState.RUNNING, NodeState.PAUSED)


def node_verb(
    word: str,
    example: tuple[str, ...],
    step: type[N],
    action: NodeAction[N],
    *,
    modifiers: tuple[str, ...] = (),
    own: Callable[[StepSource], dict[str, Any]] = lambda _written: {},
    own_data: Callable[[N], dict[str, object]] = lambda _step: {},
    before: Sequence[Now] = (),
    after: Now | None = None,
    also: Callable[[N, PredictedState], None] = lambda _step, _course: None,
    healed_by: str = "",
    kind: Callable[[N], str] | None = None,
    episodes: tuple[Episode, ...] = (),
    state: str = "",
    tones: tuple[str, str] | None = None,
) -> Verb[N]:
    """Make a verb that is done to nodes.

    `own` reads the modifiers as fields of the step, and `own_data` writes them. `before`: the
    states in which a node can be for it, none for any; `after`: the one in which it is then, None
    for the same. `also` changes the predicted state further, before its nodes are followed.
    """

    def follow(done: N, predicted: PredictedState) -> None:
        also(done, predicted)
        for node in predicted.named(done.target, word):
            _follow_node(word, node, predicted, before, after)

    return Verb(
        word=word,
        example=example,
        step=step,
        parse=lambda written: step(target=written.target(), **own(written)),
        data=lambda done: {word: target_data(done.target)} | own_data(done),
        perform=_act,
        modifiers=modifiers,
        follow=follow,
        why_not=lambda done, there: _why_not(action, done, there),
        why_not_tried=lambda _step: _why_not_tried(action),
        fault=bool(healed_by),
        healed_by=healed_by,
        kind=kind,
        action=action,
        episodes=episodes,
        state=state,
        tones=tones,
    )


def each(
    do: Callable[[Cluster, NodeName, N], str],
) -> Callable[[Cluster, Sequence[NodeName], N], str]:
    """Do the same to one node after the other."""

    def do_all(cluster: Cluster, nodes: Sequence[NodeName], step: N) -> str:
        return "; ".join(filter(None, [do(cluster, node, step) for node in nodes]))

    return do_all


def require_state(cluster: Cluster, node: NodeName, expected: NodeState) -> None:
    """Raise HarnessError unless the host sees the node in this state."""
    found = cluster.state(node)
    if found is not expected:
        raise HarnessError(f"{node}: expected it {expected}, found it {found}")


def _act(step: OnNodes, director: Director) -> bool:
    return director.act(step)


def _why_not(action: NodeAction[N], step: N, there: Capabilities) -> str | None:
    here = there.why_not_here if action.on_this_machine else None
    return here or there.lacks(*action.abilities, *action.further(step))


def _why_not_tried(action: NodeAction[N]) -> str | None:
    return None if action.tried_in or action.parts else "trials do not perform it"


_WAY_OUT = {Now.DOWN: "kill or stop it first", Now.PAUSED: "pause it first"}


def _follow_node(
    word: str, node: NodeName, predicted: PredictedState, before: Sequence[Now], after: Now | None
) -> None:
    now = predicted.now(node)
    if now is Now.TROUBLED:
        if Now.TROUBLED in before and after is not None:
            predicted.nodes[node] = after
        return
    if before and now not in before:
        if Now.TROUBLED in before:
            raise SpecError(
                (word,), f"{node}: no earlier step made its disk fail, fill up or stall"
            )
        if len(before) == 1 and before[0] in _WAY_OUT:
            way_out = _WAY_OUT[before[0]]
            raise SpecError((word,), f"{node} is {now} at this step; {way_out}")
        raise SpecError((word,), f"{node} is {now} already at this step")
    predicted.nodes[node] = after or now
