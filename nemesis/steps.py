"""A play as values: steps in order, and the blocks that repeat some or choose among them."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fencepost.clusters.observation import Down
from fencepost.clusters.port import NodeName
from fencepost.nemesis.targets import NamedNodes
from fencepost.nemesis.verbs.await_condition import Await
from fencepost.nemesis.verbs.prerequisite import Prerequisite
from fencepost.nemesis.verbs.registry import is_fault, kind_of, verb_of
from fencepost.nemesis.verbs.start_clients import StartClients
from fencepost.nemesis.verbs.step import Breaking, OnNodes, Play, Step
from fencepost.nemesis.verbs.wait import Wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat(Step):
    """The same steps again and again."""

    times: int
    steps: Play


@dataclass(frozen=True, slots=True, kw_only=True)
class Choose(Step):
    """One of several lists of steps, drawn from the seed."""

    options: tuple[Play, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap(Step):
    """A step that cannot be read. Its play is refused, once the other steps have been followed."""

    written: object


def dealt(play: Play, draw: random.Random) -> Iterator[tuple[str, Step]]:
    """Yield each step to perform with its number, e.g. `4` or `4.2`; draw choices on the way."""
    for number, step in enumerate(play, start=1):
        if isinstance(step, Repeat | Choose) and step.at_s is not None:
            yield str(number), Wait(for_s=0.0, at_s=step.at_s)
        match step:
            case Repeat(steps=steps, times=times):
                for _ in range(times):
                    yield from ((f"{number}.{inner}", one) for inner, one in dealt(steps, draw))
            case Choose(options=options):
                chosen = dealt(draw.choice(options), draw)
                yield from ((f"{number}.{inner}", one) for inner, one in chosen)
            case _:
                yield str(number), step


def flat(play: Iterable[Step]) -> Iterator[Step]:
    """Yield every step that a play may perform, those of loops and choices once each."""
    return (step for _, step in places(play))


def next_ends(play: Iterable[Step]) -> frozenset[NodeName]:
    """Return the nodes whose end is awaited by the next step that concerns them."""
    ending: set[NodeName] = set()
    others: set[NodeName] = set()
    for step in play:
        if isinstance(step, Await) and isinstance(step.condition, Down):
            if step.condition.node not in others:
                ending.add(step.condition.node)
        elif isinstance(step, OnNodes):
            if not isinstance(step.target, NamedNodes):
                break  # which nodes it concerns is not known yet
            others.update(step.target.nodes)
    return frozenset(ending)


def places(play: Iterable[Step]) -> Iterator[tuple[tuple[str | int, ...], Step]]:
    """Yield each step of `flat`, with its path in the document below the play."""
    for index, step in enumerate(play):
        match step:
            case Repeat(steps=steps):
                for place, one in places(steps):
                    yield (index, "steps", *place), one
            case Choose(options=options):
                for number, option in enumerate(options):
                    for place, one in places(option):
                        yield (index, "choose", number, *place), one
            case _:
                yield (index,), step


def kinds_of_play(play: Iterable[Step]) -> tuple[str, ...]:
    """Return the kinds of fault that a play begins, each once; of a choice, of all options."""
    begun = (step for step in flat(play) if isinstance(step, Breaking) and is_fault(step))
    return tuple(dict.fromkeys(map(kind_of, begun)))


def prerequisites_of(steps: Iterable[Step]) -> frozenset[Prerequisite]:
    """Return the means that nodes have to start with so that these can be done to them."""
    actions = (verb_of(step).action for step in flat(steps) if isinstance(step, OnNodes))
    return frozenset(
        action.prerequisite
        for action in actions
        if action is not None and action.prerequisite is not None
    )


def starts_clients(play: Iterable[Step]) -> bool:
    """Return whether some step starts the clients, which then do not begin before the play."""
    return any(isinstance(step, StartClients) for step in flat(play))


def uses_clients(play: Iterable[Step]) -> bool:
    """Return whether some step concerns the links of clients, which then go through the proxy."""
    return any(verb_of(step).concerns_clients(step) for step in flat(play))
