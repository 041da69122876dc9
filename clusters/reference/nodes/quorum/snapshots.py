"""Snapshots in pieces (KIP-630): a leader cuts them off, whoever fetches puts them together.

Pieces are cut from a snapshot as it goes over the wire: bytes in a process, records in virtual
time. Positions and sizes count these. A piece ends anywhere, also within a record.
"""

from typing import Any, Final, Protocol

from fencepost.clusters.node_port.storage import Snapshot
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.quorum import FetchSnapshotResponse

BEGINS_ANEW: Final = frozenset({int(Error.SNAPSHOT_NOT_FOUND), int(Error.POSITION_OUT_OF_RANGE)})
"""The leader's errors after which a fetcher asks what there is now."""


class SnapshotCodec(Protocol):
    """The conversion of snapshots to what is cut in pieces: anything that slices and adds up."""

    def encoded(self, snapshot: Snapshot) -> Any:
        """The whole snapshot; the same for the same snapshot."""

    def decoded(self, data: Any, *, end_offset: int, epoch: int) -> Snapshot | None:
        """The snapshot of all its pieces; None if that cannot be read."""


class SnapshotValues:
    """The codec of virtual time: records as they are."""

    def encoded(self, snapshot: Snapshot) -> Any:
        """The records."""
        return snapshot.records

    def decoded(self, data: Any, *, end_offset: int, epoch: int) -> Snapshot | None:
        """The snapshot with these records."""
        return Snapshot(end_offset=end_offset, epoch=epoch, records=data)


class Pieces:
    """A leader's snapshot, encoded once for all who fetch it."""

    __slots__ = ("_codec", "_data", "_snapshot")

    def __init__(self, codec: SnapshotCodec) -> None:
        self._codec = codec
        self._snapshot: Snapshot | None = None
        self._data: Any = ()

    def cut(self, snapshot: Snapshot, *, position: int, size_max: int) -> tuple[int, Any] | None:
        """The size of the whole, and its piece from a position on; None if it has none there."""
        if snapshot is not self._snapshot:
            self._snapshot, self._data = snapshot, self._codec.encoded(snapshot)
        size = len(self._data)
        if not 0 <= position < max(size, 1):
            return None
        return size, self._data[position : position + max(size_max, 1)]


class Download:
    """A snapshot of one leader that arrives piece by piece; another leader's begins anew."""

    __slots__ = ("_leader_epoch", "data", "end_offset", "epoch")

    def __init__(self, end_offset: int, epoch: int, *, leader_epoch: int) -> None:
        self.end_offset = end_offset
        self.epoch = epoch
        self._leader_epoch = leader_epoch
        self.data: Any = None
        """The pieces so far; None: there is none yet."""

    @property
    def position(self) -> int:
        """The position of the next piece."""
        return 0 if self.data is None else len(self.data)

    def take(self, response: FetchSnapshotResponse) -> bool:
        """Add a piece; whether it was one, of this leader and for this position."""
        piece = response.piece
        if (
            piece is None
            or response.epoch != self._leader_epoch
            or response.position != self.position
            or not self.position + len(piece) <= response.size
            or (not piece and response.size)
        ):
            return False
        self.data = piece if self.data is None else self.data + piece
        return True
