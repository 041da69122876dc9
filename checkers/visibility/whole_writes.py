"""Proof that a write of metadata is missing from its table: by the numbers that others carry.

Whatever a read lacks is told by the writes: one that was acknowledged and is not shown, or one that
made what is shown. A deletion that is missing from the table makes an innocent broker forget a
topic, and a missing change makes a setting older than it is. So the table has to have them all.

The number that a write to a topic carries is the count of the client's writes to that name before
it, growths and failed ones included (`workloads/generators/topic_lives.py`). A number larger than
the count of those that the table has proves that one is missing. Nothing proves that the last write
to a name is missing; but no run loses only these.

So is a number that a read showed and no write carries, or that was shown before it was written: it
was made by a write that is not in the table.
"""

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.rows import places_in_runs
from checkers.visibility.topic_reads import TopicReads

__all__ = ["missing_write"]

_GROWTH = "create-partitions"
_COLUMNS = ("topic", "call_ns", "f")


def missing_write(told: TopicReads) -> str:
    """Return what proves that a write is missing; empty if nothing does."""
    writes = told.topic_writes
    growths = told.partition_writes.filter(pc.equal(told.partition_writes["f"], _GROWTH))
    numbered = pa.concat_tables(
        [
            writes.select([*_COLUMNS, "config_value"]),
            growths.select(_COLUMNS).append_column(
                writes.schema.field("config_value"), pa.nulls(len(growths), pa.int64())
            ),
        ]
    ).sort_by([("topic", "ascending"), ("call_ns", "ascending")])
    return _skipped(numbered) or _unwritten(told.topics, writes)


def _skipped(writes: pa.Table) -> str:
    """Return where a write to a topic carries a larger number than there are writes before it."""
    codes = writes["topic"].combine_chunks().dictionary_encode().indices.to_numpy()
    count = places_in_runs(codes)
    number = pc.fill_null(writes["config_value"], -1).to_numpy()
    places = np.flatnonzero(number > count)
    if not len(places):
        return ""
    row = writes.slice(int(places[0]), 1).to_pylist()[0]
    return (
        f"the write of {row['config_value']} to {row['topic']} carries the count of those before "
        f"it, and {count[places[0]]} are recorded"
    )


def _unwritten(describes: pa.Table, writes: pa.Table) -> str:
    """Return a number that was shown and not written, or not yet."""
    called_ns: dict[str, dict[int, int]] = defaultdict(dict)
    for row in writes.select(["topic", "config_value", "call_ns"]).to_pylist():
        if row["config_value"] is not None:
            called_ns[row["topic"]].setdefault(row["config_value"], row["call_ns"])
    shown = describes.filter(
        pc.and_(
            pc.is_valid(describes["config_value"]),
            pc.is_in(describes["topic"], pa.array(list(called_ns), pa.string())),
        )
    )
    first = shown.group_by(["topic", "config_value"]).aggregate([("return_ns", "min")])
    for row in first.sort_by([("topic", "ascending"), ("config_value", "ascending")]).to_pylist():
        if reason := _why_unwritten(row, called_ns[row["topic"]]):
            return f"a read showed {row['config_value']} of {row['topic']}, {reason}"
    return ""


def _why_unwritten(row: Mapping[str, int], called_ns: Mapping[int, int]) -> str:
    if row["config_value"] not in called_ns:
        return "and no recorded write carries it"
    if row["return_ns_min"] < called_ns[row["config_value"]]:
        return "before the write of it was called"
    return ""
