"""Answers to heartbeats that tell a broker the lowest acknowledged metadata offset."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_COLUMN: Final = "lowest_acknowledged_offset"
TELLING: Final = ("api", "direction", "action", "error", "time_ns", _COLUMN)
"""The columns of `wire` that tell it."""


def _telling(wire: pa.RecordBatch) -> pa.RecordBatch:
    """Return the answers of controllers that tell a lowest acknowledged offset."""
    is_answer = pc.and_(
        pc.and_(
            pc.equal(wire.column("api"), "BrokerHeartbeat"),
            pc.equal(wire.column("direction"), "response"),
        ),
        pc.and_(
            pc.fill_null(pc.equal(wire.column("error"), "NONE"), fill_value=False),
            pc.not_equal(wire.column("action"), "answered"),
        ),
    )
    return wire.filter(pc.and_(is_answer, pc.is_valid(wire.column(_COLUMN))))


def told_first(wire: pa.RecordBatch) -> pa.RecordBatch:
    """Return of the answers that tell the same offset the first one."""
    told = _telling(wire)
    order = np.argsort(told.column("time_ns").to_numpy(), kind="stable")
    _, first = np.unique(told.column(_COLUMN).to_numpy()[order], return_index=True)
    return told.take(pa.array(np.sort(order[first])))
