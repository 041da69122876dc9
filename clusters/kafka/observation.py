"""The cluster's account of itself: Metadata from the brokers, the quorum from the controllers.

Every node is asked, on a short connection of its own. A client library would pick the broker for
us, perhaps the one that is paused, and would not say who gave the answer.
"""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kio.schema.describe_quorum.v0.request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kio.schema.describe_quorum.v0.response import DescribeQuorumResponse
from kio.schema.describe_quorum.v0.response import PartitionData as QuorumPartition
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.response import MetadataResponse, MetadataResponsePartition
from kio.schema.types import TopicName
from kio.static.primitive import i32

from fencepost.clusters.kafka.admin_requests import topic_id_text
from fencepost.clusters.kafka.api_versions import NEWEST, ApiVersions, leader_epoch_of
from fencepost.clusters.kafka.multi_node_requests import ask
from fencepost.clusters.kafka_port import ClusterView, PartitionView
from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.talking import Address

OBSERVATION_TIMEOUT_S: Final = 2.0
_GRACE_S: Final = 0.5
"""The wait for slow brokers (starting, stuck) once one broker has answered."""

_QUORUM: Final = DescribeQuorumRequest(
    topics=(
        TopicData(
            topic_name=TopicName("__cluster_metadata"),
            partitions=(PartitionData(partition_index=i32(0)),),
        ),
    )
)


def ask_metadata(
    brokers: Mapping[NodeName, Address],
    *,
    timeout_s: float = OBSERVATION_TIMEOUT_S,
    grace_s: float | None = _GRACE_S,
    api_versions: ApiVersions = NEWEST,
) -> dict[NodeName, MetadataResponse]:
    """The metadata as each broker that answers knows it."""
    request, response = api_versions.metadata_request(None), api_versions.metadata
    return ask(brokers, request, response, timeout_s=timeout_s, grace_s=grace_s)


def best_of(answers: Mapping[int, MetadataResponse]) -> MetadataResponse:
    """Return the most current of the answers (by the id of the broker that gave it; one at least).

    A broker that is fenced, and knows it, does not list itself. One that is cut off from the
    controllers lists itself for ever: leader epochs tell it from the others, and if they do not,
    the view that most brokers share is taken.
    """
    shared = Counter(_brokers(answer) for answer in answers.values())

    def currency(broker_id: int) -> tuple[bool, int, int, int]:
        answer = answers[broker_id]
        brokers = _brokers(answer)
        epochs = sum(
            leader_epoch_of(shown) for topic in answer.topics for shown in topic.partitions
        )
        return (broker_id in brokers, epochs, shared[brokers], -broker_id)

    return answers[max(answers, key=currency)]


def view_of(
    answer: MetadataResponse,
    *,
    answers: Mapping[int, MetadataResponse] = MappingProxyType({}),
    time_ns: int,
) -> ClusterView:
    """A Metadata response as a view of the cluster.

    `answers`: all of this look, by the id of the broker that gave it; without them none is known to
    serve.
    """
    return ClusterView(
        time_ns=time_ns,
        brokers=_brokers(answer),
        serving=frozenset(broker for broker, own in answers.items() if broker in _brokers(own)),
        partitions={
            f"{topic.name}-{partition.partition_index}": _partition_view(partition)
            for topic in answer.topics
            for partition in topic.partitions
        },
        topic_ids={
            topic_id_text(topic_id): str(topic.name)
            for topic in answer.topics
            if (topic_id := getattr(topic, "topic_id", None)) is not None
        },
    )


def quorum_leader(controllers: Mapping[NodeName, Address]) -> int | None:
    """The id of the controller that calls itself the leader; of several, the latest one.

    None if no controller does. Each is asked directly: only a leader describes its quorum, and a
    broker would pass the question on to whom it takes for the leader, if it knows one.
    """
    latest = _described_by_leader(controllers)
    return None if latest is None else int(latest.leader_id)


def quorum_high_watermark(controllers: Mapping[NodeName, Address]) -> int:
    """Return the end of the committed metadata log, as the leader knows it; -1 without a leader."""
    latest = _described_by_leader(controllers)
    return -1 if latest is None else int(latest.high_watermark)


def quorum_log_ends(controllers: Mapping[NodeName, Address]) -> tuple[int, Mapping[int, int]]:
    """Return the leader's id, and each voter's log end as far as it knows; -1: no leader.

    What it says of a voter that was started again a moment ago may be of its predecessor.
    """
    latest = _described_by_leader(controllers)
    if latest is None:
        return -1, {}
    ends = {int(one.replica_id): int(one.log_end_offset) for one in latest.current_voters}
    return int(latest.leader_id), ends


def _described_by_leader(controllers: Mapping[NodeName, Address]) -> QuorumPartition | None:
    answers = ask(controllers, _QUORUM, DescribeQuorumResponse, timeout_s=OBSERVATION_TIMEOUT_S)
    described = [
        partition
        for answer in answers.values()
        for topic in answer.topics
        for partition in topic.partitions
        if answer.error_code is ErrorCode.none and partition.error_code is ErrorCode.none
    ]
    return max(described, key=lambda partition: partition.leader_epoch, default=None)


def _brokers(answer: MetadataResponse) -> frozenset[int]:
    return frozenset(int(broker.node_id) for broker in answer.brokers)


def _partition_view(partition: MetadataResponsePartition) -> PartitionView:
    return PartitionView(
        leader=int(partition.leader_id) if partition.leader_id >= 0 else None,
        isr=tuple(int(broker_id) for broker_id in partition.isr_nodes),
        replicas=tuple(int(broker_id) for broker_id in partition.replica_nodes),
    )
