"""Reads of topics by clients, in the parts that the checks of visibility ask for.

A read of a topic has a row for each of its partitions. The checks ask for one row a read and topic
(its id, its setting, or its absence), for the number of partitions, and for the leader epoch of
each partition. Only the last is as large as the table, and it is cut by partition: one topic may
have all partitions of a cluster.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.slices import WHOLE, Slice
from fencepost.checkers.sources import Source
from fencepost.history.request_schema import METADATA_WRITES, PARTITION_WRITES

_READ: Final = ("read", "process", "node", "call_ns", "return_ns", "topic", "topic_id")
_OF_PARTITIONS: Final = (*_READ, "partition", "leader_epoch")
_OF_READS: Final = (*_OF_PARTITIONS, "error", "config_value")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicReads:
    """The reads of some topics, and the writes to them."""

    topics: pa.Table
    """DESCRIBES, the rows of a topic as a whole or of its first partition."""
    counts: pa.Table
    """A row a read and topic id: `read`, `process`, `node`, `call_ns`, `return_ns`, `topic`,
    `topic_id` and `count`, of the partitions."""
    epochs: pa.Table
    """DESCRIBES, the rows with a topic id and a leader epoch, of some of the partitions."""
    topic_writes: pa.Table
    """METADATA_WRITES."""
    partition_writes: pa.Table
    """PARTITION_WRITES."""

    def called(self, kept: Callable[[NDArray[np.int64]], NDArray[np.bool_]]) -> "TopicReads":
        """Return the reads that a mask of their calls keeps."""

        def reads(table: pa.Table) -> pa.Table:
            return table.filter(pa.array(kept(table["call_ns"].to_numpy())))

        return replace(
            self,
            topics=reads(self.topics),
            counts=reads(self.counts),
            epochs=reads(self.epochs),
        )


def topic_reads(
    describes: Source, *, topic_writes: Source, partition_writes: Source, part: Slice = WHOLE
) -> TopicReads:
    """Return what a slice has of DESCRIBES, METADATA_WRITES and PARTITION_WRITES.

    A topic is in one slice with its writes, and its partitions are spread over all of them.
    """
    topics, counts, epochs = [], [], []
    for batch in describes(_OF_READS):
        place = _places(batch, part)
        number = pc.fill_null(batch.column("partition"), 0).to_numpy()
        whole = place == part.number
        topics.append(batch.filter(pa.array(whole & (number == 0))))
        counts.append(_counted(batch.filter(pa.array(whole))))
        mine = (place + number) % part.count == part.number
        epochs.append(_with_epochs(batch.filter(pa.array(mine))))
    return TopicReads(
        topics=pa.Table.from_batches(topics),
        counts=_summed(pa.concat_tables(counts)),
        epochs=pa.Table.from_batches(epochs),
        topic_writes=_of_topics(topic_writes, METADATA_WRITES, part),
        partition_writes=_of_topics(partition_writes, PARTITION_WRITES, part),
    )


def _places(batch: pa.RecordBatch, part: Slice) -> NDArray[np.int64]:
    """Return the number of the slice that has the topic of each row."""
    coded = batch.column("topic").dictionary_encode()
    place_of = [zlib.crc32(topic.encode()) % part.count for topic in coded.dictionary.to_pylist()]
    places: NDArray[np.int64] = np.array(place_of, dtype=np.int64)[coded.indices.to_numpy()]
    return places


def _counted(batch: pa.RecordBatch) -> pa.Table:
    kept = batch.filter(
        pc.and_(pc.is_valid(batch.column("topic_id")), pc.is_valid(batch.column("partition")))
    )
    counted = pa.Table.from_batches([kept]).group_by(list(_READ))
    return _named(counted.aggregate([("partition", "count")]), "partition_count")


def _summed(parts: pa.Table) -> pa.Table:
    """Return one row for a read whose partitions lay in several batches."""
    return _named(parts.group_by(list(_READ)).aggregate([("count", "sum")]), "count_sum")


def _named(table: pa.Table, count: str) -> pa.Table:
    return table.select([*_READ, count]).rename_columns([*_READ, "count"])


def _with_epochs(batch: pa.RecordBatch) -> pa.RecordBatch:
    has_epoch = pc.greater_equal(pc.fill_null(batch.column("leader_epoch"), -1), 0)
    kept = batch.filter(pc.and_(pc.is_valid(batch.column("topic_id")), has_epoch))
    return kept.select(list(_OF_PARTITIONS))


def _of_topics(writes: Source, schema: pa.Schema, part: Slice) -> pa.Table:
    batches = writes(schema.names)
    return pa.Table.from_batches(
        batch.filter(pa.array(_places(batch, part) == part.number)) for batch in batches
    )
