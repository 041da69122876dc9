"""One run of a scenario, as `run` makes it alone or as one of a series.

Slow imports happen where they are needed, so that a refusal does not wait for them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from fencepost.harness.progress import Progress
from fencepost.harness.scenario.options import RunOptions
from fencepost.harness.scenario.scenario import Scenario

if TYPE_CHECKING:
    from fencepost.harness.run.outcome import RunOutcome


def run_once(
    scenario: Scenario, options: RunOptions, progress: Progress, say: Callable[[str], None]
) -> "RunOutcome":
    """Plan the scenario, refuse what cannot be, and run it.

    `say` takes what is said before anything starts.
    """
    from fencepost.harness.run.plan import planned

    plan = planned(scenario, options, say)
    _refuse_at_once(scenario, options)
    from fencepost.harness.run.run import run_planned

    return run_planned(plan, progress)


def _refuse_at_once(scenario: Scenario, options: RunOptions) -> None:
    """Raise UsageError or HarnessError for want of what every run takes.

    The run asks again; but what it imports takes seconds.
    """
    from fencepost.clusters.provision.java import find_java
    from fencepost.harness.run.lock import alone

    find_java()
    with alone(scenario, options):
        pass
