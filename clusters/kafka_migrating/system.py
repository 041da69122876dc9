"""Apache Kafka in the middle of its migration from ZooKeeper to KRaft, as a system.

Controllers of Kafka's own decide, brokers still start from ZooKeeper, and every change of the
metadata is written to both: what the migration guide calls the hybrid mode.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from fencepost.clusters.kafka_port import BROKERS, CONTROLLERS, KafkaSpec, Role, note_controllers
from fencepost.clusters.kafka_zookeeper.system import SYSTEM as KAFKA_ON_ZOOKEEPER
from fencepost.clusters.kafka_zookeeper.system import ZOOKEEPERS, KafkaZooKeeperSpec
from fencepost.clusters.port import KEY, NodeRole
from fencepost.clusters.system import Make
from fencepost.history.failure import Mistakes


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaMigratingSpec(KafkaZooKeeperSpec):
    """A cluster to build: how many nodes, of which releases, with which settings."""

    controllers: int = 1
    release: str = field(default="3.9.2", metadata={KEY: "kafka"})
    """A release of Apache Kafka from 3.5 to 3.9, or `path:DIR` of a build of the user's own."""
    controller_settings: Mapping[str, str] = field(default_factory=dict)

    roles: ClassVar[tuple[NodeRole, ...]] = (
        ZOOKEEPERS,
        CONTROLLERS,
        BROKERS,
    )

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of nodes of each role."""
        return {
            Role.ZOOKEEPER: self.zookeepers,
            Role.CONTROLLER: self.controllers,
            Role.BROKER: self.brokers,
        }

    @property
    def kraft(self) -> KafkaSpec:
        """The cluster that it is to become."""
        return KafkaSpec(
            controllers=self.controllers,
            brokers=self.brokers,
            release=self.release,
            settings=self.settings,
            controller_settings=self.controller_settings,
            broker_settings=self.broker_settings,
            java_options=self.java_options,
        )

    def note_mistakes(self, mistakes: Mistakes) -> None:
        """Note what cannot be, with the paths of the keys."""
        KafkaZooKeeperSpec.note_mistakes(self, mistakes)
        note_controllers(self.controllers, mistakes)
        if self.control_plane_listener:
            found = "KRaft controllers have none; leave it out"
            mistakes.note(("control_plane_listener",), found)


KAFKA_MIGRATING: Final = Make(
    name="kafka-migrating",
    driver_module="fencepost.clusters.kafka_migrating.driver",
    releases_module="fencepost.clusters.kafka_migrating.releases",
    title="Kafka {release} on its way from ZooKeeper to KRaft",
)
"""A release of Apache Kafka and one of Apache ZooKeeper, as processes."""

SYSTEM: Final = replace(
    KAFKA_ON_ZOOKEEPER,
    name="kafka-migrating",
    spec=KafkaMigratingSpec,
    makes=(KAFKA_MIGRATING,),
    tables=(*KAFKA_ON_ZOOKEEPER.tables, "metadata_offsets", "quorum_claims"),
    led_by=Role.CONTROLLER,
    stands_for={},
)
