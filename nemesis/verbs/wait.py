"""Time passes.

- wait: 2s
"""

from dataclasses import dataclass

from fencepost.nemesis.verbs.step import Step
from fencepost.nemesis.verbs.step_source import StepSource
from fencepost.nemesis.verbs.verb import Director, Verb
from fencepost.nemesis.words import duration_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait(Step):
    """Let time pass."""

    for_s: float


def _parse(written: StepSource) -> Wait:
    return Wait(for_s=written.duration_s("wait"))


def _perform(step: Wait, director: Director) -> bool:
    return director.wait(step)


VERBS = (
    Verb(
        word="wait",
        example=("wait: 10ms",),
        step=Wait,
        parse=_parse,
        data=lambda step: {"wait": duration_text(step.for_s)},
        perform=_perform,
    ),
)
