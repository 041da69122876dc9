"""D31 out-of-sequence: Records of one producer epoch stand out of order.

In the log of a replica, a record stands behind another one of the same producer id and producer
epoch that was sent later, or that is the same: it has no higher value.

A producer numbers its records by producer id and epoch, and brokers append them in that order, each
once (KIP-98). A pair of id and epoch is one producer's. The log says under which pair a record was
appended, and its value tells the process that sent it and its place among what that process sent;
a client that goes on as another process, after a send that it does not know the end of, takes a
higher number. So under one pair the values of a log grow from offset to offset. Where one does not

- a broker took a record a second time, or after others that were sent later; or
- two producers were given one id: what one of them sends is taken for the other's sent again.

The logs are whole evidence by themselves: it counts as well what no client has read.

Not seen: two producers under one pair, if one had ended before the other one began, which has the
higher number.

Meaning: A broker took a record twice or too late, or two producers have one id, and what one of
them sends may be dropped as sent again.
Case: a producer id and epoch under which a key has records
Source: KIP-98, KIP-730; KAFKA-15552
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.view import MetadataView, counted
from fencepost.checkers.proof import Proof
from fencepost.checkers.replicas.replica_logs import group_begins
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import Source, streamed
from fencepost.checkers.table_check import TableCheck
from fencepost.history.segment_format import PROCESS_SHIFT

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.LOG,
    needs=("replica_records",),
)
NAME: Final = ENTRY.name
_PAIR: Final = ("key", "node", "producer_id", "producer_epoch")
_COLUMNS: Final = (*_PAIR, "offset", "value")

_Row = Mapping[str, Any]


def out_of_sequence(tables: Tables, seen: MetadataView) -> Judged:
    """Judge each producer id and epoch in the logs of a bucket. Reads `replica_records`."""
    del seen
    found: dict[str, dict[tuple[int, int], Proof | None]] = {}
    last: dict[tuple[Any, ...], _Row] = {}
    for first, final, within in _stretches(streamed(tables, "replica_records")):
        pair = tuple(first[name] for name in _PAIR)
        before = last.get(pair, first)
        step = (before, first) if before["offset"] < first["offset"] else None
        wrong = step if step and first["value"] <= before["value"] else within
        last[pair] = final
        told = found.setdefault(first["key"], {})
        of = (first["producer_id"], first["producer_epoch"])
        told[of] = told.get(of) or (None if wrong is None else _proof(*wrong))
    for key in sorted(found):
        yield key, counted(NAME, key, found[key].values())


def _stretches(records: Source) -> Iterator[tuple[_Row, _Row, tuple[_Row, _Row] | None]]:
    """Yield, batch by batch and pair by pair, the first and the last record of ours by offset.

    With them, the first two that follow each other in the wrong order. The table has the order of
    key, node and offset.
    """
    for batch in records(_COLUMNS):
        ours = pc.and_(
            pc.is_valid(batch.column("value")), pc.greater_equal(batch.column("producer_id"), 0)
        )
        rows = pa.Table.from_batches([batch.filter(ours)])
        rows = rows.sort_by([(name, "ascending") for name in (*_PAIR, "offset")])
        begins = group_begins(rows, _PAIR)
        value = rows["value"].to_numpy()
        wrong = np.flatnonzero((value[1:] <= value[:-1]) & ~begins[1:]) + 1
        bounds = [*np.flatnonzero(begins).tolist(), len(rows)]
        for start, end in pairwise(bounds):
            at = int(np.searchsorted(wrong, start))
            places = [start, end - 1]
            if at < len(wrong) and wrong[at] < end:
                places += [int(wrong[at]) - 1, int(wrong[at])]
            first, final, *step = rows.take(pa.array(places)).to_pylist()
            yield first, final, (step[0], step[1]) if step else None


def _proof(before: _Row, behind: _Row) -> Proof:
    return Proof.of(
        "the log of {node} has value {value} of process {process} at {offset} and behind it, at "
        "{behind}, value {value_behind} of process {other_process}, which was sent no later, both "
        "of producer id {producer_id} in producer epoch {producer_epoch}",
        offsets={"offset": before["offset"], "behind": behind["offset"]},
        values={"value": before["value"], "value_behind": behind["value"]},
        node=before["node"],
        process=before["value"] >> PROCESS_SHIFT,
        other_process=behind["value"] >> PROCESS_SHIFT,
        producer_id=before["producer_id"],
        producer_epoch=before["producer_epoch"],
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=out_of_sequence,
        split=Split.RECORDS,
    ),
)
