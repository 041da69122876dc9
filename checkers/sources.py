"""Tables as streams of batches: what does not fit in memory is read as often as it is asked for.

A kernel is given tables; the log of record and large tapes are read from where they lie, column by
column, and only the rows that a slice of the run needs are kept (`checkers.slices`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

_ROWS_AT_ONCE: Final = 1 << 14

Source = Callable[[Sequence[str]], Iterable[pa.RecordBatch]]
"""The batches of a table, of these columns; in its order, and as often as it is called."""

Keep = Callable[[pa.RecordBatch], pa.RecordBatch]
"""The rows of a batch that are wanted."""


def everything(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Keep all rows."""
    return batch


def has_rows(source: Source) -> bool:
    """Return whether a tape has any row."""
    return any(batch.num_rows for batch in source(("frame",)))


def source_of(table: pa.Table | Source) -> Source:
    """Return a table at hand as a source."""
    if not isinstance(table, pa.Table):
        return table
    whole = table

    def batches(columns: Sequence[str]) -> Iterable[pa.RecordBatch]:
        chosen = whole.select(list(columns))
        # A table without rows has no batch, and so no schema to go by.
        return chosen.to_batches() or [
            pa.RecordBatch.from_pylist([], schema=chosen.schema),
        ]

    return batches


def rows_of(table: pa.Table | pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table, few of which are dicts at one time."""
    for first in range(0, table.num_rows, _ROWS_AT_ONCE):
        yield from table.slice(first, _ROWS_AT_ONCE).to_pylist()


@runtime_checkable
class Streams(Protocol):
    """Tables that need not be read whole."""

    def stream(self, name: str, *, offsets: tuple[int, int] | None = None) -> Source:
        """Return a table as a stream of the rows that it is given for.

        `offsets`: of a table of records, those from one to before another.
        """


def streamed(
    tables: Mapping[str, pa.Table], name: str, *, offsets: tuple[int, int] | None = None
) -> Source:
    """Return one of these tables as a stream, without reading it whole where that can be.

    `offsets`: of a table of records, those from one to before another.
    """
    if isinstance(tables, Streams):
        return tables.stream(name, offsets=offsets)
    table = tables[name]
    if offsets is not None:
        first, end = offsets
        offset = table["offset"]
        table = table.filter(pc.and_(pc.greater_equal(offset, first), pc.less(offset, end)))
    return source_of(table)
