"""The releases of a run: its cluster's, and those that its play starts nodes with.

Those that do not exist are refused at once. A user who names no kind of cluster gets the system's
own: a release of Kafka is fetched once, and a run that cannot have it fails, since another cluster
in its place would pass the gate of a release that nobody tested. Only who asks for `--cluster auto`
gets nodes of our own where a scenario can be performed on these; that is said in one line.
"""

from collections.abc import Callable, Iterator
from typing import Final

from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.releases import fetch_release, is_here
from fencepost.clusters.provision.java import find_java
from fencepost.clusters.provision.releases import UnfetchedError
from fencepost.clusters.system import Make, Wanted
from fencepost.clusters.systems import KAFKA, REFERENCE, SIMULATED, system_of
from fencepost.harness.prepare.reference import refuse_what_is_kafkas
from fencepost.harness.scenario.scenario import Scenario
from fencepost.history.failure import Mistakes, SpecError, UsageError
from fencepost.nemesis.steps import flat
from fencepost.nemesis.verbs.finalise import Finalise
from fencepost.nemesis.verbs.start import StartsAnew
from fencepost.nemesis.verbs.step import Play, Step

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
        raise UsageError(f"{name} is a path in an image: pass --host docker --image NAME as well")
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


def wanted_by(play: Play | None, *, portable: bool = False) -> Wanted:
    """Return every release and metadata.version that the play names."""
    releases, levels = [], []
    for index, step in _steps(play or ()):
        if isinstance(step, StartsAnew) and step.release is not None:
            releases.append((index, step.release))
        if isinstance(step, Finalise):
            levels.append((index, step.version))
    return Wanted(releases=releases, levels=levels, portable=portable)


def _steps(play: Play) -> Iterator[tuple[int, Step]]:
    """Yield each step with the place of the one in the file that it is part of."""
    for index, top in enumerate(play):
        for step in flat((top,)):
            yield index, step


def default_cluster(scenario: Scenario) -> Make:
    """Return the first make of its system. A trial of ours has no other nodes than SIMULATED."""
    first = system_of(scenario.cluster).makes[0]
    return SIMULATED if first is KAFKA and scenario.trial is not None else first


def available_cluster(
    scenario: Scenario, say: Callable[[str], None], *, fetch: bool = True
) -> Make:
    """Return the default, or REFERENCE where its release of Kafka cannot be had.

    Without `fetch` no release is fetched; `say` is told what a run would do.
    """
    first = default_cluster(scenario)
    if first is not KAFKA or not _fits_reference(scenario):
        return first
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


def say_what_is_fetched(scenario: Scenario, make: Make, say: Callable[[str], None]) -> None:
    """Say which release of Kafka a run would fetch, if it is not here."""
    release = scenario.cluster.release
    if make is KAFKA and not release.startswith(IN_IMAGE) and not is_here(release):
        say(f"Kafka {release} is to be fetched first")


def way_out(scenario: Scenario, error: UnfetchedError) -> UnfetchedError:
    """Return the error with what can be run without the release, if anything can."""
    if system_of(scenario.cluster).makes[0] is not KAFKA or not _fits_reference(scenario):
        return error
    return UnfetchedError(
        f"{error}; --cluster reference runs this scenario on nodes of our own instead, which says "
        "nothing of Kafka (--cluster auto: wherever no release can be had)"
    )


def _fits_reference(scenario: Scenario) -> bool:
    try:
        refuse_what_is_kafkas(scenario)
    except UsageError:
        return False
    return True
