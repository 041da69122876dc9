"""Tables as streams of batches: what does not fit in memory is read as often as it is asked for.

A kernel is given tables; the log of record and large tapes are read from where they lie, column by
column, and only the rows that a slice of the run needs are kept (`checkers.slices`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import pyarrow as pa

__all__ = ["Keep", "Source", "Streams", "everything", "source_of", "streamed"]

Source = Callable[[Sequence[str]], Iterable[pa.RecordBatch]]
"""The batches of a table, of these columns; in its order, and as often as it is called."""

Keep = Callable[[pa.RecordBatch], pa.RecordBatch]
"""The rows of a batch that are wanted."""


def everything(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Keep all rows."""
    return batch


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


@runtime_checkable
class Streams(Protocol):
    """Tables that need not be read whole."""

    def stream(self, name: str) -> Source:
        """Return a table as a stream of the rows that it is given for."""


def streamed(tables: Mapping[str, pa.Table], name: str) -> Source:
    """Return one of these tables as a stream, without reading it whole where that can be."""
    return tables.stream(name) if isinstance(tables, Streams) else source_of(tables[name])
