"""A cluster of the ZooKeeper generation as its znodes, its brokers and its ensemble show it.

Brokers are named by Kafka's ids, servers by 2000 and their `myid`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fencepost.clusters import kafka_targets
from fencepost.clusters.kafka_port import ClusterView, PartitionView
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.clusters.zookeeper import view as ensemble_view
from fencepost.clusters.zookeeper.view import EnsembleView

SERVER_ID_BASE: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaZooKeeperView:
    """`clusters.port.SystemView` of such a cluster; for Kafka's conditions, one of Kafka's."""

    kafka: ClusterView
    """The content of the znodes. A broker without a znode of its own is not in `brokers`."""
    controller: int | None
    """The broker that the znode `/controller` names."""
    broker_epochs: Mapping[int, int]
    """The zxid at which each broker's znode was made, by broker id."""
    ensemble: EnsembleView

    @property
    def brokers(self) -> frozenset[int]:
        """The brokers that have a session."""
        return self.kafka.brokers

    @property
    def serving(self) -> frozenset[int]:
        """The brokers that answered this look themselves, and list themselves."""
        return self.kafka.serving

    @property
    def partitions(self) -> Mapping[str, PartitionView]:
        """The partitions by key, `topic-partition`."""
        return self.kafka.partitions

    @property
    def taking_part(self) -> frozenset[int]:
        """The brokers that have a session and serve, the server that leads, and who follows it."""
        return self.kafka.taking_part | _ids(self.ensemble.taking_part)

    @property
    def lagging(self) -> frozenset[int]:
        """The brokers with a replica out of its ISR, and followers behind the leader."""
        return self.kafka.lagging | _ids(self.ensemble.lagging)

    @property
    def left_out(self) -> Sequence[str]:
        """Replicas out of their ISR, though their brokers take part and a leader exists."""
        return self.kafka.left_out

    @property
    def incomplete(self) -> Sequence[str]:
        """Defects of partitions, no controller, defects of the ensemble."""
        lacking = [] if self.controller is not None else ["no broker is the active controller"]
        return [*self.kafka.incomplete, *lacking, *self.ensemble.incomplete]

    @property
    def names_of_ids(self) -> Mapping[str, str]:
        """Topic names by their ids."""
        return self.kafka.names_of_ids

    def is_whole(self, members: frozenset[int]) -> bool:
        """Return whether all members take part and nothing is incomplete."""
        return self.taking_part >= members and not self.incomplete


def first_view(shown: Sequence[int], topics: Sequence[TopicSpec]) -> KafkaZooKeeperView:
    """Return what a new cluster of nodes with these ids shows."""
    brokers = [one for one in shown if one < SERVER_ID_BASE]
    servers = [one - SERVER_ID_BASE for one in shown if one > SERVER_ID_BASE]
    return KafkaZooKeeperView(
        kafka=kafka_targets.first_view(brokers, topics),
        controller=brokers[0],
        broker_epochs={broker: index for index, broker in enumerate(brokers)},
        ensemble=ensemble_view.first_view(servers, topics),
    )


def _ids(servers: frozenset[int]) -> frozenset[int]:
    return frozenset(SERVER_ID_BASE + server for server in servers)
