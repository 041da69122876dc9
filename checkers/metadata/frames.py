"""Rows of the tape (`wire`) as small values.

A tape of a long night has millions of rows, and most of their words are the same few. A row is a
tuple here, and equal words and numbers of different rows are one object: a fifth of the memory that
a dict a row would take.
"""

from collections.abc import Iterator, Sequence
from itertools import starmap
from typing import Any, Final, NamedTuple

import pyarrow as pa

__all__ = ["Frame", "frames_of"]


class Frame(NamedTuple):
    """A row of `wire`: the columns of requests and answers that checks read."""

    frame: int
    item: int
    connection: int
    source: str
    target: str
    direction: str
    time_ns: int
    forwarded_ns: int | None
    action: str
    api: str
    api_version: int
    correlation_id: int
    error: str | None
    topic: str | None
    topic_id: str | None
    partition: int | None
    broker_id: int | None
    broker_epoch: int | None
    leader_id: int | None
    leader_epoch: int | None
    partition_epoch: int | None
    controller_epoch: int | None
    isr: Sequence[int] | None
    isr_epochs: Sequence[int] | None
    fetch_offset: int | None
    incarnation_id: str | None
    fenced: bool | None
    shutting_down: bool | None
    lowest_acknowledged_offset: int | None
    metadata_version: int | None
    detail: str | None


_UNIQUE: Final = frozenset({"frame", "time_ns", "forwarded_ns", "correlation_id"})
"""Columns whose values are not shared: nearly every row has its own."""


def frames_of(wire: pa.Table) -> Iterator[Frame]:
    """Yield the rows of a tape, in its order."""
    for batch in wire.select(list(Frame._fields)).to_batches():
        columns = (
            _values(batch.column(name), shared=name not in _UNIQUE) for name in batch.schema.names
        )
        yield from starmap(Frame, zip(*columns, strict=True))


def _values(column: pa.Array, *, shared: bool) -> list[Any]:
    if column.null_count == len(column):
        return [None] * len(column)
    if not shared or pa.types.is_nested(column.type):
        return list(column.to_pylist())
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    words = [*coded.dictionary.to_pylist(), None]
    return [words[code] for code in coded.indices.fill_null(len(words) - 1).to_pylist()]
