"""The tables of a run, each as one pyarrow schema: the contract between recording and checking.

Every time is in nanoseconds of one monotonic clock since the start of the run (`*_ns`). Every
checker reads typed columns; nothing that a verdict rests on hides in a JSON blob. A reader asserts
the schema, name by name and type by type.

An *operation* is one call of a client: a send of one record, one poll, one final read. Its outcome:

- `ok`: it happened, and the answer is known;
- `fail`: it surely did not happen (the error registry marks its error definite);
- `info`: it may have happened (an indefinite error, or still open when the recording ended).

The tables of the cluster itself (its wires, disks and metadata) stand in `cluster_schema.py`.

A *key* is a topic-partition, written `topic-partition`, e.g. `t-0`. A *value* is unique per key.
"""

from typing import Final

import pyarrow as pa

from fencepost.history.cluster_schema import CLUSTER_TABLES

RECORD_BUCKET_COUNT: Final = 16
"""The number of files of `records`, by a stable hash of the key: one task a file, no shuffle."""

OPERATIONS: Final = pa.schema(
    [
        # Dense from 0, in the order of the calls (ties: by process, then by its own order).
        pa.field("index", pa.int64(), nullable=False),
        # The logical client. It has one poll open at a time; sends of one producer may overlap
        # (they are pipelined), and `index` is then the order in which it queued them.
        pa.field("process", pa.int32(), nullable=False),
        pa.field("f", pa.string(), nullable=False),
        # The one key it is about; null for a poll, which may return several.
        pa.field("key", pa.string()),
        pa.field("call_ns", pa.int64(), nullable=False),
        # Null while open, and for ever if its end was never seen (then the outcome is info).
        pa.field("return_ns", pa.int64()),
        pa.field("outcome", pa.string(), nullable=False),
        # A name of the error registry; null when ok.
        pa.field("error", pa.string()),
        # Records sent or returned; their rows in `records` name this operation.
        pa.field("record_count", pa.int32(), nullable=False),
    ]
)

# One row a record sent or polled. It repeats what a per-key check needs of its operation, so that
# a file of one bucket is enough to judge its keys: no join, no shuffle.
RECORDS: Final = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        # Null where a send's offset is not known (failed, indefinite).
        pa.field("offset", pa.int64()),
        pa.field("value", pa.int64(), nullable=False),
        pa.field("operation", pa.int64(), nullable=False),
        # 0-based place inside the operation.
        pa.field("position", pa.int32(), nullable=False),
        pa.field("process", pa.int32(), nullable=False),
        pa.field("f", pa.string(), nullable=False),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("call_ns", pa.int64(), nullable=False),
        pa.field("return_ns", pa.int64()),
        # Of a polled record: which unbroken ownership of this key by this process it belongs to.
        # A new assign, or a rebalance that took the key away and gave it back, starts the next one.
        pa.field("session", pa.int32(), nullable=False),
    ]
)

FAULTS: Final = pa.schema(
    [
        # Dense from 0, in the order of `begin_ns`.
        pa.field("index", pa.int64(), nullable=False),
        pa.field("fault", pa.string(), nullable=False),
        pa.field("targets", pa.list_(pa.field("element", pa.string())), nullable=False),
        pa.field("begin_ns", pa.int64(), nullable=False),
        # The time when its effect was first seen; null: never, so that it counts for nothing.
        pa.field("effect_ns", pa.int64()),
        # The observation, in words: "pid 4711 is gone".
        pa.field("evidence", pa.string()),
        # The time when the heal was seen to work; null: still broken when the recording ended.
        pa.field("end_ns", pa.int64()),
        pa.field("heal_evidence", pa.string()),
        # The kind of fault that was asked for, where `fault` is what was done for it: the kill of a
        # mix's `wipe` is of the kind wipe. Null in runs that did not record it: `fault` itself.
        pa.field("kind", pa.string()),
    ]
)

SAMPLES: Final = pa.schema(
    [
        pa.field("time_ns", pa.int64(), nullable=False),
        # A node ("broker-1"), a client process ("producer-0") or "run".
        pa.field("source", pa.string(), nullable=False),
        # E.g. rss_bytes, cpu_fraction, acknowledged_count, polled_count. The unit is its suffix.
        pa.field("metric", pa.string(), nullable=False),
        pa.field("value", pa.float64(), nullable=False),
    ]
)

CUT_SEGMENTS: Final = "cut_segment_count"
"""The metric of `samples` that tells how many segments of a client were cut short: its operations
are missing from the history."""

# Of an open history (`history.models`), which has no other tables of clients. Spread over files as
# `records` is; in a file the rows of a key follow each other, by index. A row group holds one key,
# or several that are whole, so that a large key is read in pieces that begin with it.
MODEL_OPERATIONS: Final = pa.schema(
    [
        # Dense from 0 over all keys, in the order of the calls.
        pa.field("index", pa.int64(), nullable=False),
        # A logical client; it has one operation open at a time.
        pa.field("process", pa.int64(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("f", pa.string(), nullable=False),
        pa.field("call_ns", pa.int64(), nullable=False),
        # Null if its end was never seen (then the outcome is info).
        pa.field("return_ns", pa.int64()),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("error", pa.string()),
        pa.field("expected", pa.int64()),
        pa.field("version", pa.int64()),
        pa.field("value", pa.int64()),
        pa.field("values", pa.list_(pa.field("element", pa.int64()))),
    ]
)

# One row a step of a transaction over lists. It repeats what a per-key pass needs of its
# transaction. Spread and ordered as MODEL_OPERATIONS, by transaction and position.
MICRO_OPERATIONS: Final = pa.schema(
    [
        # Dense from 0 over all keys, in the order of the calls.
        pa.field("transaction", pa.int64(), nullable=False),
        # 0-based place inside the transaction, over all its keys.
        pa.field("position", pa.int32(), nullable=False),
        pa.field("process", pa.int64(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("f", pa.string(), nullable=False),
        pa.field("call_ns", pa.int64(), nullable=False),
        pa.field("return_ns", pa.int64()),
        # Of the transaction.
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("error", pa.string()),
        # Appended; unique a key.
        pa.field("value", pa.int64()),
        # Read; null if that is not known.
        pa.field("values", pa.list_(pa.field("element", pa.int64()))),
    ]
)

# Operations on znodes (`history.models`), of a run. Spread and ordered as MODEL_OPERATIONS.
ZNODE_OPERATIONS: Final = pa.schema(
    [
        # Dense from 0 over all keys, in the order of the calls.
        pa.field("index", pa.int64(), nullable=False),
        # A logical client; it has one operation open at a time, and ends with its first info.
        pa.field("process", pa.int64(), nullable=False),
        # ZooKeeper's session, and the address of the server that it was connected to at the call.
        # A session carries out its operations in the order of their indices.
        pa.field("session", pa.int64(), nullable=False),
        pa.field("server", pa.string(), nullable=False),
        # The path.
        pa.field("key", pa.string(), nullable=False),
        pa.field("f", pa.string(), nullable=False),
        pa.field("call_ns", pa.int64(), nullable=False),
        # Null if its end was never seen (then the outcome is info).
        pa.field("return_ns", pa.int64()),
        pa.field("outcome", pa.string(), nullable=False),
        # A name of the error registry; null when ok, and when refused.
        pa.field("error", pa.string()),
        # The version expected, of a cas and some deletes.
        pa.field("expected", pa.int64()),
        # Of the state that was made or read, or that a delete ended: czxid, version; and the zxid
        # of the change, which is mzxid of what was made or read. Null if there was no znode.
        pa.field("life", pa.int64()),
        pa.field("version", pa.int64()),
        pa.field("zxid", pa.int64()),
        # Written or read; unique a key.
        pa.field("value", pa.int64()),
    ]
)

LATER_COLUMNS: Final = {
    "faults": ("kind",),
    "describes": ("metadata_offset",),
    "wire": ("session_epoch",),
    "node_settings": ("since_ns",),
    "transactions": ("failure", "fatal"),
}
"""The columns that runs of earlier versions lack, by table; nullable, and null there."""

LATER_TABLES: Final = ("windows", "topic_settings")
"""The tables that runs of earlier versions lack; they are empty there."""

RUN_TABLES: Final = {
    "operations": OPERATIONS,
    "records": RECORDS,
    "faults": FAULTS,
    "samples": SAMPLES,
    **CLUSTER_TABLES,
}
"""The tables of every run, empty where nothing was recorded."""

OPEN_TABLES: Final = {
    "model_operations": MODEL_OPERATIONS,
    "micro_operations": MICRO_OPERATIONS,
    "znode_operations": ZNODE_OPERATIONS,
}
"""The tables of operations on objects: a run has one of them at most
(`history.models.MODEL_TABLES`)."""

TABLES: Final = {**RUN_TABLES, **OPEN_TABLES}


def with_later_columns(table: pa.Table, name: str) -> pa.Table:
    """Return the table `name`; columns that its run is too old for are nulls, in their places."""
    missing = set(LATER_COLUMNS.get(name, ())) - set(table.column_names)
    for place, field in enumerate(TABLES[name]):
        if field.name in missing:
            table = table.add_column(
                min(place, len(table.columns)), field, pa.nulls(len(table), field.type)
            )
    return table
