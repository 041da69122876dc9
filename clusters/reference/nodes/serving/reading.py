"""Reads that any broker answers from the metadata it shows: Metadata, configurations, ApiVersions.

Source: Kafka's `KafkaApis`, `KRaftMetadataCache`; DescribeCluster is Metadata without topics.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from clusters.reference.nodes.errors import Error
from clusters.reference.nodes.image import MetadataImage, PartitionImage
from clusters.reference.nodes.levels import METADATA_VERSION
from clusters.reference.nodes.messages.client import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
)
from clusters.reference.nodes.situation import Situation

__all__ = ["MetadataReads", "api_versions", "described"]

_NONE: Final = int(Error.NONE)
_NO_TOPIC: Final = int(Error.UNKNOWN_TOPIC_OR_PARTITION)
_NO_TOPIC_ID: Final = int(Error.UNKNOWN_TOPIC_ID)
_NO_LEADER: Final = int(Error.LEADER_NOT_AVAILABLE)
_KEPT_MAX: Final = 64
"""Different questions, to each of which the last answer is kept."""

_Broker = tuple[int, str, int, str | None]
_Topic = tuple[str, int, int, tuple[PartitionMetadata, ...]]
_TOPIC: Final = 2
_BROKER: Final = 4

_TOPIC_DEFAULTS: Final[tuple[tuple[str, str], ...]] = (
    ("cleanup.policy", "delete"),
    ("retention.ms", "604800000"),
    ("retention.bytes", "-1"),
    ("max.message.bytes", "1048588"),
    ("unclean.leader.election.enable", "false"),
)
"""A topic's unstated settings, by Kafka's names; min.insync.replicas is configured."""

_Resource = tuple[int, str, int, tuple[tuple[str, str, bool], ...]]


class MetadataReads:
    """Answers to Metadata: the unfenced brokers and the topics that were asked for.

    Nearly all reads show what the one before has shown: until the image changes they share the
    answer.
    """

    __slots__ = ("_brokers", "_image", "_offset", "_situation", "_topics")

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._image: MetadataImage | None = None
        self._offset = -1
        self._brokers: tuple[_Broker, ...] = ()
        self._topics: dict[tuple[tuple[str, int], ...] | None, tuple[_Topic, ...]] = {}
        """The topics shown, by what was asked for."""

    def answer(
        self, request: MetadataRequest, image: MetadataImage, *, controller_id: int
    ) -> MetadataResponse:
        """Return what this image shows of it; the controller's id is the one that is named."""
        if image is not self._image or image.offset != self._offset:
            self._image, self._offset = image, image.offset
            self._brokers = _brokers(image)
            self._topics.clear()
        topics = self._topics.get(request.topics)
        if topics is None:
            topics = self._keep(request.topics, image)
        return MetadataResponse(
            request.correlation,
            self._situation.configuration.cluster_id,
            controller_id,
            self._brokers,
            topics,
            image.offset,
        )

    def _keep(
        self, asked: tuple[tuple[str, int], ...] | None, image: MetadataImage
    ) -> tuple[_Topic, ...]:
        wanted = tuple(image.topics.items()) if asked is None else asked
        topics = tuple(_topic(name, topic_id, image) for name, topic_id in wanted)
        if len(self._topics) >= _KEPT_MAX:
            self._topics.clear()
        self._topics[asked] = topics
        return topics


def api_versions(
    request: ApiVersionsRequest, *, situation: Situation, image: MetadataImage
) -> ApiVersionsResponse:
    """The level whose APIs are offered, and the levels that this broker supports."""
    configuration = situation.configuration
    supported = ((METADATA_VERSION, configuration.level_min, configuration.level_max),)
    level = situation.offered_level
    return ApiVersionsResponse(request.correlation, level, supported, image.offset)


def described(
    request: DescribeConfigsRequest, *, situation: Situation, image: MetadataImage
) -> DescribeConfigsResponse:
    """The settings of each resource that was asked for."""
    return DescribeConfigsResponse(
        request.correlation,
        tuple(
            _resource(kind, name, wanted, situation, image)
            for kind, name, wanted in request.resources
        ),
        image.offset,
    )


def _brokers(image: MetadataImage) -> tuple[_Broker, ...]:
    return tuple(
        (one.broker_id, one.listeners[0][1], one.listeners[0][2], one.rack)
        for one in image.brokers.values()
        if not one.fenced and one.listeners
    )


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


def _partition(number: int, one: PartitionImage, image: MetadataImage) -> PartitionMetadata:
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


def _resource(
    kind: int,
    name: str,
    wanted: tuple[str, ...] | None,
    situation: Situation,
    image: MetadataImage,
) -> _Resource:
    if kind == _TOPIC:
        if name not in image.topics:
            return (kind, name, int(Error.UNKNOWN_TOPIC_OR_PARTITION), ())
        defaults = _topic_defaults(situation, image)
    elif kind == _BROKER:
        defaults = _broker_defaults(name, situation, image)
    else:
        return (kind, name, int(Error.INVALID_REQUEST), ())
    own = image.configs.get((kind, name), {})
    names: Iterable[str] = sorted({*defaults, *own}) if wanted is None else wanted
    settings = tuple(
        (one, own.get(one, defaults.get(one, "")), one not in own)
        for one in names
        if one in own or one in defaults
    )
    return (kind, name, int(Error.NONE), settings)


def _topic_defaults(situation: Situation, image: MetadataImage) -> Mapping[str, str]:
    configuration = situation.configuration
    defaults = dict(_TOPIC_DEFAULTS)
    defaults["min.insync.replicas"] = str(configuration.min_insync_replicas)
    defaults.update(configuration.topic_defaults)
    for resource in ((_BROKER, ""), (_BROKER, str(situation.node_id))):
        defaults.update(
            (name, value)
            for name, value in image.configs.get(resource, {}).items()
            if name in defaults
        )
    return defaults


def _broker_defaults(name: str, situation: Situation, image: MetadataImage) -> Mapping[str, str]:
    defaults = {"min.insync.replicas": str(situation.configuration.min_insync_replicas)}
    if name:
        defaults.update(image.configs.get((_BROKER, ""), {}))
    return defaults
