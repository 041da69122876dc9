"""Apache Kafka in the middle of its migration from ZooKeeper to KRaft, as a system.

Controllers of Kafka's own decide, brokers still start from ZooKeeper, and every change of the
metadata is written to both: what the migration guide calls the hybrid mode.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from clusters.kafka_port import KafkaSpec, Role
from clusters.kafka_targets import TARGETS
from clusters.kafka_zookeeper.conditions import CONDITIONS
from clusters.kafka_zookeeper.system import KafkaZooKeeperSpec
from clusters.kafka_zookeeper.targets import ENSEMBLE_TARGETS
from clusters.kafka_zookeeper.view import first_view
from clusters.link_protocol import LinkProtocol
from clusters.port import KEY, NodeName, NodeRole, role_name
from clusters.system import Make, System
from history.failure import Mistakes

__all__ = ["KAFKA_MIGRATING", "SYSTEM", "KafkaMigratingSpec"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaMigratingSpec(KafkaZooKeeperSpec):
    """A cluster to build: how many nodes, of which releases, with which settings."""

    controllers: int = 1
    release: str = field(default="3.9.2", metadata={KEY: "kafka"})
    """A release of Apache Kafka from 3.5 to 3.9, or `path:DIR` of a build of the user's own."""
    controller_settings: Mapping[str, str] = field(default_factory=dict)

    roles: ClassVar[tuple[NodeRole, ...]] = (
        NodeRole(name=Role.ZOOKEEPER, decides=True),
        NodeRole(name=Role.CONTROLLER, decides=True),
        NodeRole(name=Role.BROKER, serves_clients=True),
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
    def view_ids(self) -> Mapping[NodeName, int]:
        """Kafka's ids of brokers; of servers, 2000 and their `myid`."""
        every = KafkaZooKeeperSpec.view_ids.__get__(self)
        return {node: shown for node, shown in every.items() if role_name(node) != Role.CONTROLLER}

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

    def check(self) -> None:
        """Raise SpecError, with the paths of the keys, for a cluster that cannot be."""
        KafkaZooKeeperSpec.check(self)
        mistakes = Mistakes()
        if self.controllers not in (1, 3):
            mistakes.note(("controllers",), f"1 or 3 controllers, found {self.controllers}")
        mistakes.refuse()


KAFKA_MIGRATING: Final = Make(
    name="kafka-migrating",
    driver_module="clusters.kafka_migrating.driver",
    releases_module="clusters.kafka_migrating.releases",
    title="Kafka {release} on its way from ZooKeeper to KRaft",
)
"""A release of Apache Kafka and one of Apache ZooKeeper, as processes."""

SYSTEM: Final = System(
    name="kafka-migrating",
    spec=KafkaMigratingSpec,
    makes=(KAFKA_MIGRATING,),
    conditions=CONDITIONS,
    first_view=first_view,
    targets=(*TARGETS, *ENSEMBLE_TARGETS),
    drawn_targets=("one broker", "leader", "active controller", "one zookeeper"),
    tables=(
        *("describes", "metadata_offsets", "quorum_claims"),
        *("metadata_log", "replicas", "replica_records"),
        *("ensemble", "server_disks", "transaction_log", "znodes"),
        *("node_settings", "log_findings"),
    ),
    protocols=frozenset(LinkProtocol) - {LinkProtocol.BYTES},
    led_by=Role.CONTROLLER,
)
