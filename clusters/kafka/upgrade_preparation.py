"""The preparation of each release and metadata.version that a run's play needs."""

from dataclasses import replace

from clusters.hosts.warden import Warden
from clusters.kafka.features import Levels, levels_in
from clusters.kafka.formatting import bootstrap_of
from clusters.kafka.preparation import prepare
from clusters.kafka.prepared import KafkaPrepared
from clusters.kafka_port import KafkaSpec, Quorum
from clusters.provision.cache import Progress
from clusters.witness.definitions import definitions_of

__all__ = ["with_levels", "with_release"]


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
