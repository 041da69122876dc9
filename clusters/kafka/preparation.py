"""The preparation of all that a cluster needs, before anything of the run starts."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from fencepost.clusters.hosts.command import run_command
from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.cluster import KafkaCluster
from fencepost.clusters.kafka.configuration import refuse_impossible
from fencepost.clusters.kafka.features import Levels, levels_in
from fencepost.clusters.kafka.formatting import bootstrap_of
from fencepost.clusters.kafka.launch import HEAP
from fencepost.clusters.kafka.prepared import KafkaPrepared
from fencepost.clusters.kafka.releases import fetch_release
from fencepost.clusters.kafka_port import KafkaSpec, Quorum, Role
from fencepost.clusters.provision.cache import Progress
from fencepost.clusters.provision.class_archives import TRAINING_OPTION, Training, archives_of
from fencepost.clusters.provision.java import find_java
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.clusters.witness.definitions import definitions_of
from fencepost.history.clock import Clock


def prepare(spec: KafkaSpec, progress: Progress) -> KafkaPrepared:
    """Fetch, format and train what is not in the cache yet: minutes the first time, ms afterwards.

    Raises UsageError if there is no such release or the release does not accept the metadata
    version or the settings; HarnessError if it cannot be had.
    """
    refuse_impossible(spec)
    java = find_java()
    # One of its own: the run has none yet, and nothing of this must outlive the harness either.
    with Warden(run_id="prepare") as warden:
        release = fetch_release(spec.release, java=java, warden=warden, progress=progress)
        bootstrap = bootstrap_of(spec, release=release, java=java, warden=warden, progress=progress)
        prepared = KafkaPrepared(java=java, release=release, bootstrap=bootstrap)
        archives = class_archives(prepared, warden=warden, progress=progress)
    return replace(prepared, class_archives=archives)


def with_release(
    prepared: KafkaPrepared, release: str, *, spec: KafkaSpec, progress: Progress
) -> KafkaPrepared:
    """Return it with this release, too: fetched, formatted, trained. Errors as of `prepare`."""
    if release == prepared.release.name or release in prepared.also:
        return prepared
    other = prepare(_plain(spec, release=release, version=None), progress)
    return replace(prepared, also={**prepared.also, release: other})


def with_levels(
    prepared: KafkaPrepared, version: str, *, spec: KafkaSpec, progress: Progress
) -> KafkaPrepared:
    """Return it with the feature levels of this metadata.version, as its newest release has them.

    Raises UsageError, with the versions that it knows, if that release does not know this one.
    """
    newest = prepared.releases[-1]
    own = _plain(spec, release=newest.name, version=version)
    with Warden(run_id="prepare") as warden:
        bootstrap = bootstrap_of(
            own, release=newest, java=prepared.java, warden=warden, progress=progress
        )
    levels: Levels = levels_in(bootstrap.checkpoint, definitions=definitions_of(newest.jars))
    return replace(prepared, levels={**prepared.levels, version: levels})


def class_archives(
    prepared: KafkaPrepared, *, warden: Warden, progress: Progress
) -> Mapping[Role, Path]:
    """Return the archive of classes for each role, with which nodes start quickly.

    Made if need be; none at all if making them fails.
    """
    training = Training(
        title=f"Kafka {prepared.release.version}",
        release=prepared.release,
        java=prepared.java,
        heap=HEAP,
        nodes={role.name: (f"{role.name}-1",) for role in KafkaSpec.roles},
        run=lambda draft: _train(draft, replace(prepared, class_archives={}), warden=warden),
    )
    found = archives_of(training, run=partial(run_command, warden=warden), progress=progress)
    return {Role(role): archive for role, archive in found.items()}


def _plain(spec: KafkaSpec, *, release: str, version: str | None) -> KafkaSpec:
    """The spec, of another release. First voters are made by the one that it starts on."""
    return replace(spec, release=release, metadata_version=version, quorum=Quorum.STATIC)


def _train(draft: Path, prepared: KafkaPrepared, *, warden: Warden) -> None:
    """Run a cluster of one and one, from start to stop, with a topic in between."""
    spec = KafkaSpec(controllers=1, brokers=1, java_options=(TRAINING_OPTION,))
    cluster = KafkaCluster(
        spec,
        prepared=prepared,
        site=Site(host=LocalHost(warden), directory=draft, clock=Clock.start()),
    )
    try:
        cluster.start()
        cluster.create_topics([TopicSpec(name="t", replication_factor=1)])
    finally:
        cluster.stop()
