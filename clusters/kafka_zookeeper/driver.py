"""Prepares and builds clusters of the ZooKeeper generation."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from fencepost.clusters.hosts.command import run_command
from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.configuration import refuse_reserved
from fencepost.clusters.kafka.launch import HEAP
from fencepost.clusters.kafka_port import Role
from fencepost.clusters.kafka_zookeeper.cluster import KafkaZooKeeperCluster
from fencepost.clusters.kafka_zookeeper.configuration import refuse_control_plane
from fencepost.clusters.kafka_zookeeper.prepared import KafkaZooKeeperPrepared
from fencepost.clusters.kafka_zookeeper.releases import fetch_release
from fencepost.clusters.kafka_zookeeper.system import KafkaZooKeeperSpec
from fencepost.clusters.provision.cache import Progress
from fencepost.clusters.provision.class_archives import TRAINING_OPTION, Training, archives_of
from fencepost.clusters.system import Wanted
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.clusters.zookeeper.driver import DRIVER as ENSEMBLES
from fencepost.history.clock import Clock

_TRAINED: Final = KafkaZooKeeperSpec(brokers=1, java_options=(TRAINING_OPTION,))


class KafkaZooKeeperDriver:
    """`clusters.system.Driver`."""

    cluster: type[KafkaZooKeeperCluster] = KafkaZooKeeperCluster

    def prepare(
        self, spec: KafkaZooKeeperSpec, wanted: Wanted, say: Callable[[str], None]
    ) -> KafkaZooKeeperPrepared:
        """Prepare both releases, and archives of their classes."""
        refuse_reserved(spec.settings, spec.broker_settings)
        ensemble = ENSEMBLES.prepare(spec.ensemble, wanted, say)
        # One of its own: the run has none yet, and nothing of this must outlive the harness either.
        with Warden(run_id="prepare") as warden:
            release = fetch_release(spec.release, java=ensemble.java, warden=warden, progress=say)
            refuse_control_plane(spec, release.version)
            ready = KafkaZooKeeperPrepared(release=release, ensemble=ensemble)
            archive = _class_archive(ready, warden=warden, progress=say)
        return replace(ready, class_archive=archive)

    def build(
        self,
        spec: KafkaZooKeeperSpec,
        prepared: KafkaZooKeeperPrepared,
        *,
        site: Site,
        rules_off: Sequence[str],
    ) -> KafkaZooKeeperCluster:
        """The cluster, with nothing of it running yet."""
        assert not rules_off, "refused before"
        return self.cluster(spec, prepared=prepared, site=site)


DRIVER: Final = KafkaZooKeeperDriver()


def _class_archive(
    ready: KafkaZooKeeperPrepared, *, warden: Warden, progress: Progress
) -> Path | None:
    def train(draft: Path) -> None:
        host, clock = LocalHost(warden), Clock.start()
        cluster = KafkaZooKeeperCluster(
            _TRAINED, prepared=ready, site=Site(host=host, directory=draft, clock=clock)
        )
        try:
            cluster.start()
            cluster.create_topics([TopicSpec(name="t", replication_factor=1)])
        finally:
            cluster.stop()

    training = Training(
        title=f"Kafka {ready.version} on ZooKeeper",
        release=ready.release,
        java=ready.java,
        heap=HEAP,
        nodes={Role.BROKER: (f"{Role.BROKER}-1",)},
        suffix="-zookeeper",
        run=train,
    )
    run = partial(run_command, warden=warden)
    return archives_of(training, run=run, progress=progress).get(Role.BROKER)
