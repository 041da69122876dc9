"""The nodes of a Kafka-like cluster that a play can describe: by replicas, and by its quorum."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from fencepost.clusters.kafka_port import BrokersView, ClusterView, PartitionView
from fencepost.clusters.port import NodeName
from fencepost.clusters.targets import DescribedTarget, SystemState, VacantError
from fencepost.clusters.topic_spec import TopicSpec


def _replicas(
    words: str, wanted: Callable[[PartitionView], Sequence[int]]
) -> Callable[[SystemState, str, random.Random], NodeName]:
    def find(now: SystemState, key: str, draw: random.Random) -> NodeName:
        shown: BrokersView | None = now.view
        partition = shown.partitions.get(key) if shown else None
        if partition is None:
            raise VacantError(f"{words} {key}: no broker answered the last request for metadata")
        by_id = {broker_id: node for node, broker_id in now.broker_ids.items()}
        found = [by_id[broker] for broker in wanted(partition)]
        if not found:
            raise VacantError(f"{words} {key}: no broker fits now (isr {partition.isr})")
        return draw.choice(found)

    return find


def _leader(partition: PartitionView) -> Sequence[int]:
    return [] if partition.leader is None else [partition.leader]


def _followers(partition: PartitionView) -> Sequence[int]:
    return [broker for broker in partition.isr if broker != partition.leader]


def _active(now: SystemState, _key: str, _draw: random.Random) -> NodeName:
    found = now.active_controller
    if found is None or found in now.down:
        raise VacantError("no controller says that it is active")
    return found


LEADER: Final = DescribedTarget(
    words="leader of", of_key=True, find=_replicas("leader of", _leader)
)
ISR_FOLLOWER: Final = DescribedTarget(
    words="isr follower of", of_key=True, find=_replicas("isr follower of", _followers)
)
ACTIVE_CONTROLLER: Final = DescribedTarget(words="active controller", find=_active)
TARGETS: Final = (LEADER, ISR_FOLLOWER, ACTIVE_CONTROLLER)


def first_view(brokers: Sequence[int], topics: Sequence[TopicSpec]) -> ClusterView:
    """Return what a cluster of these brokers shows when each key is led by its first replica."""
    return ClusterView(
        time_ns=0,
        brokers=frozenset(brokers),
        serving=frozenset(brokers),
        partitions={
            key: PartitionView(leader=replicas[0], isr=replicas, replicas=replicas)
            for topic in topics
            for key, replicas in _placed(topic, len(brokers)).items()
        },
    )


def _placed(topic: TopicSpec, brokers: int) -> Mapping[str, tuple[int, ...]]:
    """Return the replicas of each key: as stated, else one broker after the other."""
    copies = range(topic.replication_factor)
    return {
        key: topic.assignment[number]
        if topic.assignment is not None
        else tuple((number + copy) % brokers + 1 for copy in copies)
        for number, key in enumerate(topic.keys)
    }
