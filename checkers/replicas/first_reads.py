"""The times when each record of a key was first read, and when it had been sent."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.rows import OPEN_NS, taken


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstReads:
    """The first reads of the records of a key, as parallel arrays, by offset."""

    offset: NDArray[np.int64]
    value: NDArray[np.int64]
    operation: NDArray[np.int64]
    """The poll, of all that returned the record the first that ended."""
    sent_ns: NDArray[np.int64]
    """The time when its send was called; OPEN_NS if unknown."""
    call_ns: NDArray[np.int64]
    return_ns: NDArray[np.int64]

    def take(self, places: NDArray[np.int64] | NDArray[np.bool_]) -> "FirstReads":
        """Return these, by place or by mask."""
        return taken(self, places)

    def __len__(self) -> int:
        return len(self.offset)


def first_reads(key: str, records: pa.Table) -> FirstReads:
    """Return the first reads of a key, out of RECORDS: polls and final reads that returned."""
    mine = records.filter(pc.equal(records["key"], key))
    is_send = pc.equal(mine["f"], "send")
    returned = pc.and_(pc.is_valid(mine["return_ns"]), pc.is_valid(mine["offset"]))
    reads = mine.filter(pc.and_(pc.invert(is_send), returned)).sort_by(
        [("value", "ascending"), ("return_ns", "ascending")]
    )
    value = reads["value"].to_numpy()
    first = np.flatnonzero(np.concatenate([[True], value[1:] != value[:-1]])[: len(value)])
    columns = {
        name: reads[name].to_numpy()[first]
        for name in ("offset", "value", "operation", "call_ns", "return_ns")
    }
    sent_ns = _sent_ns(mine.filter(is_send), columns["value"])
    found = FirstReads(**columns, sent_ns=sent_ns)
    return found.take(np.argsort(found.offset, kind="stable"))


def _sent_ns(sends: pa.Table, values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return when the send of each of these values was called. A value is sent once."""
    sends = sends.sort_by("value")
    sent, call_ns = sends["value"].to_numpy(), sends["call_ns"].to_numpy()
    if not len(sent):
        return np.full(len(values), OPEN_NS)
    place = np.minimum(np.searchsorted(sent, values), len(sent) - 1)
    return np.where(sent[place] == values, call_ns[place], OPEN_NS)
