"""Verbs that are done to clients: their common parts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from fencepost.nemesis.clients import ClientChoice, ControlsClients, parse_clients
from fencepost.nemesis.verbs.episode import Episode
from fencepost.nemesis.verbs.predicted_state import PredictedState
from fencepost.nemesis.verbs.step import Breaking
from fencepost.nemesis.verbs.step_source import StepSource
from fencepost.nemesis.verbs.verb import Director, Verb


@dataclass(frozen=True, slots=True, kw_only=True)
class OnClients(Breaking):
    """A step that is done to client processes."""

    clients: ClientChoice


C = TypeVar("C", bound=OnClients)


def client_verb(
    word: str,
    example: tuple[str, ...],
    step: type[C],
    do: Callable[[ControlsClients, str], str],
    *,
    healed_by: str = "",
    then: Callable[[ControlsClients, str], str] | None = None,
    follow: Callable[[C, PredictedState], None] = lambda _step, _course: None,
    episodes: tuple[Episode, ...] = (),
    tones: tuple[str, str] | None = None,
) -> Verb[C]:
    """Make one. `do` returns the evidence that it took effect.

    A fault has either the verb that ends it in `healed_by`, or `then`, which waits for its end.
    """

    def parse(written: StepSource) -> C:
        return step(clients=parse_clients(written.operand))

    def perform(asked: C, director: Director) -> bool:
        return director.on_clients(asked, do, then)

    def follow_begun(asked: C, predicted: PredictedState) -> None:
        predicted.require_clients(word)
        follow(asked, predicted)

    return Verb(
        word=word,
        example=example,
        step=step,
        parse=parse,
        data=lambda asked: {word: asked.clients.text},
        perform=perform,
        follow=follow_begun,
        why_not=lambda _step, there: there.why_no_clients,
        fault=bool(healed_by) or then is not None,
        healed_by=healed_by,
        episodes=episodes,
        tones=tones,
    )
