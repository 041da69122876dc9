"""The settings of a scenario, held against the names that its release and its clients define.

A node or a client that is given a property it does not know may say nothing of it; the run would
then be about other settings than its author believes. Nodes of our own say themselves what means
nothing to them. Releases that a play starts later may know other names, and are not asked.
"""

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import Final, cast

from fencepost.clusters.hosts.command import run_command
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.prepared import PreparedKafka
from fencepost.clusters.kafka.setting_names import SettingNames, setting_names, stored_names
from fencepost.clusters.kafka_port import BrokersSpec, KafkaSpec
from fencepost.clusters.provision.java import Java, find_java
from fencepost.clusters.provision.releases import Release
from fencepost.clusters.system import Make
from fencepost.harness.scenario.scenario import Scenario
from fencepost.history.failure import Mistakes, SpecError
from fencepost.nemesis.steps import places
from fencepost.nemesis.verbs.configure import Configure
from fencepost.nemesis.verbs.create_topic import CreateTopic
from fencepost.workloads.produce_poll_spec import ProducePollSpec

Path_ = tuple[str | int, ...]

_OURS: Final = "fencepost."
"""The prefix of what only nodes of our own understand; a scenario may be for both."""
_OF_LISTENER: Final = "listener.name."
_CLIENTS_FIELD: Final = "settings"


def has_settings(scenario: Scenario) -> bool:
    """Return whether the scenario states any setting of nodes or topics of Kafka's."""
    return any(True for _ in _stated(scenario))


def refuse_unknown_settings(
    scenario: Scenario, release: Release, *, java: Callable[[], Java], say: Callable[[str], None]
) -> None:
    """Raise UsageError, with its place and the nearest name, for what the release does not define.

    `java`: called only if the release was not asked before. Nothing of the program that tells the
    names outlives the call.
    """
    if not has_settings(scenario):
        return
    if (names := stored_names(release)) is None:
        with Warden(run_id="settings") as warden:
            run = partial(run_command, warden=warden)
            names = setting_names(release, java=java(), run=run, progress=say)
    try:
        unknown_in(scenario, names, release=release.version).refuse()
    except SpecError as error:
        raise scenario.document.error(error) from None


def refuse_unknown_in_cache(scenario: Scenario, make: Make, say: Callable[[str], None]) -> None:
    """Do the same for a release that is here; nothing is fetched."""
    release = import_module(make.releases_module).release_here(scenario.cluster.release)
    if release is not None:
        refuse_unknown_settings(scenario, release, java=find_java, say=say)


def refuse_unknown_of(scenario: Scenario, prepared: object, say: Callable[[str], None]) -> None:
    """Do the same for the release of a cluster of brokers of Kafka's that is prepared."""
    if isinstance(scenario.cluster, BrokersSpec):
        ready = cast("PreparedKafka", prepared)
        refuse_unknown_settings(scenario, ready.release, java=lambda: ready.java, say=say)


def unknown_in(scenario: Scenario, names: SettingNames, *, release: str) -> Mistakes:
    """Return the settings of a scenario that are not among these."""
    mistakes = Mistakes()
    for path, of_topic in _stated(scenario):
        name = str(path[-1])
        known = names.topics if of_topic else names.nodes
        if not known or _is_known(name, known, () if of_topic else names.constants):
            continue
        owner = "topic" if of_topic else "node"
        mistakes.note(
            path, f"Kafka {release} has no setting {name!r} of a {owner}; {_nearest(name, known)}"
        )
    return mistakes


def refuse_unknown_of_clients(scenario: Scenario) -> None:
    """Raise UsageError for settings of clients that their library does not know."""
    workload = scenario.workload
    if not isinstance(workload, ProducePollSpec) or not workload.consumer_settings:
        return
    from confluent_kafka import KafkaException, Producer  # noqa: PLC0415  # it takes its time

    mistakes = Mistakes()
    for name, value in workload.consumer_settings.items():
        try:
            Producer({"log_level": "0", name: value})
        except KafkaException as error:
            found = error.args[0].str() if error.args else str(error)
            mistakes.note(("workload", _CLIENTS_FIELD, name), f"the clients refuse it: {found}")
    try:
        mistakes.refuse()
    except SpecError as error:
        raise scenario.document.error(error) from None


def _is_known(name: str, known: frozenset[str], constants: frozenset[str] | tuple[()]) -> bool:
    if name in known or name in constants or name.startswith(_OURS):
        return True
    if name.startswith(_OF_LISTENER):
        _, _, own = name.removeprefix(_OF_LISTENER).partition(".")
        return any(own == one or own.endswith(f".{one}") for one in known)
    return False


def _nearest(name: str, known: frozenset[str]) -> str:
    near = get_close_matches(name, sorted(known), n=1)
    return f"did you mean {near[0]!r}?" if near else f"none of its {len(known)} names is near"


def _stated(scenario: Scenario) -> Iterator[tuple[Path_, bool]]:
    """Yield the place of each setting of a node or a topic, and whether it is a topic's."""
    spec = scenario.cluster
    if not isinstance(spec, BrokersSpec):
        return
    own: dict[str, Mapping[str, str]] = {
        "settings": spec.settings,
        "broker_settings": spec.broker_settings,
    }
    if isinstance(spec, KafkaSpec):
        own["controller_settings"] = spec.controller_settings
    for key, settings in own.items():
        yield from ((("cluster", key, name), False) for name in settings)
    for index, topic in enumerate(scenario.topics):
        yield from ((("topics", index, "settings", name), True) for name in topic.settings)
    for place, step in places(scenario.play or ()):
        match step:
            case Configure():
                yield from ((("play", *place, "settings", name), False) for name in step.settings)
            case CreateTopic():
                at = ("play", *place, "create_topic", "settings")
                yield from (((*at, name), True) for name in step.topic.settings)
