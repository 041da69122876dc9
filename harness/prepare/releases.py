"""The releases that a run uses: those that do not exist are refused at once."""

from typing import Final

from clusters.system import Make
from clusters.systems import KAFKA
from harness.prepare.upgrades import wanted_by
from harness.scenario.scenario import Scenario
from history.failure import Mistakes, SpecError, UsageError

__all__ = ["IN_IMAGE", "refuse_missing_releases"]

IN_IMAGE: Final = "image:"
"""The prefix of the name of a directory inside the containers' image."""


def refuse_missing_releases(scenario: Scenario, make: Make, *, image: str | None) -> None:
    """Raise UsageError for a release that does not exist.

    It is checked as far as it is known before the fetch.
    """
    name = scenario.cluster.release
    # A build of one's own, as an image holds it, is possible of Kafka alone.
    if make is not KAFKA or not name.startswith(IN_IMAGE):
        make.is_here(name)
    elif image is None:
        raise UsageError(f"{name} is a place in an image: pass --host docker --image NAME as well")
    mistakes = Mistakes()
    for index, wanted in wanted_by(scenario.play).releases:
        try:
            make.is_here(wanted)
        except UsageError as error:
            mistakes.note(("play", index), str(error))
    try:
        mistakes.refuse()
    except SpecError as error:
        raise scenario.document.error(error) from None
