"""The answers of any broker to clients about the cluster and offsets: kinds 60 to 71, 78, 79."""

from dataclasses import dataclass, field
from typing import ClassVar, Final

GROUP_STATE: Final = "Empty"
"""Kafka's word for the state of a group without members."""
GROUP_TYPE: Final = "classic"
"""Kafka's word for a group of the protocol from before KIP-848."""


@dataclass(slots=True)
class PartitionMetadata:
    """A partition as a broker shows it."""

    partition: int
    error: int
    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...] = ()


@dataclass(slots=True)
class MetadataRequest:
    """Topics by (name, topic id); None: all of them. Also stands for DescribeCluster: ()."""

    kind: ClassVar[int] = 60
    correlation: int
    topics: tuple[tuple[str, int], ...] | None
    allow_creation: bool = False


@dataclass(slots=True)
class MetadataResponse:
    """The broker's view of the cluster."""

    kind: ClassVar[int] = MetadataRequest.kind + 1
    correlation: int
    cluster_id: str
    controller_id: int
    """A broker's id, as clients expect one that takes their requests."""
    brokers: tuple[tuple[int, str, int, str | None], ...]
    """(broker id, host, port, rack) of those that are unfenced."""
    topics: tuple[tuple[str, int, int, tuple[PartitionMetadata, ...]], ...]
    """(name, topic id, error, partitions)."""
    metadata_offset: int = -1
    """The end of the metadata log that it reflects; the wire does not carry it."""
    error: int = 0


@dataclass(slots=True)
class DescribeConfigsRequest:
    """(resource type, resource name, names or None for all)."""

    kind: ClassVar[int] = 62
    correlation: int
    resources: tuple[tuple[int, str, tuple[str, ...] | None], ...]


@dataclass(slots=True)
class DescribeConfigsResponse:
    """The answers by resource: (type, name, error, ((setting, value, is default), …))."""

    kind: ClassVar[int] = DescribeConfigsRequest.kind + 1
    correlation: int
    resources: tuple[tuple[int, str, int, tuple[tuple[str, str, bool], ...]], ...]
    metadata_offset: int = -1


@dataclass(slots=True)
class ApiVersionsRequest:
    """A request for the APIs that a node offers."""

    kind: ClassVar[int] = 64
    correlation: int
    by_node: bool = False
    """True if another broker asks, before it fetches: it is answered at once, fenced or not."""


@dataclass(slots=True)
class ApiVersionsResponse:
    """The level whose APIs the node offers (V05); `wire/` knows which versions those are."""

    kind: ClassVar[int] = ApiVersionsRequest.kind + 1
    correlation: int
    level: int
    features: tuple[tuple[str, int, int], ...]
    """Supported (name, lowest, highest)."""
    metadata_offset: int = -1


@dataclass(slots=True)
class FindCoordinatorRequest:
    """A request for the node that keeps these groups' offsets; no node keeps transactional ids."""

    kind: ClassVar[int] = 66
    correlation: int
    groups: tuple[str, ...]
    transactional: bool = False


@dataclass(slots=True)
class FindCoordinatorResponse:
    """(group, error, broker id, host, port)."""

    kind: ClassVar[int] = FindCoordinatorRequest.kind + 1
    correlation: int
    groups: tuple[tuple[str, int, int, str, int], ...]


@dataclass(slots=True)
class OffsetCommitRequest:
    """(topic name, partition, offset, leader epoch or -1, metadata)."""

    kind: ClassVar[int] = 68
    correlation: int
    group: str
    offsets: tuple[tuple[str, int, int, int, str], ...]


@dataclass(slots=True)
class OffsetCommitResponse:
    """(topic name, partition, error)."""

    kind: ClassVar[int] = OffsetCommitRequest.kind + 1
    correlation: int
    offsets: tuple[tuple[str, int, int], ...]


@dataclass(slots=True)
class OffsetFetchRequest:
    """(topic name, partition); None: all that the group has."""

    kind: ClassVar[int] = 70
    correlation: int
    group: str
    partitions: tuple[tuple[str, int], ...] | None


@dataclass(slots=True)
class OffsetFetchResponse:
    """(topic name, partition, offset or -1, leader epoch, metadata, error)."""

    kind: ClassVar[int] = OffsetFetchRequest.kind + 1
    correlation: int
    error: int
    offsets: tuple[tuple[str, int, int, int, str, int], ...] = field(default=())


@dataclass(slots=True)
class ListGroupsRequest:
    """A request for the groups that the node coordinates; empty: of whatever state and type."""

    kind: ClassVar[int] = 78
    correlation: int
    states: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


@dataclass(slots=True)
class ListGroupsResponse:
    """The names of the groups, each of which is empty: none has members here."""

    kind: ClassVar[int] = ListGroupsRequest.kind + 1
    correlation: int
    error: int
    groups: tuple[str, ...] = ()


ANSWERS: Final = frozenset(
    {
        MetadataResponse.kind,
        DescribeConfigsResponse.kind,
        ApiVersionsResponse.kind,
        FindCoordinatorResponse.kind,
        OffsetCommitResponse.kind,
        OffsetFetchResponse.kind,
        ListGroupsResponse.kind,
    }
)
"""The kinds of these responses: a broker that may not serve gives none of them to a client."""
