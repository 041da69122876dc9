"""The records of operations, one by one: what each sent or returned, with what it needs of it."""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from history.operation import F
from history.polled_rows import PolledRows
from history.segment_format import PROCESS_SHIFT

__all__ = ["RECORD", "records_of"]

RECORD: Final = np.dtype(
    [
        ("offset", "<i8"),
        ("value", "<i8"),
        ("operation", "<i8"),
        ("call_ns", "<i8"),
        ("return_ns", "<i8"),
        ("position", "<i4"),
        ("process", "<i4"),
        ("key", "<i4"),
        ("session", "<i4"),
        ("f", "<i4"),
        ("outcome", "<i4"),
    ]
)
"""A record on its way into the table, with the same stand-ins for null as `merge.OPERATION`.

No padding: numpy packs it away when it concatenates, and the rows on disk would differ."""

_PIECE_ROWS: Final = 1 << 19
_SEQUENCE_MASK: Final = (1 << PROCESS_SHIFT) - 1
_OF_OPERATION: Final = ("call_ns", "return_ns", "process", "f", "outcome")


def records_of(
    operations: NDArray[np.void], *, first_index: int, polled: Mapping[int, PolledRows]
) -> Iterator[NDArray[np.void]]:
    """Yield the records of consecutive operations, the first of which has `first_index`.

    polled: the rows of each consumer, by process. Yields pieces of RECORD: of the same operations,
    every operation's records in order; of an operation too large for one piece, one after the
    other.
    """
    for part in _parts(operations["record_count"]):
        chosen, index = operations[part], first_index + part.start
        readers = np.unique(chosen["process"][chosen["f"] != F.SEND.code]).tolist()
        pieces = [_polled(chosen, index, process, polled[process]) for process in readers]
        if len(chosen) == 1 and pieces:
            yield from pieces[0]
        else:
            whole = (piece for of_process in pieces for piece in of_process)
            yield np.concatenate([_sent(chosen, index), *whole])


def _parts(counts: NDArray[np.int64]) -> Iterator[slice]:
    """Cut operations into parts of at most _PIECE_ROWS records, or of a single operation."""
    ends = np.cumsum(counts)
    at, done = 0, 0
    while at < len(counts):
        end = max(at + 1, int(np.searchsorted(ends, done + _PIECE_ROWS, side="right")))
        yield slice(at, end)
        at, done = end, int(ends[end - 1])


def _sent(operations: NDArray[np.void], first_index: int) -> NDArray[np.void]:
    mine = np.flatnonzero(operations["f"] == F.SEND.code)
    records = _blank(operations, mine, first_index)
    for name in ("offset", "value", "key"):
        records[name] = operations[name][mine]
    return records


def _polled(
    operations: NDArray[np.void], first_index: int, process: int, polled: PolledRows
) -> Iterator[NDArray[np.void]]:
    mine = np.flatnonzero((operations["process"] == process) & (operations["f"] != F.SEND.code))
    first = int(operations["value"][mine[0]]) & _SEQUENCE_MASK
    position = 0
    for rows in polled.read(first, first + len(mine), row_count_max=_PIECE_ROWS):
        records = _blank(operations, mine[rows["sequence"] - first], first_index)
        for name in ("offset", "value", "session", "key"):
            records[name] = rows[name]
        records["position"] = position + _places(rows["sequence"])
        position = int(records["position"][-1]) + 1 if len(mine) == 1 and len(rows) else 0
        yield records


def _blank(
    operations: NDArray[np.void], owners: NDArray[np.int64], first_index: int
) -> NDArray[np.void]:
    records = np.zeros(len(owners), RECORD)
    records["operation"] = first_index + owners
    for name in _OF_OPERATION:
        records[name] = operations[name][owners]
    return records


def _places(sequences: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, for each row, its 0-based place among the neighbours of the same sequence."""
    places = np.arange(len(sequences))
    starts = np.where(np.diff(sequences, prepend=-1) != 0, places, 0)
    return places - np.maximum.accumulate(starts)
