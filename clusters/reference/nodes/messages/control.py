"""Brokers, clients and the active controller: kinds 20 to 45.

A response with an `error` of its own needs nothing beside it: its other fields have the values of
an answer to a request that was not decided.
"""

from dataclasses import dataclass
from typing import ClassVar

from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.reference.nodes.records import Listener


@dataclass(slots=True)
class BrokerRegistrationRequest:
    """K01, key 57."""

    kind: ClassVar[int] = 20
    correlation: int
    broker_id: int
    incarnation_id: int
    """The id of this start of the process: a repeated request is known by it."""
    broker_epoch: int
    """-1, or the epoch that the broker had, when its lease ran out."""
    current_metadata_offset: int
    listeners: tuple[Listener, ...]
    features: tuple[tuple[str, int, int], ...]
    rack: str | None
    cluster_id: str


@dataclass(slots=True)
class BrokerRegistrationResponse:
    """The epoch and the lease, or why not."""

    kind: ClassVar[int] = BrokerRegistrationRequest.kind + 1
    correlation: int
    error: int
    active_controller_id: int
    broker_epoch: int = -1
    lease_duration_ms: int = 0


@dataclass(slots=True)
class BrokerHeartbeatRequest:
    """K05: key 58, from LEVEL_VISIBILITY on key 63 version 1."""

    kind: ClassVar[int] = 22
    correlation: int
    broker_id: int
    broker_epoch: int
    current_metadata_offset: int
    """The broker has applied every record below it. (On the wire of 58 and 63: the last one.)"""
    target_state: int
    """A `BrokerState`: RUNNING, FENCED or PENDING_CONTROLLED_SHUTDOWN."""
    level: int
    """The metadata.version by which the broker speaks."""


@dataclass(slots=True)
class BrokerHeartbeatResponse:
    """The state that the broker has to be in now."""

    kind: ClassVar[int] = BrokerHeartbeatRequest.kind + 1
    correlation: int
    error: int
    active_controller_id: int
    next_state: int = BrokerState.FENCED
    """A `BrokerState`; NOT_RUNNING lets a broker go that asked to shut down."""
    is_caught_up: bool = False
    lease_duration_ms: int = 0
    lowest_acknowledged_offset: int = -1
    """The offset up to which all unfenced brokers have applied (V01); -1 below LEVEL_VISIBILITY."""


@dataclass(slots=True)
class AlterPartitionItem:
    """A partition in a request (`error` NONE, epoch expected) or a response (as it is now)."""

    key: PartitionKey
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    isr_epochs: tuple[int, ...] = ()
    """The broker epoch of each member; empty before version 3, -1: not checked."""
    error: int = 0
    leader_id: int = -1
    recovering: bool = False
    """LeaderRecoveryState: the leader has not recovered from its unclean election (KIP-704)."""


@dataclass(slots=True)
class AlterPartitionRequest:
    """The leader of partitions proposes their ISRs."""

    kind: ClassVar[int] = 24
    correlation: int
    broker_id: int
    broker_epoch: int
    version: int
    """2, or 3 with `isr_epochs`."""
    items: tuple[AlterPartitionItem, ...]


@dataclass(slots=True)
class AlterPartitionResponse:
    """An answer for each partition, in the request's order, unless `error` concerns all."""

    kind: ClassVar[int] = AlterPartitionRequest.kind + 1
    correlation: int
    error: int
    items: tuple[AlterPartitionItem, ...] = ()


@dataclass(slots=True)
class NewTopic:
    """A topic to create: an assignment (broker ids by partition, leader first), or counts."""

    name: str
    partitions: int
    replication_factor: int
    assignment: tuple[tuple[int, ...], ...] | None = None
    settings: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class CreateTopicsRequest:
    """A request to the controller, or to a broker, which passes it on."""

    kind: ClassVar[int] = 26
    correlation: int
    topics: tuple[NewTopic, ...]
    timeout_ns: int
    validate_only: bool = False


@dataclass(slots=True)
class CreateTopicsResponse:
    """The answers by topic: (name, topic id, error, words)."""

    kind: ClassVar[int] = CreateTopicsRequest.kind + 1
    correlation: int
    topics: tuple[tuple[str, int, int, str], ...]


@dataclass(slots=True)
class DeleteTopicsRequest:
    """Topics by name, or by id where the name is empty."""

    kind: ClassVar[int] = 28
    correlation: int
    topics: tuple[tuple[str, int], ...]
    timeout_ns: int


@dataclass(slots=True)
class DeleteTopicsResponse:
    """The answers by topic: (name, topic id, error)."""

    kind: ClassVar[int] = DeleteTopicsRequest.kind + 1
    correlation: int
    topics: tuple[tuple[str, int, int], ...]


@dataclass(slots=True)
class AlterConfigsRequest:
    """IncrementalAlterConfigs: (resource type, resource name, name, value or None to delete)."""

    kind: ClassVar[int] = 30
    correlation: int
    changes: tuple[tuple[int, str, str, str | None], ...]
    validate_only: bool = False


@dataclass(slots=True)
class AlterConfigsResponse:
    """The answers by resource: (resource type, resource name, error, words)."""

    kind: ClassVar[int] = AlterConfigsRequest.kind + 1
    correlation: int
    resources: tuple[tuple[int, str, int, str], ...]


@dataclass(slots=True)
class AlterReassignmentsRequest:
    """(topic name, partition, wanted replicas); None cancels a reassignment."""

    kind: ClassVar[int] = 32
    correlation: int
    moves: tuple[tuple[str, int, tuple[int, ...] | None], ...]


@dataclass(slots=True)
class AlterReassignmentsResponse:
    """The answers by partition: (topic name, partition, error, words)."""

    kind: ClassVar[int] = AlterReassignmentsRequest.kind + 1
    correlation: int
    error: int
    moves: tuple[tuple[str, int, int, str], ...] = ()


@dataclass(slots=True)
class ElectLeadersRequest:
    """Elect the preferred replicas (`unclean`: any live one); partitions None: all of them."""

    kind: ClassVar[int] = 34
    correlation: int
    unclean: bool
    partitions: tuple[tuple[str, int], ...] | None


@dataclass(slots=True)
class ElectLeadersResponse:
    """The answers by partition: (topic name, partition, error)."""

    kind: ClassVar[int] = ElectLeadersRequest.kind + 1
    correlation: int
    error: int
    partitions: tuple[tuple[str, int, int], ...] = ()


@dataclass(slots=True)
class AllocateProducerIdsRequest:
    """A broker asks for a block of producer ids."""

    kind: ClassVar[int] = 36
    correlation: int
    broker_id: int
    broker_epoch: int


@dataclass(slots=True)
class AllocateProducerIdsResponse:
    """The block: `length` ids from `start` on."""

    kind: ClassVar[int] = AllocateProducerIdsRequest.kind + 1
    correlation: int
    error: int
    start: int = -1
    length: int = 0


@dataclass(slots=True)
class UpdateFeaturesRequest:
    """(feature, level)."""

    kind: ClassVar[int] = 38
    correlation: int
    updates: tuple[tuple[str, int], ...]


@dataclass(slots=True)
class UpdateFeaturesResponse:
    """The one error for all; nothing was written unless it is NONE."""

    kind: ClassVar[int] = UpdateFeaturesRequest.kind + 1
    correlation: int
    error: int
    words: str = ""


@dataclass(slots=True)
class ListReassignmentsRequest:
    """Partitions that are being moved; None: all."""

    kind: ClassVar[int] = 40
    correlation: int
    partitions: tuple[tuple[str, int], ...] | None


@dataclass(slots=True)
class ListReassignmentsResponse:
    """(topic name, partition, replicas, adding, removing)."""

    kind: ClassVar[int] = ListReassignmentsRequest.kind + 1
    correlation: int
    error: int
    partitions: tuple[tuple[str, int, tuple[int, ...], tuple[int, ...], tuple[int, ...]], ...] = ()


@dataclass(slots=True)
class DescribeQuorumRequest:
    """A request for the leader of the quorum, and the progress of its replicas."""

    kind: ClassVar[int] = 42
    correlation: int


@dataclass(slots=True)
class DescribeQuorumResponse:
    """(replica id, log end offset, last fetch and last caught-up times in ns) of each."""

    kind: ClassVar[int] = DescribeQuorumRequest.kind + 1
    correlation: int
    error: int
    leader_id: int
    epoch: int
    high_watermark: int
    voters: tuple[tuple[int, int, int, int], ...]
    observers: tuple[tuple[int, int, int, int], ...]


@dataclass(slots=True)
class NewPartitions:
    """The number of partitions a topic is to have, and by partition the replicas of those added.

    `assignment` None: as the controller places them.
    """

    name: str
    count: int
    assignment: tuple[tuple[int, ...], ...] | None = None


@dataclass(slots=True)
class CreatePartitionsRequest:
    """Topics get more partitions. To the controller, or to a broker, which passes it on."""

    kind: ClassVar[int] = 44
    correlation: int
    topics: tuple[NewPartitions, ...]
    timeout_ns: int
    validate_only: bool = False


@dataclass(slots=True)
class CreatePartitionsResponse:
    """The answers by topic: (name, error, words)."""

    kind: ClassVar[int] = CreatePartitionsRequest.kind + 1
    correlation: int
    topics: tuple[tuple[str, int, str], ...]
