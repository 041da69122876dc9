"""Voters and observers of the metadata quorum (KIP-595): kinds 10 to 19."""

from dataclasses import dataclass
from typing import Any, ClassVar

from fencepost.clusters.node_port.storage import MetadataBatch


@dataclass(slots=True)
class VoteRequest:
    """A candidate asks for a vote in its epoch."""

    kind: ClassVar[int] = 10
    correlation: int
    epoch: int
    candidate_id: int
    last_epoch: int
    """The epoch of the candidate's last record."""
    end_offset: int


@dataclass(slots=True)
class VoteResponse:
    """The vote; a higher epoch than the candidate's makes it give up."""

    kind: ClassVar[int] = VoteRequest.kind + 1
    correlation: int
    voter_id: int
    epoch: int
    leader_id: int
    granted: bool


@dataclass(slots=True)
class BeginQuorumEpochRequest:
    """A new leader says that it leads."""

    kind: ClassVar[int] = 12
    correlation: int
    epoch: int
    leader_id: int


@dataclass(slots=True)
class BeginQuorumEpochResponse:
    """A voter has heard it."""

    kind: ClassVar[int] = BeginQuorumEpochRequest.kind + 1
    correlation: int
    voter_id: int
    epoch: int
    leader_id: int


@dataclass(slots=True)
class EndQuorumEpochRequest:
    """A leader resigns, and names who should stand first."""

    kind: ClassVar[int] = 14
    correlation: int
    epoch: int
    leader_id: int
    successors: tuple[int, ...]


@dataclass(slots=True)
class EndQuorumEpochResponse:
    """A voter has heard it."""

    kind: ClassVar[int] = EndQuorumEpochRequest.kind + 1
    correlation: int
    voter_id: int
    epoch: int
    leader_id: int


@dataclass(slots=True)
class MetadataFetchRequest:
    """A voter or observer asks for the metadata log from an offset on; it may be parked."""

    kind: ClassVar[int] = 16
    correlation: int
    replica_id: int
    epoch: int
    """The quorum's leader epoch that the asker is in; -1: it does not know any."""
    fetch_offset: int
    last_fetched_epoch: int
    """The epoch of the record before `fetch_offset`; the leader finds a divergence by it."""
    max_wait_ns: int
    is_voter: bool


@dataclass(slots=True)
class MetadataFetchResponse:
    """Records, or a divergence, or a snapshot to fetch first, or who leads instead."""

    kind: ClassVar[int] = MetadataFetchRequest.kind + 1
    correlation: int
    error: int
    epoch: int
    leader_id: int
    high_watermark: int = -1
    batches: tuple[MetadataBatch, ...] = ()
    diverging_epoch: int = -1
    """With `diverging_end_offset`: truncate to what both logs share, and ask again."""
    diverging_end_offset: int = -1
    snapshot_end_offset: int = -1
    """The leader has dropped what was asked for: fetch this snapshot (KIP-630)."""
    snapshot_epoch: int = -1


@dataclass(slots=True)
class FetchSnapshotRequest:
    """Ask the leader for a snapshot from a position on."""

    kind: ClassVar[int] = 18
    correlation: int
    replica_id: int
    epoch: int
    end_offset: int
    snapshot_epoch: int
    position: int
    """The position of the piece, 0-based: in records in virtual time, in bytes on the wire."""
    size_max: int
    """The largest piece that is welcome."""


@dataclass(slots=True)
class FetchSnapshotResponse:
    """A piece of the snapshot, from the position on that was asked for."""

    kind: ClassVar[int] = FetchSnapshotRequest.kind + 1
    correlation: int
    error: int
    epoch: int
    leader_id: int
    size: int = 0
    """The size of the whole snapshot."""
    position: int = 0
    piece: Any = None
    """Bytes, in virtual time a tuple of records; None with an error."""
