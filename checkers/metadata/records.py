"""The rows of `history.cluster_schema.METADATA_LOG` as values, those that any check replays."""

from collections.abc import Iterable, Iterator
from itertools import starmap
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.metadata.shared_values import shared_values

LEADER_CHANGE: Final = "LeaderChangeMessage"

_NOTHING: Final = ("NoOpRecord",)
"""Says only that the controller lives, twice a second."""


class MetadataRecord(NamedTuple):
    """One record of a metadata log; fields as in METADATA_LOG."""

    node: str
    snapshot: bool
    metadata_offset: int
    controller_epoch: int
    timestamp_ms: int
    type: str
    control: bool
    digest: int
    topic: str | None
    topic_id: str | None
    partition: int | None
    replicas: tuple[int, ...] | None
    isr: tuple[int, ...] | None
    adding: tuple[int, ...] | None
    removing: tuple[int, ...] | None
    elr: tuple[int, ...] | None
    last_known_elr: tuple[int, ...] | None
    leader: int | None
    leader_epoch: int | None
    partition_epoch: int | None
    leader_recovery_state: int | None
    broker_id: int | None
    broker_epoch: int | None
    incarnation_id: str | None
    fenced: bool | None
    in_controlled_shutdown: bool | None
    name: str | None
    value: str | None


_UNIQUE: Final = frozenset({"metadata_offset", "digest"})


def records_in(rows: Iterable[pa.RecordBatch]) -> Iterator[MetadataRecord]:
    """Yield the rows of METADATA_LOG that say something, in their order."""
    for batch in rows:
        kept = batch.filter(pc.invert(pc.is_in(batch.column("type"), pa.array(_NOTHING))))
        columns = (
            _tuples(kept.column(name))
            if pa.types.is_list(kept.schema.field(name).type)
            else shared_values(kept.column(name), unique=name in _UNIQUE)
            for name in MetadataRecord._fields
        )
        yield from starmap(MetadataRecord, zip(*columns, strict=True))


def _tuples(column: pa.Array) -> list[Any]:
    if column.null_count == len(column):
        return [None] * len(column)
    return [None if one is None else tuple(one) for one in column.to_pylist()]
