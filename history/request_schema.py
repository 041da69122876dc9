"""The tables of what clients asked of the cluster itself, beside their sends and polls.

They read and write its metadata, move replicas, end transactions and keep offsets in groups; each
row is one answer. The rules of `cluster_schema.py` for names, ids and nulls hold here.
"""

from typing import Final

import pyarrow as pa


def ids(name: str) -> pa.Field:
    """Return a column of lists of broker ids."""
    return pa.field(name, pa.list_(pa.field("element", pa.int32())))


DESCRIBES: Final = pa.schema(
    [
        # One row a metadata read and partition it showed; `read` numbers the reads, densely, in the
        # order of their calls. A topic that the broker does not know has one row with no partition.
        pa.field("read", pa.int64(), nullable=False),
        # The party that asked: a client process, or -1 for the harness's observer.
        pa.field("process", pa.int32(), nullable=False),
        # The broker that answered.
        pa.field("node", pa.string(), nullable=False),
        pa.field("call_ns", pa.int64(), nullable=False),
        pa.field("return_ns", pa.int64(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("topic_id", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("error", pa.string(), nullable=False),
        pa.field("leader", pa.int32()),
        pa.field("leader_epoch", pa.int32()),
        ids("isr"),
        ids("replicas"),
        # Of a read of a topic's configuration: the value that `metadata_writes` wrote there, else
        # null. The first value is the one of the topic's creation.
        pa.field("config_value", pa.int64()),
        # The last offset of the metadata log that the answer takes into account, where the broker
        # tells it. Kafka's do not.
        pa.field("metadata_offset", pa.int64()),
    ]
)

TOPIC_SETTINGS: Final = pa.schema(
    [
        # One row a broker, topic id and set of settings that the broker showed of the topic: those
        # that it takes the topic itself to have been given, by name; none is an empty list. A set
        # that it went on showing has one row, of the first time.
        pa.field("node", pa.string(), nullable=False),
        pa.field("call_ns", pa.int64(), nullable=False),
        pa.field("return_ns", pa.int64(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        # What the broker took for the topic of that name, before and after.
        pa.field("topic_id", pa.string(), nullable=False),
        pa.field(
            "settings",
            pa.list_(
                pa.field(
                    "element",
                    pa.struct(
                        [
                            pa.field("name", pa.string(), nullable=False),
                            pa.field("value", pa.string()),
                        ]
                    ),
                )
            ),
            nullable=False,
        ),
    ]
)

METADATA_WRITES: Final = pa.schema(
    [
        # One row a write of a client to the cluster's metadata, dense, in the order of the calls.
        pa.field("index", pa.int64(), nullable=False),
        pa.field("process", pa.int32(), nullable=False),
        # "create-topic", "delete-topic", "alter-config".
        pa.field("f", pa.string(), nullable=False),
        # The broker that was asked to do it.
        pa.field("node", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        # Of a creation that was acknowledged.
        pa.field("topic_id", pa.string()),
        # Of an alter-config: the value written; unique and growing for each topic.
        pa.field("config_value", pa.int64()),
        pa.field("call_ns", pa.int64(), nullable=False),
        pa.field("return_ns", pa.int64()),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("error", pa.string()),
    ]
)

PARTITION_WRITES: Final = pa.schema(
    [
        # One row a write of a client to a topic's partitions, dense, in the order of the calls.
        pa.field("index", pa.int64(), nullable=False),
        pa.field("process", pa.int32(), nullable=False),
        # "create-partitions", "reassign", "cancel-reassignment".
        pa.field("f", pa.string(), nullable=False),
        # The broker that was asked to do it.
        pa.field("node", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        # Of a reassignment and its cancellation.
        pa.field("partition", pa.int32()),
        # Of a create-partitions: how many the topic is to have.
        pa.field("partition_count", pa.int32()),
        # Of a reassignment: what the client had seen, and what it asks for, the preferred leader
        # first.
        ids("replicas_before"),
        ids("replicas"),
        pa.field("call_ns", pa.int64(), nullable=False),
        # Of the answer: a reassignment that is ok has begun by then, and need not be over.
        pa.field("return_ns", pa.int64()),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("error", pa.string()),
        # Of a reassignment or a cancellation: when a controller said that nothing is under way and
        # a broker showed the replicas that were asked for (of a cancellation: any). Null: never
        # while the client looked.
        pa.field("over_ns", pa.int64()),
    ]
)

TRANSACTIONS: Final = pa.schema(
    [
        # One row a transaction of a client, dense, in the order of their begins.
        pa.field("index", pa.int64(), nullable=False),
        pa.field("process", pa.int32(), nullable=False),
        pa.field("transactional_id", pa.string(), nullable=False),
        # "commit" or "abort": what the client set out to do in the end.
        pa.field("intent", pa.string(), nullable=False),
        pa.field("begin_ns", pa.int64(), nullable=False),
        # The time when the client called commit or abort; null: it never did.
        pa.field("end_call_ns", pa.int64()),
        pa.field("return_ns", pa.int64()),
        # Of the commit or abort: ok, fail, info.
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("error", pa.string()),
        # The first error that the client was told of it, a name of the error registry: it keeps the
        # transaction from being committed, whatever the client set out to do. Null if none was.
        pa.field("failure", pa.string()),
        # The library said of an error of it that this instance can do no more; null without one.
        pa.field("fatal", pa.bool_()),
        # Its records, in the order in which they were sent; `records` has the same (key, value).
        pa.field("keys", pa.list_(pa.field("element", pa.string())), nullable=False),
        pa.field("values", pa.list_(pa.field("element", pa.int64())), nullable=False),
    ]
)

GROUP_OFFSETS: Final = pa.schema(
    [
        # One row a time that a transactional producer asked for its group's committed offsets, or
        # sent new ones with a transaction; dense, in the order of the calls.
        pa.field("index", pa.int64(), nullable=False),
        # The producer's.
        pa.field("process", pa.int32(), nullable=False),
        # FETCH_OFFSETS, SEND_OFFSETS (operation.py).
        pa.field("f", pa.string(), nullable=False),
        pa.field("group", pa.string(), nullable=False),
        pa.field("call_ns", pa.int64(), nullable=False),
        pa.field("return_ns", pa.int64()),
        # Of offsets that were sent: as of the records of their transaction.
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("error", pa.string()),
        # Of a fetch: every key. Of offsets that were sent: the keys of which records were taken.
        pa.field("keys", pa.list_(pa.field("element", pa.string())), nullable=False),
        # The offset from which each is read on. Of a fetch: as committed, -1 where nothing is;
        # empty without an answer.
        pa.field("offsets", pa.list_(pa.field("element", pa.int64())), nullable=False),
        # Of offsets that were sent: where the transaction began to take.
        pa.field("offsets_before", pa.list_(pa.field("element", pa.int64()))),
    ]
)

STABLE_OFFSETS: Final = pa.schema(
    [
        # The answers of a key's leader when every producer had ended: one row an observation that
        # differs from the one before.
        pa.field("time_ns", pa.int64(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        # The offset at which readers at read_committed stop: the first record of an open
        # transaction, else the high watermark. Asked for after the high watermark.
        pa.field("last_stable_offset", pa.int64(), nullable=False),
        pa.field("high_watermark", pa.int64(), nullable=False),
        # True if every transaction had been given the time to end: its time-out, and the
        # coordinator's interval of looking for those that have timed out.
        pa.field("due", pa.bool_(), nullable=False),
    ]
)
