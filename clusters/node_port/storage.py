"""The storage of a node: logs of batches and a few small files, as values.

A *log* is named METADATA or by its partition's key, a *file* by one of the names below. A batch is
never changed once it exists: leaders, followers, disks and messages share it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

PartitionKey = tuple[int, int]
"""(topic id, partition)."""
LogName = str | PartitionKey
FileName = str

METADATA: Final = "metadata"
"""The log of `__cluster_metadata`."""

META_PROPERTIES: Final = "meta.properties"
QUORUM_STATE: Final = "quorum-state"
SNAPSHOT: Final = "snapshot"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
"""A tuple of (partition key, high watermark), written now and then and at a clean stop."""
CLEAN_STOP: Final = "clean-shutdown"
"""True while the node is down after a clean stop; a starting node replaces it by False."""


@dataclass(slots=True)
class Batch:
    """Records of a partition that were produced together. Immutable by agreement."""

    base_offset: int
    """The base offset; -1 until a leader has appended it."""
    leader_epoch: int
    """The epoch of the leader that appended it; -1 before."""
    count: int
    producer_id: int
    """The producer id; -1: the producer is not idempotent."""
    producer_epoch: int
    base_sequence: int
    payload: Any
    """The records: a tuple of values in the simulator, the client's encoded batch in a process."""

    @property
    def end_offset(self) -> int:
        """The offset after its last record."""
        return self.base_offset + self.count


@dataclass(slots=True)
class MetadataBatch:
    """Records of the metadata log that were decided together: all of them hold, or none."""

    base_offset: int
    epoch: int
    """The epoch of its controller: the quorum's leader epoch, KRaft's controller epoch."""
    records: tuple[Any, ...]
    """Values of `records.py`, one offset each."""
    time_ms: int = field(default=0, compare=False)
    """The time when the leader's shell stored it, ms since 1970, kept by all copies; 0: not yet."""

    @property
    def end_offset(self) -> int:
        """The offset after its last record."""
        return self.base_offset + len(self.records)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaProperties:
    """The identity of the node and cluster to which a formatted disk belongs."""

    cluster_id: str
    node_id: int
    directory_id: int
    mode: str = "enabled"
    """`kip.500.mode`; a node of this generation starts on no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumState:
    """The state that a voter must not forget: its epoch, and its vote there."""

    epoch: int
    voted_for: int
    """-1: no vote yet."""
    leader_id: int
    """The leader's id; -1: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state that the metadata log adds up to, up to but without `end_offset`."""

    end_offset: int
    epoch: int
    """The epoch of the last record in it."""
    records: tuple[Any, ...]


@dataclass(slots=True, kw_only=True)
class Contents:
    """A disk as a starting node finds it."""

    files: dict[FileName, Any] = field(default_factory=dict)
    logs: dict[LogName, Sequence[Any]] = field(default_factory=dict)
    """Batches by log, in order. METADATA has MetadataBatch, the others Batch.

    After a crash a shell need not have read those of partitions yet: `effects.RECOVER`.
    """
    topics: dict[PartitionKey, str] = field(default_factory=dict)
    """The names of the topics of the partitions' logs, whether or not these were read."""
    log_starts: dict[LogName, int] = field(default_factory=dict)
    """The offsets at which logs begin, if not at 0."""
    incarnation_id: int = 0
    """Drawn by the shell for this start: no other start of any node has it."""
