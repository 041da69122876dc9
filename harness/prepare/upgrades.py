"""What a play comes to beside the release that its cluster starts on, made ready before the run."""

from collections.abc import Iterator

from clusters.kafka.prepared import Prepared
from clusters.kafka.upgrade_preparation import with_levels, with_release
from clusters.provision.cache import Progress
from harness.scenario.scenario import Scenario
from history.failure import SpecError, UsageError
from nemesis.steps import flat
from nemesis.verbs.finalise import Finalise
from nemesis.verbs.start import StartsAnew
from nemesis.verbs.step import Step

__all__ = ["with_upgrades"]


def with_upgrades(scenario: Scenario, prepared: Prepared, progress: Progress) -> Prepared:
    """With every release and metadata.version that the play names.

    Raises UsageError, with the place of the step, for one that there is not.
    """
    ready = prepared
    for index, step in _steps(scenario):
        if isinstance(step, StartsAnew) and step.release is not None:
            try:
                ready = with_release(ready, step.release, spec=scenario.cluster, progress=progress)
            except UsageError as error:
                raise scenario.document.error(SpecError(("play", index), str(error))) from error
    # Which levels a metadata.version implies is asked of the newest release of them all.
    for index, step in _steps(scenario):
        if isinstance(step, Finalise):
            try:
                ready = with_levels(ready, step.version, spec=scenario.cluster, progress=progress)
            except UsageError as error:
                raise scenario.document.error(SpecError(("play", index), str(error))) from error
    return ready


def _steps(scenario: Scenario) -> Iterator[tuple[int, Step]]:
    """Each step with the place of the one in the file that it is part of."""
    for index, top in enumerate(scenario.play or ()):
        for step in flat((top,)):
            yield index, step
