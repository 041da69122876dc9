"""The releases that a run on Kafka comes to: those that there are not are refused at once."""

from collections.abc import Iterator
from typing import Final

from clusters.kafka.releases import is_here
from harness.scenario.scenario import Scenario
from history.failure import Mistakes, SpecError, UsageError
from nemesis.steps import flat
from nemesis.verbs.start import StartsAnew
from nemesis.verbs.step import Step

__all__ = ["IN_IMAGE", "refuse_missing_releases", "steps_of"]

IN_IMAGE: Final = "image:"
"""Before the name of a directory inside the containers' image."""


def refuse_missing_releases(scenario: Scenario, *, image: str | None) -> None:
    """UsageError for a release that there is not, as far as it is known before it is fetched."""
    name = scenario.cluster.release
    if not name.startswith(IN_IMAGE):
        is_here(name)
    elif image is None:
        raise UsageError(f"{name} is a place in an image: pass --host docker --image NAME as well")
    mistakes = Mistakes()
    for index, step in steps_of(scenario):
        if isinstance(step, StartsAnew) and step.release is not None:
            try:
                is_here(step.release)
            except UsageError as error:
                mistakes.note(("play", index), str(error))
    try:
        mistakes.refuse()
    except SpecError as error:
        raise scenario.document.error(error) from None


def steps_of(scenario: Scenario) -> Iterator[tuple[int, Step]]:
    """Each step with the place of the one in the file that it is part of."""
    for index, top in enumerate(scenario.play or ()):
        for step in flat((top,)):
            yield index, step
