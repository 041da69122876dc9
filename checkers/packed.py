"""A table at hand, compressed: what is read of it is unpacked batch by batch, column by column.

The tape of a slice has rows that concern all partitions, more of them the longer the run was. Half
of what they say are words that come again and again, and most columns are empty: what packing saves
is in docs/benchmarks.md.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

import pyarrow as pa

_WRITING: Final = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)


class PackedTable:
    """The rows of these batches, of which there is at least one, in their order."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        several = iter(batches)
        first = next(several)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, first.schema, options=_WRITING) as writer:
            for batch in chain((first,), several):
                writer.write_batch(batch)
        self._names = first.schema.names
        self._packed = sink.getvalue()

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the batches, of these columns."""
        places = sorted(map(self._names.index, columns))
        options = pa.ipc.IpcReadOptions(included_fields=places, use_threads=False)
        with pa.ipc.open_stream(self._packed, options=options) as reader:
            for batch in reader:
                yield batch.select(list(columns))
