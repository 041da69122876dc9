"""The requests of clients to a broker, none of which it answers while it is fenced.

Requests that only the controller decides are passed on. Any broker answers reads from the metadata
it shows (Metadata, configurations, ApiVersions); they wait until the metadata they would show may
be shown.

Source: Kafka's `KafkaApis`, `KRaftMetadataCache`; DescribeCluster is Metadata without topics.
"""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from fencepost.clusters.node_port.effects import CLOSE, SEND, Effects
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.image import MetadataImage, PartitionImage
from fencepost.clusters.reference.nodes.levels import METADATA_VERSION
from fencepost.clusters.reference.nodes.messages import client, control, data
from fencepost.clusters.reference.nodes.messages.client import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
)
from fencepost.clusters.reference.nodes.replicas.replicas import Replicas
from fencepost.clusters.reference.nodes.serving.fetch import Fetching, epoch_ends, listed
from fencepost.clusters.reference.nodes.serving.forwarding import FORWARDED, ForController
from fencepost.clusters.reference.nodes.serving.groups import CommitCodec, GroupOffsets
from fencepost.clusters.reference.nodes.serving.produce import Producing
from fencepost.clusters.reference.nodes.serving.producer_ids import ProducerIds
from fencepost.clusters.reference.nodes.serving.visibility import ShownMetadata
from fencepost.clusters.reference.nodes.situation import Situation

_ALLOCATE: Final = control.AllocateProducerIdsRequest.kind
_ALLOCATED: Final = control.AllocateProducerIdsResponse.kind

_Handler = Callable[[int, int, Any, Effects], None]
_SOURCES_MAX: Final = 10_000
"""The oldest is forgotten then: its connection is not closed when others are."""
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


class Server:
    """A broker's side towards its clients."""

    __slots__ = (
        "_forwarding",
        "_groups",
        "_handlers",
        "_metadata",
        "_producer_ids",
        "_replicas",
        "_situation",
        "clients",
        "fetching",
        "producing",
        "visibility",
    )

    def __init__(
        self,
        situation: Situation,
        replicas: Replicas,
        codec: CommitCodec,
        *,
        visibility: ShownMetadata,
        forwarding: ForController,
        producer_ids: ProducerIds,
    ) -> None:
        self._situation = situation
        self._replicas = replicas
        self._metadata = _MetadataReads(situation)
        self._forwarding = forwarding
        self._producer_ids = producer_ids
        self.clients = _Clients()
        self.producing = Producing(situation, replicas)
        self.fetching = Fetching(situation, replicas)
        self.visibility = visibility
        self._groups = GroupOffsets(situation, replicas, self.producing, self._forwarding, codec)
        self._handlers = self._all_handlers()

    def request(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Answer a client of a broker that is not fenced; what is not known ends its connection."""
        handler = self._handlers.get(kind)
        if handler is None:
            effects.append((CLOSE, source))
        else:
            handler(now, source, message, effects)

    def negotiate(self, source: int, request: client.ApiVersionsRequest, effects: Effects) -> None:
        """Tell another broker what this one offers; its connection ends when that changes.

        It is no client: it need not wait for what this broker may not show yet.
        """
        self.clients.add(source)
        self._answer(source, request, effects)

    def answered(self, now: int, kind: int, response: Any, effects: Effects) -> None:
        """The controller answered something that was passed on."""
        if kind == _ALLOCATED:
            self._producer_ids.allocated(now, response, effects)
        elif kind - 1 in FORWARDED:
            self._forwarding.answered(now, response, effects)

    def unreachable(self, now: int, request: Any, effects: Effects) -> None:
        """The controller could not be asked."""
        if request.kind == _ALLOCATE:
            self._producer_ids.unreachable(now, request)
        elif request.kind in FORWARDED:
            self._forwarding.unreachable(request, effects)

    def tick(self, now: int, effects: Effects) -> None:
        """Look at all deadlines."""
        self.producing.tick(now, effects)
        self._replicas.fetches.tick(now, effects)
        self.visibility.tick(now, effects)
        self._forwarding.tick(now, effects)
        self._producer_ids.tick(now, effects)

    def shown(self, effects: Effects) -> None:
        """More of the metadata is shown, perhaps."""
        before, level = self._situation.offered_level, self.visibility.offered_level()
        self._situation.offered_level = level
        for source, request in self.visibility.ready():
            self._answer(source, request, effects)
        if level != before:
            self._situation.fetch_level = max(self._situation.fetch_level, level)
            # The client that asked for this level has the controller's word on the way.
            waiting = self._forwarding.finish()
            self._close_own(effects)
            self.clients.close(effects, but=waiting)

    def close(self, effects: Effects) -> None:
        """Answer no client any more, also none of those that wait."""
        self._close_own(effects)
        self._forwarding.close(effects)

    def _close_own(self, effects: Effects) -> None:
        """Close who waits for this broker itself."""
        self.producing.close(effects)
        self._replicas.fetches.close_consumers(effects)
        self.visibility.close(effects)
        self._producer_ids.close(effects)

    def _all_handlers(self) -> Mapping[int, _Handler]:
        reads = (
            client.MetadataRequest,
            client.DescribeConfigsRequest,
            client.ApiVersionsRequest,
            # By the metadata a broker knows whether it coordinates groups.
            client.ListGroupsRequest,
        )
        return {
            **dict.fromkeys(sorted(FORWARDED), self._forwarding.forward),
            **{read.kind: self._read for read in reads},
            data.InitProducerIdRequest.kind: self._producer_ids.init,
            data.ListOffsetsRequest.kind: self._list_offsets,
            data.OffsetsForLeaderEpochRequest.kind: self._find_epoch_ends,
            client.FindCoordinatorRequest.kind: self._find_coordinator,
            client.OffsetCommitRequest.kind: self._groups.commit,
            client.OffsetFetchRequest.kind: self._groups.fetch,
        }

    def _read(self, now: int, source: int, request: Any, effects: Effects) -> None:
        if not self.visibility.waits(now, source, request, effects):
            self._answer(source, request, effects)

    def _find_coordinator(self, now: int, source: int, request: Any, effects: Effects) -> None:
        self._groups.prepare(now, request, effects)
        self._read(now, source, request, effects)

    def _answer(self, source: int, request: Any, effects: Effects) -> None:
        situation, image = self._situation, self.visibility.image
        response: Any
        if request.kind == client.MetadataRequest.kind:
            controller_id = self.visibility.controller_id
            response = self._metadata.answer(request, image, controller_id=controller_id)
        elif request.kind == client.DescribeConfigsRequest.kind:
            response = _described(request, situation=situation, image=image)
        elif request.kind == client.ListGroupsRequest.kind:
            response = self._groups.listed(request)
        elif request.kind == client.FindCoordinatorRequest.kind:
            response = self._groups.found(request, image)
        else:
            response = _api_versions(request, situation=situation, image=image)
        effects.append((SEND, source, response))

    def _list_offsets(self, _now: int, source: int, request: Any, effects: Effects) -> None:
        leaders = self._replicas.leaders
        response = listed(request, leaders=leaders, situation=self._situation)
        effects.append((SEND, source, response))

    def _find_epoch_ends(self, _now: int, source: int, request: Any, effects: Effects) -> None:
        leaders = self._replicas.leaders
        response = epoch_ends(request, leaders=leaders, situation=self._situation)
        effects.append((SEND, source, response))


class _Clients:
    """The clients that a broker has answered, in the order in which they came first."""

    __slots__ = ("sources",)

    def __init__(self) -> None:
        self.sources: dict[int, None] = {}

    def add(self, source: int) -> None:
        """A client that is not among `sources`."""
        self.sources[source] = None
        if len(self.sources) > _SOURCES_MAX:
            del self.sources[next(iter(self.sources))]

    def close(self, effects: Effects, *, but: AbstractSet[int]) -> None:
        """End all connections but these, so that clients ask anew what is offered (KIP-778)."""
        effects.extend((CLOSE, source) for source in self.sources if source not in but)
        self.sources.clear()


class _MetadataReads:
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


def _api_versions(
    request: ApiVersionsRequest, *, situation: Situation, image: MetadataImage
) -> ApiVersionsResponse:
    """The level whose APIs are offered, and the levels that this broker supports."""
    configuration = situation.configuration
    supported = ((METADATA_VERSION, configuration.level_min, configuration.level_max),)
    level = situation.offered_level
    return ApiVersionsResponse(request.correlation, level, supported, image.offset)


def _described(
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
