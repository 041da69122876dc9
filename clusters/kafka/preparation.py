"""The preparation of all that a spec's cluster needs, before anything of the run starts."""

from dataclasses import replace

from clusters.hosts.warden import Warden
from clusters.kafka.class_archives import class_archives
from clusters.kafka.configuration import refuse_impossible
from clusters.kafka.formatting import bootstrap_of
from clusters.kafka.prepared import KafkaPrepared
from clusters.kafka.releases import fetch_release
from clusters.kafka_port import KafkaSpec
from clusters.provision.cache import Progress
from clusters.provision.java import find_java

__all__ = ["prepare"]


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
