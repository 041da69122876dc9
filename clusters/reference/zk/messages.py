"""The controller's requests to brokers, and theirs to it: kinds 80 to 91.

The first four are Kafka's (LeaderAndIsr 7, StopReplica 4, UpdateMetadata 8, ControlledShutdown 3 on
the wire); MetadataHeartbeat and IsrChange are those of the draft "Controller heartbeats, broker
incarnation ids" alone. A broker epoch is the czxid of the broker's registration: what that draft
calls its incarnation id.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.reference.nodes.records import Listener

NO_LEADER: Final = -1
LEADER_DURING_DELETE: Final = -2
"""The leader that UpdateMetadata names of a partition whose topic is being deleted."""


@dataclass(slots=True)
class PartitionState:
    """A partition as its znode has it: in LeaderAndIsr and in UpdateMetadata."""

    key: PartitionKey
    topic: str
    controller_epoch: int
    """The epoch of the controller that wrote the state."""
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    """The version of the state's znode."""
    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    is_new: bool = False
    """LeaderAndIsr alone: its replicas have never been led."""
    recovering: bool = False
    offline: tuple[int, ...] = ()
    """UpdateMetadata alone: replicas on brokers that are not active."""


@dataclass(slots=True)
class LiveBroker:
    """A broker as UpdateMetadata shows it."""

    broker_id: int
    listeners: tuple[Listener, ...]
    rack: str | None = None


@dataclass(slots=True)
class LeaderAndIsrRequest:
    """Lead or follow these partitions. Key 4."""

    kind: ClassVar[int] = 80
    correlation: int
    controller_id: int
    controller_epoch: int
    broker_epoch: int
    """The epoch of the broker which it is for, as the controller knows it."""
    is_full: bool
    """True if all partitions of the broker are named: those that are not are strays."""
    partitions: tuple[PartitionState, ...]


@dataclass(slots=True)
class LeaderAndIsrResponse:
    """(key, error) for each partition, unless `error` concerns all."""

    kind: ClassVar[int] = LeaderAndIsrRequest.kind + 1
    correlation: int
    error: int
    partitions: tuple[tuple[PartitionKey, int], ...]


@dataclass(slots=True)
class StoppedPartition:
    """A partition, by the topic's name, which is all that this request has of it."""

    topic: str
    partition: int
    leader_epoch: int
    """-2: of a deletion, which every epoch admits."""
    delete: bool


@dataclass(slots=True)
class StopReplicaRequest:
    """Lead and follow these no more; `delete` removes the log. Key 5."""

    kind: ClassVar[int] = 82
    correlation: int
    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: tuple[StoppedPartition, ...]


@dataclass(slots=True)
class StopReplicaResponse:
    """(topic, partition, error) for each, unless `error` concerns all."""

    kind: ClassVar[int] = StopReplicaRequest.kind + 1
    correlation: int
    error: int
    partitions: tuple[tuple[str, int, int], ...]


@dataclass(slots=True)
class UpdateMetadataRequest:
    """Show clients these brokers alone, and these partitions besides those shown. Key 6."""

    kind: ClassVar[int] = 84
    correlation: int
    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: tuple[PartitionState, ...]
    brokers: tuple[LiveBroker, ...]
    is_full: bool = False
    """True if all topics are named: those that are not were deleted while this broker was away."""


@dataclass(slots=True)
class UpdateMetadataResponse:
    """Taken, or why not."""

    kind: ClassVar[int] = UpdateMetadataRequest.kind + 1
    correlation: int
    error: int


@dataclass(slots=True)
class ControlledShutdownRequest:
    """A broker wants to end: its leaderships are to move. Key 7."""

    kind: ClassVar[int] = 86
    correlation: int
    broker_id: int
    broker_epoch: int


@dataclass(slots=True)
class ControlledShutdownResponse:
    """The partitions that the broker still leads, as (topic, partition).

    It may shut down once there are none.
    """

    kind: ClassVar[int] = ControlledShutdownRequest.kind + 1
    correlation: int
    error: int
    remaining: tuple[tuple[str, int], ...]


@dataclass(slots=True)
class MetadataHeartbeatRequest:
    """Z03: the broker is there, and wants to be in this state (`states.ControlledState`)."""

    kind: ClassVar[int] = 88
    correlation: int
    broker_id: int
    incarnation_id: int
    target_state: int


@dataclass(slots=True)
class MetadataHeartbeatResponse:
    """The state that the broker has to be in."""

    kind: ClassVar[int] = MetadataHeartbeatRequest.kind + 1
    correlation: int
    error: int
    error_message: str | None
    current_state: int


@dataclass(slots=True)
class IsrChange:
    """The ISR that a leader wants for one partition."""

    partition: int
    leader_epoch: int
    isr: tuple[int, ...]
    incarnations: tuple[int, ...] = ()
    """The incarnation id of each member, in version 1; empty in version 0, which has none."""


@dataclass(slots=True)
class IsrChangeRequest:
    """Z09: the leader of partitions asks the controller to change their ISRs."""

    kind: ClassVar[int] = 90
    correlation: int
    broker_id: int
    incarnation_id: int
    version: int
    """0 as in the draft; 1 names the members' incarnations, too (`member_incarnations`)."""
    topics: tuple[tuple[str, tuple[IsrChange, ...]], ...]


@dataclass(slots=True)
class IsrChangeResponse:
    """(error, message) for each partition in the request's order, unless `error` concerns all."""

    kind: ClassVar[int] = IsrChangeRequest.kind + 1
    correlation: int
    error: int
    error_message: str | None
    results: tuple[tuple[int, str | None], ...]
