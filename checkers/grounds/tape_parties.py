"""The parties of the tape's connections: its rows agree on who talks to whom, and who was asked.

A connection has one dialling and one dialled party. The rows of one frame share what heads it. And
of the requests between nodes that are always on the tape (`history.cluster_schema.WIRE`) an answer
has one: what came back from a node, a node was asked for.
"""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.grounds.repeated import numbers_of

PARTY_COLUMNS: Final = (
    *("frame", "connection", "source", "target", "direction", "api", "correlation_id", "time_ns"),
)
_HEAD: Final = ("connection", "direction", "api", "correlation_id", "time_ns")
_EXCHANGE: Final = ("connection", "api", "correlation_id")
ALWAYS_TAPED: Final = (
    *("BrokerRegistration", "BrokerHeartbeat", "AlterPartition", "AllocateProducerIds"),
    *("MetadataHeartbeat", "IsrChange", "LeaderAndIsr", "UpdateMetadata", "StopReplica"),
    *("ControlledShutdown", "Vote", "BeginQuorumEpoch", "EndQuorumEpoch"),
)
"""The requests between nodes of which each has its frame, and each of their answers."""


class TapedParties:
    """The connections and exchanges of a tape up to some row."""

    def __init__(self) -> None:
        self._ends: dict[int, tuple[str, str]] = {}
        self._asked: list[NDArray[np.uint64]] = []
        self._answers: list[tuple[NDArray[np.uint64], NDArray[np.int64]]] = []

    def contradiction(self, batch: pa.RecordBatch) -> str:
        """Go on to the end of a batch; return what in it contradicts itself, or nothing."""
        rows = pa.Table.from_batches([batch])
        ends = rows.group_by(["connection", "source", "target"]).aggregate([])
        for row in ends.to_pylist():
            told = (row["source"], row["target"])
            if self._ends.setdefault(row["connection"], told) != told:
                return f"connection {row['connection']} is of several parties"
        frame = rows["frame"].to_numpy()
        head = numbers_of(rows, _HEAD)
        unlike = (frame[1:] == frame[:-1]) & (head[1:] != head[:-1])
        if np.any(unlike):
            return f"the items of frame {frame[int(np.argmax(unlike))]} have several heads"
        mine = rows.filter(pc.is_in(rows["api"], pa.array(ALWAYS_TAPED)))
        is_request = pc.equal(mine["direction"], "request").to_numpy()
        exchange = numbers_of(mine, _EXCHANGE)
        self._asked.append(np.unique(exchange[is_request]))
        self._answers.append((exchange[~is_request], mine["frame"].to_numpy()[~is_request]))
        return ""

    def unasked(self) -> str:
        """Return which answer has no request on the tape; empty if each has one."""
        asked = np.unique(np.concatenate([np.zeros(0, dtype=np.uint64), *self._asked]))
        for exchange, frame in self._answers:
            lone = ~np.isin(exchange, asked)
            if np.any(lone):
                return f"frame {frame[int(np.argmax(lone))]} answers a request that is not there"
        return ""
