"""The operations of all clients in one order: that of their calls; and the records of each.

Each client's operations come in the order of their calls, so this is a merge of sorted streams. It
goes in rounds: whatever was called before the *horizon* (the earliest of the last calls read from
the clients that have more to come) is complete, and is sorted and passed on. Memory holds a
piece of each client at a time, however long the history.

A record is what an operation sent or returned, with what a check of its key needs of the operation.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fencepost.history.failure import HarnessError
from fencepost.history.operation import F, Outcome
from fencepost.history.polled_rows import PolledRows
from fencepost.history.raw import RawClient, SegmentFile
from fencepost.history.segment_format import (
    INVOKED,
    NO_KEY,
    OPEN_NS,
    PROCESS_SHIFT,
    UNKNOWN_OFFSET,
    SegmentKind,
)

OPERATION: Final = np.dtype(
    [
        ("call_ns", "<i8"),
        ("return_ns", "<i8"),
        ("value", "<i8"),
        ("offset", "<i8"),
        ("record_count", "<i8"),
        ("process", "<i4"),
        ("key", "<i4"),
        ("error", "<i2"),
        ("outcome", "u1"),
        ("f", "u1"),
    ]
)
"""An operation on its way into the tables. `key` is an index into all keys of the run, or NO_KEY;
`return_ns` may be OPEN_NS, `offset` UNKNOWN_OFFSET; `value` is of a send what it sent, and of a
poll its number in the same scheme."""

_PIECE_SLOTS: Final = 1 << 16
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


def merged_operations(
    streams: Sequence[Iterator[NDArray[np.void]]],
) -> Iterator[NDArray[np.void]]:
    """Yield pieces of OPERATION, in the order of (call, stream, place in the stream).

    Each stream yields non-empty pieces whose calls never go back.
    """
    buffers = [np.zeros(0, OPERATION)] * len(streams)
    live = set(range(len(streams)))
    horizon_ns = np.iinfo(np.int64).min
    while live:
        for index in sorted(live):
            if len(buffers[index]) == 0 or buffers[index]["call_ns"][-1] <= horizon_ns:
                piece = next(streams[index], None)
                if piece is None:
                    live.discard(index)
                else:
                    buffers[index] = np.concatenate([buffers[index], piece])
        horizon_ns = min((int(buffers[index]["call_ns"][-1]) for index in live), default=_END_NS)
        cuts = [int(np.searchsorted(buffer["call_ns"], horizon_ns)) for buffer in buffers]
        if any(cuts):
            yield _in_order([buffer[:cut] for buffer, cut in zip(buffers, cuts, strict=True)])
            buffers = [buffer[cut:] for buffer, cut in zip(buffers, cuts, strict=True)]


_END_NS: Final = np.iinfo(np.int64).max


def operations_of(
    client: RawClient, *, keys: Mapping[str, int], polled: PolledRows | None
) -> Iterator[NDArray[np.void]]:
    """Yield the client's operations in pieces of OPERATION.

    `polled`: its rows, if it is a consumer.

    Raises HarnessError, naming the segment, if calls go back in time.
    """
    key_ids = np.array([*(keys[name] for name in client.keys), NO_KEY], np.int32)
    last_ns = np.iinfo(np.int64).min
    for segment in client.segments:
        slots = segment.slots()
        for at in range(0, len(slots), _PIECE_SLOTS):
            piece = _operations(slots[at : at + _PIECE_SLOTS], segment, key_ids, polled)
            calls = piece["call_ns"]
            if calls[0] < last_ns or np.any(np.diff(calls) < 0):
                raise HarnessError(f"{segment.path} is damaged: its calls go back in time")
            last_ns = int(calls[-1])
            yield piece


def _operations(
    slots: NDArray[np.void],
    segment: SegmentFile,
    key_ids: NDArray[np.int32],
    polled: PolledRows | None,
) -> NDArray[np.void]:
    operations = np.empty(len(slots), OPERATION)
    for name in ("call_ns", "value", "f"):
        operations[name] = slots[name]
    # A completion that a kill cut off has written some of its fields, and not its state.
    still_open = slots["state"] == INVOKED
    operations["error"] = np.where(still_open, 0, slots["error"])
    operations["return_ns"] = np.where(still_open, OPEN_NS, slots["return_ns"])
    operations["offset"] = np.where(still_open, UNKNOWN_OFFSET, slots["offset"])
    operations["outcome"] = np.where(still_open, Outcome.INFO.code, slots["outcome"])
    operations["process"] = segment.process
    operations["key"] = key_ids[slots["key"]]
    if segment.kind is SegmentKind.SENDS:
        operations["f"] = F.SEND.code
        operations["record_count"] = 1
    else:
        assert polled is not None, f"{segment.path} holds polls"
        first = int(slots["value"][0]) - (segment.process << PROCESS_SHIFT)
        operations["record_count"] = polled.counts(first, first + len(slots))
    return operations


def _in_order(pieces: Sequence[NDArray[np.void]]) -> NDArray[np.void]:
    # Stable: equal calls stay in the order of the streams, and in their own order within one.
    operations = np.concatenate(pieces)
    return operations.take(np.argsort(operations["call_ns"], kind="stable"))


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
