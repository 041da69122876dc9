"""The high watermarks that brokers told clients in answers to Fetch, read from the tape.

Records below a high watermark are committed, whoever tells it. So each bears on all that comes
after it, and of a partition's only one that is higher than all before it says anything new.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.metadata.client_answers import is_data_of_clients
from fencepost.checkers.metadata.exchanges import BY_PROXY, CORRELATION
from fencepost.checkers.metadata.frames import TapeRow
from fencepost.checkers.metadata.partition_states import PartitionHistory
from fencepost.checkers.sources import Source

_PLACE: Final = ("topic", "topic_id", "partition")
_COLUMNS: Final = (*TapeRow._fields, CORRELATION, "session_epoch", "high_watermark")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldWatermarks:
    """Those of a partition that were higher than all before, as parallel arrays, both ascending."""

    time_ns: NDArray[np.int64]
    """The times when the answers had arrived at the proxy: they were sent no later."""
    high_watermark: NDArray[np.int64]
    frame: NDArray[np.int64]
    node: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.frame)


def told_to_clients(wire: Source, history: PartitionHistory) -> ToldWatermarks:
    """Return what was told of a partition; by its name alone where the answers have no topic id."""
    rows = [row for batch in wire(_COLUMNS) for row in _of(raised_first(batch), history)]
    rows = _rising(sorted(rows, key=lambda row: (row["time_ns"], row["frame"])))
    time_ns, high_watermark, frame = (
        np.array([row[name] for row in rows], dtype=np.int64)
        for name in ("time_ns", "high_watermark", "frame")
    )
    return ToldWatermarks(
        time_ns=time_ns,
        high_watermark=high_watermark,
        frame=frame,
        node=tuple(row["target"] for row in rows),
    )


def _of(batch: pa.RecordBatch, history: PartitionHistory) -> list[dict[str, Any]]:
    mine = pc.and_(
        pc.equal(batch.column("partition"), history.partition),
        pc.if_else(
            pc.is_valid(batch.column("topic_id")),
            pc.equal(batch.column("topic_id"), history.topic_id),
            pc.equal(batch.column("topic"), history.topic),
        ),
    )
    rows: list[dict[str, Any]] = batch.filter(mine).to_pylist()
    return rows


def raised_first(wire: pa.RecordBatch) -> pa.RecordBatch:
    """Return the answers to clients that tell more of a partition than all before them.

    None without the column: a check that does not ask for it compares none.
    """
    if "high_watermark" not in wire.schema.names:
        return wire.slice(0, 0)
    is_told = pc.and_(
        pc.and_(
            pc.equal(wire.column("direction"), "response"),
            pc.greater_equal(wire.column("high_watermark"), 0),
        ),
        pc.and_(
            pc.fill_null(pc.equal(wire.column("error"), "NONE"), fill_value=False),
            pc.not_equal(wire.column("action"), BY_PROXY),
        ),
    )
    told = wire.filter(pc.and_(is_told, is_data_of_clients(wire)))
    order = np.lexsort((told.column("frame").to_numpy(), told.column("time_ns").to_numpy()))
    numbered = told.select([*_PLACE, "high_watermark"]).take(pa.array(order)).to_pylist()
    kept = _rising([row | {"at": at} for row, at in zip(numbered, order.tolist(), strict=True)])
    return told.take(pa.array(sorted(row["at"] for row in kept), pa.int64()))


def _rising(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return those that tell more of their partition than all before them."""
    highest: dict[tuple[Any, ...], int] = {}
    found = []
    for row in rows:
        place, told = tuple(row[name] for name in _PLACE), row["high_watermark"]
        if told > highest.get(place, -1):
            highest[place] = told
            found.append(row)
    return found
