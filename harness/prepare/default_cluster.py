"""The cluster of a run whose user names none: Kafka, or the available one without it.

A release of Kafka is fetched once. Where that cannot be, a scenario that nodes of our own can
perform runs on these, and that is said in one line; what only Kafka can do is left to fail.
"""

from collections.abc import Callable

from clusters.hosts.warden import Warden
from clusters.kafka.releases import fetch_release, is_here
from clusters.provision.java import find_java
from clusters.provision.releases import UnfetchedError
from clusters.system import Make
from clusters.systems import KAFKA, REFERENCE, SIMULATED, system_of
from harness.prepare.reference import refuse_what_is_kafkas
from harness.scenario.scenario import Scenario
from history.failure import UsageError

__all__ = ["default_cluster"]


def default_cluster(scenario: Scenario, say: Callable[[str], None], *, fetch: bool = True) -> Make:
    """Return the first make of its system; of Kafka, REFERENCE where its release cannot be had.

    A trial is SIMULATED. Without `fetch` no release is fetched; `say` is told what a run would do.
    """
    first = system_of(scenario.cluster).makes[0]
    if first is not KAFKA:
        return first
    if scenario.trial is not None:
        return SIMULATED
    try:
        refuse_what_is_kafkas(scenario)
    except UsageError:
        return KAFKA
    release = scenario.cluster.release
    if is_here(release):
        return KAFKA
    if not fetch:
        say(f"Kafka {release} is to be fetched first; if it cannot be: --cluster reference")
        return KAFKA
    try:
        # Nothing of a fetch may outlive the harness either.
        with Warden(run_id="fetch") as warden:
            fetch_release(release, java=find_java(), warden=warden, progress=say)
    except UnfetchedError as error:
        say(f"{error}: the run is on the reference cluster instead, as with --cluster reference")
        return REFERENCE
    return KAFKA
