"""Reads that any broker answers from the metadata it shows: Metadata and ApiVersions.

Source: Kafka's `KafkaApis`, `KRaftMetadataCache`; DescribeCluster is Metadata without topics.
"""

from typing import Final

from clusters.reference.errors import Error
from clusters.reference.image import MetadataImage, Partition
from clusters.reference.levels import METADATA_VERSION
from clusters.reference.messages.client import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
)
from clusters.reference.situation import Situation

__all__ = ["api_versions", "metadata"]

_NONE: Final = int(Error.NONE)
_NO_TOPIC: Final = int(Error.UNKNOWN_TOPIC_OR_PARTITION)
_NO_TOPIC_ID: Final = int(Error.UNKNOWN_TOPIC_ID)
_NO_LEADER: Final = int(Error.LEADER_NOT_AVAILABLE)

_Topic = tuple[str, int, int, tuple[PartitionMetadata, ...]]


def metadata(
    request: MetadataRequest, *, situation: Situation, image: MetadataImage
) -> MetadataResponse:
    """The unfenced brokers and the topics that were asked for.

    Any broker passes on what the controller has to decide, so this one names itself for it.
    """
    wanted = request.topics
    if wanted is None:
        wanted = tuple(image.topics.items())
    return MetadataResponse(
        request.correlation,
        situation.configuration.cluster_id,
        situation.node_id,
        tuple(
            (one.broker_id, one.listeners[0][1], one.listeners[0][2], one.rack)
            for one in image.brokers.values()
            if not one.fenced and one.listeners
        ),
        tuple(_topic(name, topic_id, image) for name, topic_id in wanted),
        image.offset,
    )


def api_versions(
    request: ApiVersionsRequest, *, situation: Situation, image: MetadataImage, level: int
) -> ApiVersionsResponse:
    """The level whose APIs are offered, and the levels that this broker supports."""
    configuration = situation.configuration
    supported = ((METADATA_VERSION, configuration.level_min, configuration.level_max),)
    return ApiVersionsResponse(request.correlation, level, supported, image.offset)


def _topic(name: str, topic_id: int, image: MetadataImage) -> _Topic:
    if name:
        found = image.topics.get(name)
        if found is None:
            return (name, -1, _NO_TOPIC, ())
        topic_id = found
    elif topic_id not in image.names:
        return ("", topic_id, _NO_TOPIC_ID, ())
    partitions = tuple(
        _partition(key[1], image.partitions[key], image) for key in image.partitions_of(topic_id)
    )
    return (image.names[topic_id], topic_id, _NONE, partitions)


def _partition(number: int, one: Partition, image: MetadataImage) -> PartitionMetadata:
    return PartitionMetadata(
        number,
        _NONE if one.leader >= 0 else _NO_LEADER,
        one.leader,
        one.leader_epoch,
        one.replicas,
        one.isr,
        tuple(replica for replica in one.replicas if _is_offline(replica, image)),
    )


def _is_offline(broker_id: int, image: MetadataImage) -> bool:
    known = image.brokers.get(broker_id)
    return known is None or known.fenced
