"""The preparation of all that a cluster needs, before anything of the run starts."""

from dataclasses import replace

from clusters.hosts.warden import Warden
from clusters.kafka.class_archives import class_archives
from clusters.kafka.configuration import refuse_impossible
from clusters.kafka.features import Levels, levels_in
from clusters.kafka.formatting import bootstrap_of
from clusters.kafka.prepared import KafkaPrepared
from clusters.kafka.releases import fetch_release
from clusters.kafka_port import KafkaSpec, Quorum
from clusters.provision.cache import Progress
from clusters.provision.java import find_java
from clusters.witness.definitions import definitions_of

__all__ = ["prepare", "with_levels", "with_release"]


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


def _plain(spec: KafkaSpec, *, release: str, version: str | None) -> KafkaSpec:
    """The spec, of another release. First voters are made by the one that it starts on."""
    return replace(spec, release=release, metadata_version=version, quorum=Quorum.STATIC)
