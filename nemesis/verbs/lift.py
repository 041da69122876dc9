"""The end of a rule: what it holds is delivered in order, or dropped.

- release: join
- discard: join
"""

from dataclasses import dataclass

from fencepost.nemesis.verbs.predicted_state import PredictedState
from fencepost.nemesis.verbs.step import Step
from fencepost.nemesis.verbs.step_source import StepSource
from fencepost.nemesis.verbs.verb import Director, Verb


@dataclass(frozen=True, slots=True, kw_only=True)
class Lift(Step):
    """Take a rule away. What it holds is delivered in order, or discarded."""

    name: str
    discard: bool = False

    @property
    def word(self) -> str:
        """The word of a play that does it."""
        return "discard" if self.discard else "release"


def _parse(written: StepSource) -> Lift:
    name = written.name(f"{written.word} takes the name of a rule")
    return Lift(name=name, discard=written.word == "discard")


def _perform(lift: Lift, director: Director) -> bool:
    return director.on_the_wire(lift)


def _follow(lift: Lift, predicted: PredictedState) -> None:
    predicted.end(lift.name, predicted.rules, word=lift.word)


VERBS = tuple(
    Verb(
        word=word,
        example=(
            "hold: {as: r, api: Fetch, from: broker-1}",
            f"{word}: r",
        ),
        step=Lift,
        fits=lambda lift, word=word: lift.word == word,  # type: ignore[misc]
        parse=_parse,
        data=lambda lift: {lift.word: lift.name},
        perform=_perform,
        follow=_follow,
    )
    for word in ("release", "discard")
)
