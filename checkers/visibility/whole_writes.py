"""Proof that a write of metadata is missing from its table: by the numbers that others carry.

Whatever a read lacks is told by the writes: one that was acknowledged and is not shown, or one that
made what is shown. A deletion that is missing from the table makes an innocent broker forget a
topic, and a missing change makes a setting older than it is. So the table has to have them all.

A number that skips one proves it (`checkers.metadata.write_numbers`). So does a number that a read
showed and no write carries, or that was shown before it was written: it was made by a write that is
not in the table.
"""

from collections import defaultdict
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.metadata.write_numbers import skipped_write
from fencepost.checkers.visibility.topic_reads import TopicReads


def missing_write(told: TopicReads) -> str:
    """Return what proves that a write is missing; empty if nothing does."""
    return skipped_write(told.topic_writes, told.partition_writes) or _unwritten(
        told.topics, told.topic_writes
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
