"""The rows of `history.schema.RECORDS` as numpy arrays: what every kernel works on."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.history.operation import F, Outcome

UNKNOWN_OFFSET: Final = -1
OPEN_NS: Final = int(np.iinfo(np.int64).max)
"""The return of an operation whose end was never seen: later than everything."""

_OUTCOMES: Final = (Outcome.OK, Outcome.FAIL, Outcome.INFO)
OK, FAIL, INFO = range(3)
"""Codes of outcomes in `Rows.outcome`."""

_FS: Final = (F.SEND, F.POLL, F.FINAL_READ)

_TYPES: Final = {
    "row": np.int64,
    "operation": np.int64,
    "process": np.int32,
    "session": np.int32,
    "offset": np.int64,
    "value": np.int64,
    "outcome": np.int8,
    "return_ns": np.int64,
}
"""The columns of `Rows`."""

COLUMNS: Final = (
    "key",
    "offset",
    "value",
    "operation",
    "position",
    "process",
    "f",
    "outcome",
    "return_ns",
    "session",
)
"""The columns of RECORDS that checks of the data plane read."""

_Arrays = TypeVar("_Arrays")
"""A dataclass whose fields are parallel arrays."""


def taken(arrays: _Arrays, rows: NDArray[Any] | slice) -> _Arrays:
    """Return these rows of parallel arrays, by number, by mask or as they follow each other."""
    names = [one.name for one in fields(cast("Any", arrays))]
    return type(arrays)(**{name: getattr(arrays, name)[rows] for name in names})


def places_in_runs(codes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the place of each element in its run of equal ones, from 0 on."""
    starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1])[: len(codes)])
    lengths = np.diff(np.append(starts, len(codes)))
    return np.arange(len(codes), dtype=np.int64) - np.repeat(starts, lengths)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Records of one key, as parallel arrays, by operation and then by place in the operation."""

    row: NDArray[np.int64]
    """The number of the row among all rows of its key, by operation and place in it."""
    operation: NDArray[np.int64]
    process: NDArray[np.int32]
    session: NDArray[np.int32]
    offset: NDArray[np.int64]
    """`UNKNOWN_OFFSET` where it is not known."""
    value: NDArray[np.int64]
    outcome: NDArray[np.int8]
    """The outcome of the operation: OK, FAIL or INFO."""
    return_ns: NDArray[np.int64]
    """The return of the operation; `OPEN_NS` if its end was never seen."""

    def __len__(self) -> int:
        return len(self.value)

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> "Rows":
        """Return these rows, by number or by mask."""
        return taken(self, rows)

    def kept(self, rows: NDArray[np.int64]) -> "Rows":
        """Return these rows, by ascending numbers; not copied if they follow each other."""
        count = len(rows)
        if count and int(rows[-1]) - int(rows[0]) + 1 == count:
            first = int(rows[0])
            return taken(self, slice(first, first + count))
        return self.take(rows)

    @property
    def ok(self) -> NDArray[np.bool_]:
        """Return a mask of the rows that belong to ok operations."""
        mask: NDArray[np.bool_] = self.outcome == OK
        return mask


def split(records: pa.Table, *, first_row: int = 0) -> tuple[Rows, Rows, NDArray[np.bool_]]:
    """Return sends, reads (polls and final reads), and which of the reads are of final reads.

    `records` has `COLUMNS` of RECORDS, of one key; strings may be dictionary-encoded. Their rows
    are numbered from `first_row` on.
    """
    f = codes(records.column("f"), tuple(_FS))
    rows = Rows(
        row=np.arange(first_row, first_row + records.num_rows),
        operation=_numbers(records, "operation"),
        process=_numbers(records, "process"),
        session=_numbers(records, "session"),
        offset=_numbers(records, "offset", null=UNKNOWN_OFFSET),
        value=_numbers(records, "value"),
        outcome=codes(records.column("outcome"), tuple(_OUTCOMES)),
        return_ns=_numbers(records, "return_ns", null=OPEN_NS),
    )
    order = _order(rows.operation, _numbers(records, "position"))
    if order is not None:
        f = f[order]
        rows = replace(rows.take(order), row=rows.row)
    reads = np.flatnonzero(f)
    final = f[reads] == _FS.index(F.FINAL_READ)
    return rows.kept(np.flatnonzero(f == 0)), rows.kept(reads), final


def no_rows() -> Rows:
    """Return empty rows."""
    return Rows(**{name: np.empty(0, dtype=kind) for name, kind in _TYPES.items()})


def joined(parts: Sequence[Rows]) -> Rows:
    """Return the rows of these parts, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    return Rows(
        **{
            name: np.concatenate([getattr(part, name) for part in (no_rows(), *parts)])
            for name in _TYPES
        }
    )


def codes(column: pa.ChunkedArray, names: tuple[str, ...]) -> NDArray[np.int8]:
    """Return the place of each string in `names`. Raises ValueError for any other string."""
    parts = [np.empty(0, dtype=np.int8)]
    for chunk in column.chunks:
        encoded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        words = encoded.dictionary.to_pylist()
        table = np.array([names.index(word) if word in names else -1 for word in words] or [-1])
        parts.append(table.astype(np.int8)[encoded.indices.to_numpy()])
    codes = np.concatenate(parts)
    if np.any(codes < 0):
        raise ValueError(f"expected one of {', '.join(names)}; found another word or none")
    return codes


def _order(operation: NDArray[np.int64], position: NDArray[np.int32]) -> NDArray[np.int64] | None:
    """Return indices that sort by operation and position; None if sorted (sealed files are)."""
    step = np.diff(operation)
    if not np.any((step < 0) | ((step == 0) & (np.diff(position) < 0))):
        return None
    return np.lexsort((position, operation)).astype(np.int64)


def _numbers(table: pa.Table, name: str, *, null: int | None = None) -> NDArray[Any]:
    column = table.column(name)
    if null is not None and column.null_count:
        column = pc.fill_null(column, null)
    numbers: NDArray[Any] = column.to_numpy()
    return numbers
