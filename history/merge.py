"""The operations of all clients in one order: that of their calls.

Each client's operations come in the order of their calls, so this is a merge of sorted streams. It
goes in rounds: whatever was called before the *horizon* (the earliest of the last calls read from
the clients that have more to come) is complete, and is sorted and passed on. Memory holds a
piece of each client at a time, however long the history.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from history.failure import HarnessError
from history.operation import F, Outcome
from history.polled_rows import PolledRows
from history.raw import RawClient, SegmentFile
from history.segment_format import (
    INVOKED,
    NO_KEY,
    OPEN_NS,
    PROCESS_SHIFT,
    UNKNOWN_OFFSET,
    SegmentKind,
)

__all__ = ["OPERATION", "merged_operations", "operations_of"]

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
