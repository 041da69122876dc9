"""Leaders, followers, producers and consumers: kinds 50 to 59."""

from dataclasses import dataclass
from typing import ClassVar

from fencepost.clusters.node_port.storage import Batch, PartitionKey


@dataclass(slots=True)
class FetchRequest:
    """A follower's or a consumer's; it is parked while there is nothing to answer."""

    kind: ClassVar[int] = 50
    correlation: int
    replica_id: int
    """-1: a consumer."""
    replica_epoch: int
    """E02: the follower's broker epoch in version 15; -1 below, and of consumers."""
    version: int
    partitions: tuple[tuple[PartitionKey, int, int, int], ...]
    """(key, fetch offset, current leader epoch or -1, last fetched epoch or -1)."""
    max_wait_ns: int
    min_bytes: int = 1
    max_records: int = 1 << 30
    """A bound on the records of one answer, of the simulator; bytes bound it on the wire."""
    max_bytes: int = 1 << 26


@dataclass(slots=True)
class FetchedPartition:
    """The result of a fetch for one partition."""

    key: PartitionKey
    error: int
    leader_epoch: int
    """The leader's, under which it answered. Not on Kafka's wire: the shell adds what was asked."""
    high_watermark: int
    log_start_offset: int
    batches: tuple[Batch, ...]
    diverging_epoch: int = -1
    diverging_end_offset: int = -1


@dataclass(slots=True)
class FetchResponse:
    """Partitions without news are left out of an answer to a follower."""

    kind: ClassVar[int] = FetchRequest.kind + 1
    correlation: int
    error: int
    partitions: tuple[FetchedPartition, ...]


@dataclass(slots=True)
class ProduceRequest:
    """(key, batch) with base offsets of -1."""

    kind: ClassVar[int] = 52
    correlation: int
    acks: int
    timeout_ns: int
    partitions: tuple[tuple[PartitionKey, Batch], ...]


@dataclass(slots=True)
class ProduceResponse:
    """(key, error, base offset); with acks 0 no response is sent."""

    kind: ClassVar[int] = ProduceRequest.kind + 1
    correlation: int
    partitions: tuple[tuple[PartitionKey, int, int], ...]


@dataclass(slots=True)
class ListOffsetsRequest:
    """(key, current leader epoch or -1, timestamp: -1 latest, -2 earliest, -3 max timestamp)."""

    kind: ClassVar[int] = 54
    correlation: int
    replica_id: int
    partitions: tuple[tuple[PartitionKey, int, int], ...]


@dataclass(slots=True)
class ListOffsetsResponse:
    """(key, error, offset, leader epoch)."""

    kind: ClassVar[int] = ListOffsetsRequest.kind + 1
    correlation: int
    partitions: tuple[tuple[PartitionKey, int, int, int], ...]


@dataclass(slots=True)
class InitProducerIdRequest:
    """An idempotent producer asks for its id; ours have no transactions."""

    kind: ClassVar[int] = 56
    correlation: int
    transactional_id: str | None = None


@dataclass(slots=True)
class InitProducerIdResponse:
    """The id and its epoch."""

    kind: ClassVar[int] = InitProducerIdRequest.kind + 1
    correlation: int
    error: int
    producer_id: int
    producer_epoch: int


@dataclass(slots=True)
class OffsetsForLeaderEpochRequest:
    """(key, current leader epoch or -1, leader epoch)."""

    kind: ClassVar[int] = 58
    correlation: int
    replica_id: int
    partitions: tuple[tuple[PartitionKey, int, int], ...]


@dataclass(slots=True)
class OffsetsForLeaderEpochResponse:
    """(key, error, leader epoch, end offset)."""

    kind: ClassVar[int] = OffsetsForLeaderEpochRequest.kind + 1
    correlation: int
    partitions: tuple[tuple[PartitionKey, int, int, int], ...]
