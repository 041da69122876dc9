"""The archives of classes that make Kafka's nodes start quickly: one for each role."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from clusters.hosts.command import run_command
from clusters.hosts.local_host import LocalHost
from clusters.hosts.warden import Warden
from clusters.kafka.cluster import KafkaCluster
from clusters.kafka.launch import HEAP
from clusters.kafka.prepared import KafkaPrepared
from clusters.kafka_port import KRAFT_ROLES, KafkaSpec, Role, TopicSpec
from clusters.provision.cache import Progress
from clusters.provision.class_archives import TRAINING_OPTION, Training, archives_of
from history.clock import Clock

__all__ = ["class_archives"]


def class_archives(
    prepared: KafkaPrepared, *, warden: Warden, progress: Progress
) -> Mapping[Role, Path]:
    """The archive for each role, made if need be; none at all if making them fails."""
    training = Training(
        title=f"Kafka {prepared.release.version}",
        release=prepared.release,
        java=prepared.java,
        heap=HEAP,
        nodes={role: (f"{role}-1",) for role in KRAFT_ROLES},
        run=lambda draft: _train(draft, replace(prepared, class_archives={}), warden=warden),
    )
    found = archives_of(training, run=partial(run_command, warden=warden), progress=progress)
    return {Role(role): archive for role, archive in found.items()}


def _train(draft: Path, prepared: KafkaPrepared, *, warden: Warden) -> None:
    """Run a cluster of one and one, from start to stop, with a topic in between."""
    spec = KafkaSpec(controllers=1, brokers=1, java_options=(TRAINING_OPTION,))
    cluster = KafkaCluster(
        spec, prepared=prepared, host=LocalHost(warden), directory=draft, clock=Clock.start()
    )
    try:
        cluster.start()
        cluster.create_topics([TopicSpec(name="t", replication_factor=1)])
    finally:
        cluster.stop()
