"""Rows of the tape (`wire`) as small values.

A row is a tuple, whose words and numbers it shares with other rows: a fifth of the memory of a dict
a row.
"""

from collections.abc import Iterator, Sequence
from itertools import starmap
from typing import Final, NamedTuple

import pyarrow as pa

from fencepost.checkers.metadata.shared_values import shared_values


class TapeRow(NamedTuple):
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
    producer_id: int | None


_UNIQUE: Final = frozenset({"frame", "time_ns", "forwarded_ns"})
"""Columns whose values are not shared: nearly every row has its own."""


def frames_of(batch: pa.RecordBatch) -> Iterator[TapeRow]:
    """Yield the rows of a batch of a tape, in its order; it has the columns of `TapeRow`."""
    columns = (
        shared_values(batch.column(name), unique=name in _UNIQUE) for name in TapeRow._fields
    )
    yield from starmap(TapeRow, zip(*columns, strict=True))
