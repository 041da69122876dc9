"""What a play comes to beside the release that its cluster starts on, made ready before the run."""

from clusters.kafka.prepared import Prepared
from clusters.kafka.upgrade_preparation import with_levels, with_release
from clusters.provision.cache import Progress
from harness.prepare.releases import steps_of
from harness.scenario.scenario import Scenario
from history.failure import SpecError, UsageError
from nemesis.verbs.finalise import Finalise
from nemesis.verbs.start import StartsAnew

__all__ = ["with_upgrades"]


def with_upgrades(scenario: Scenario, prepared: Prepared, progress: Progress) -> Prepared:
    """With every release and metadata.version that the play names.

    Raises UsageError, with the place of the step, for one that there is not.
    """
    ready = prepared
    for index, step in steps_of(scenario):
        if isinstance(step, StartsAnew) and step.release is not None:
            try:
                ready = with_release(ready, step.release, spec=scenario.cluster, progress=progress)
            except UsageError as error:
                raise scenario.document.error(SpecError(("play", index), str(error))) from error
    # Which levels a metadata.version implies is asked of the newest release of them all.
    for index, step in steps_of(scenario):
        if isinstance(step, Finalise):
            try:
                ready = with_levels(ready, step.version, spec=scenario.cluster, progress=progress)
            except UsageError as error:
                raise scenario.document.error(SpecError(("play", index), str(error))) from error
    return ready
