"""The clients begin here, and not before the play.

- delete_topic: t                 # while no client has written to it
- await: {deleted: t}
- create_topic: {name: t}
- start_clients: all
"""

from dataclasses import dataclass

from fencepost.history.failure import SpecError
from fencepost.nemesis.verbs.step import Step
from fencepost.nemesis.verbs.step_source import StepSource
from fencepost.nemesis.verbs.verb import Director, Verb

_ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartClients(Step):
    """Start the clients of every workload."""


def _parse(written: StepSource) -> StartClients:
    if written.operand != _ALL:
        raise SpecError((), f"start_clients takes 'all', found {written.operand!r}")
    return StartClients()


def _perform(step: StartClients, director: Director) -> bool:
    return director.start_clients(step)


VERBS = (
    Verb(
        word="start_clients",
        example=("start_clients: all",),
        step=StartClients,
        parse=_parse,
        data=lambda _step: {"start_clients": _ALL},
        perform=_perform,
        follow=lambda _step, predicted: predicted.start_clients(),
        why_not_tried=lambda _step: "the clients of a trial begin with it",
    ),
)
