"""The rows of the tables of a cluster that a slice of its partitions or brokers needs.

A slice of partitions has the records of its partitions, of their topics, and those that are about
no topic, the requests about its partitions, of Fetches those that tell of a session between
brokers, and of heartbeats those that were the first to tell a controller of an incarnation, or a
broker of an offset; and the answers that told clients a higher high watermark of such a partition
than any before. A slice of brokers has the records that are about no topic, all that was
said on connections on which a broker of the slice registered or sent heartbeats, what such a broker
was asked by clients of data, and of other frames their first rows.
"""

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.metadata.client_answers import DATA_APIS, is_data_of_clients
from fencepost.checkers.metadata.follower_fetches import begun_first
from fencepost.checkers.metadata.frames import TapeRow
from fencepost.checkers.metadata.log_of_record import ROWS
from fencepost.checkers.metadata.metadata_heartbeats import heard_first
from fencepost.checkers.metadata.told_offsets import told_first
from fencepost.checkers.metadata.watermarks import raised_first
from fencepost.checkers.slices import Slice, Split
from fencepost.checkers.sources import Keep, Source, everything

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "wire": (
        *TapeRow._fields,
        *("correlation_id", "session_epoch", "high_watermark", "path", "detail"),
    ),
    "metadata_log": ROWS,
    "records": ("key", "offset", "value", "operation", "f", "outcome", "call_ns", "return_ns"),
    "replica_records": (
        *("key", "node", "offset", "leader_epoch", "digest", "value"),
        *("timestamp_ms", "producer_id", "producer_epoch", "control", "committed", "transactional"),
    ),
}
"""The columns that kernels read of tables that have more."""

_HEARTBEATS: Final = ("BrokerHeartbeat", "MetadataHeartbeat")
_OF_BROKERS: Final = (*_HEARTBEATS, "BrokerRegistration")
_OF_QUORUM: Final = ("Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "FetchSnapshot")
_OF_TOPICS: Final = (
    *("CreateTopics", "CreatePartitions", "DeleteTopics"),
    *("AlterConfigs", "IncrementalAlterConfigs"),
)
"""Clients' own tables tell of these: no part about partitions or brokers reads them here."""
_FETCH: Final = "Fetch"
_BEARING_ON_ALL: Final = ("LeaderAndIsr", "StopReplica", "UpdateMetadata")
"""Of these the first row bears on all partitions: a broker is told something, and nothing else
meanwhile."""
_METADATA_TOPIC: Final = "__cluster_metadata"


def topic_names(sources: Iterable[Source]) -> Mapping[str, str]:
    """Return the names of topics by topic id, out of tables that tell both; the last one counts."""
    found: dict[str, str] = {}
    for source in sources:
        for batch in source(("topic", "topic_id")):
            both = pa.Table.from_batches([batch]).group_by(["topic", "topic_id"]).aggregate([])
            ids, topics = (both.drop_null()[one].to_pylist() for one in ("topic_id", "topic"))
            found |= dict(zip(ids, topics, strict=True))
    return found


def keep_of(
    name: str, part: Slice, *, names: Mapping[str, str], source: Source, unplaced: bool
) -> Keep:
    """Return what keeps the rows of a table that a slice needs, of the table `source`.

    `names`: of topics, by id; `unplaced`: records without an offset are needed, too.
    """
    if part.is_whole:
        return everything
    match part.split, name:
        case Split.BROKERS, "metadata_log":
            return _of_no_topic
        case Split.BROKERS, "wire":
            return _Connections(*_connections(source, part))
        case Split.BROKERS, _:
            return everything
        case _, "records" | "replica_records":
            return _Stretch(part, unplaced=unplaced)
        case _, "metadata_log":
            partitions = _Partitions(part, names)
            return _Decided(partitions, partitions.topics(source))
        case _, "wire":
            return _Requests(_Partitions(part, names))
        case _, "describes":
            return _Shown(_Partitions(part, names))
        case _:
            return everything


def _of_no_topic(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.filter(_names_no_topic(batch))


def _names_no_topic(batch: pa.RecordBatch) -> pa.Array:
    named = (pc.is_valid(batch.column(name)) for name in ("topic", "topic_id", "partition"))
    return pc.invert(reduce(pc.or_, named))


def _connections(wire: Source, part: Slice) -> tuple[pa.Array, pa.Array]:
    """Return the connections on which a broker of the slice registered or sent heartbeats.

    And the names of these brokers.
    """
    found: set[int] = set()
    brokers: set[str] = set()
    for batch in wire(("api", "direction", "connection", "source", "broker_id")):
        mine = batch.filter(
            pc.and_(
                pc.is_in(batch.column("api"), pa.array(_OF_BROKERS)),
                pc.and_(
                    pc.equal(batch.column("direction"), "request"),
                    pc.is_valid(batch.column("broker_id")),
                ),
            )
        )
        named = ["connection", "source", "broker_id"]
        several = pa.Table.from_batches([mine]).group_by(named).aggregate([]).to_pylist()
        own = [one for one in several if part.has_broker(one["broker_id"])]
        found |= {one["connection"] for one in own}
        brokers |= {one["source"] for one in own}
    return pa.array(sorted(found), pa.int64()), pa.array(sorted(brokers), pa.string())


class _Connections:
    """Keep the frames of some connections, and the first rows of requests to change anything.

    And what these brokers answered clients that asked for data.
    """

    def __init__(self, connections: pa.Array, brokers: pa.Array) -> None:
        self._connections, self._brokers = connections, brokers

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        api = batch.column("api")
        of_brokers = pc.is_in(api, pa.array(_OF_BROKERS))
        told = pc.is_in(api, pa.array((*_OF_BROKERS, *_OF_QUORUM, *_OF_TOPICS, *DATA_APIS)))
        others = pc.and_(pc.equal(batch.column("item"), 0), pc.invert(told))
        mine = pc.is_in(batch.column("connection"), self._connections)
        wanted = pc.or_(pc.and_(of_brokers, mine), others)
        of_clients = is_data_of_clients(batch)
        if pc.any(of_clients).as_py():
            asked = pc.is_in(batch.column("target"), self._brokers)
            wanted = pc.or_(wanted, pc.and_(of_clients, asked))
        return batch.filter(wanted)


class _Partitions:
    """The partitions of a slice, as rows tell of them."""

    def __init__(self, part: Slice, names: Mapping[str, str]) -> None:
        self._part, self._names = part, names
        self._known: dict[tuple[str | None, str | None, int], bool] = {}

    def topics(self, source: Source) -> frozenset[str]:
        """Return the names and the ids of the topics that have such a partition."""
        found: set[str] = set()
        for batch in source(("topic", "topic_id", "partition")):
            mine = batch.filter(self.mask(batch))
            ids = pc.unique(mine.column("topic_id")).drop_null().to_pylist()
            words = pc.unique(mine.column("topic")).drop_null().to_pylist()
            found |= {*ids, *words, *(self._names[one] for one in ids if one in self._names)}
        return frozenset(found)

    def mask(self, batch: pa.RecordBatch) -> pa.Array:
        """Return which rows are about a partition of the slice."""
        topic, topic_id = (batch.column(name).dictionary_encode() for name in ("topic", "topic_id"))
        partition = batch.column("partition").fill_null(-1).to_numpy().astype(np.int64)
        one, other = (
            coded.indices.fill_null(len(coded.dictionary)).to_numpy().astype(np.int64)
            for coded in (topic, topic_id)
        )
        width = int(partition.max(initial=0)) + 2
        codes = (one * (len(topic_id.dictionary) + 1) + other) * width + partition + 1
        _, first, place = np.unique(codes, return_index=True, return_inverse=True)
        words, ids = ([*coded.dictionary.to_pylist(), None] for coded in (topic, topic_id))
        has = [
            self._has(words[one[row]], ids[other[row]], int(partition[row]))
            for row in first.tolist()
        ]
        return pa.array(np.array(has, dtype=np.bool_)[place])

    def _has(self, topic: str | None, topic_id: str | None, partition: int) -> bool:
        place = (topic, topic_id, partition)
        if place not in self._known:
            name = self._names.get(topic_id or "", topic or topic_id)
            self._known[place] = partition >= 0 and self._part.has_partition(f"{name}-{partition}")
        return self._known[place]


class _Decided:
    """Keep the records of the slice's partitions, those of their topics, and those of no topic."""

    def __init__(self, partitions: _Partitions, topics: frozenset[str]) -> None:
        self._partitions, self._topics = partitions, pa.array(sorted(topics), pa.string())

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        of_topics = pc.and_(
            pc.is_null(batch.column("partition")),
            pc.or_(
                pc.is_in(batch.column("topic"), self._topics),
                pc.is_in(batch.column("topic_id"), self._topics),
            ),
        )
        mine = pc.or_(of_topics, self._partitions.mask(batch))
        return batch.filter(pc.or_(mine, _names_no_topic(batch)))


class _Requests:
    """Keep the frames that are about partitions of the slice, and what bears on all of them."""

    def __init__(self, partitions: _Partitions) -> None:
        self._partitions = partitions

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        api, topic = batch.column("api"), batch.column("topic")
        of_others = pc.or_(
            pc.is_in(api, pa.array((*_HEARTBEATS, *_OF_QUORUM, *_OF_TOPICS))),
            pc.fill_null(pc.equal(topic, _METADATA_TOPIC), fill_value=False),
        )
        is_answer = pc.and_(pc.equal(api, _FETCH), pc.equal(batch.column("direction"), "response"))
        of_data = pc.or_(is_answer, is_data_of_clients(batch))
        rest = batch.filter(pc.invert(pc.or_(of_others, of_data)))
        is_told = pc.and_(
            pc.is_in(rest.column("api"), pa.array(_BEARING_ON_ALL)),
            pc.equal(rest.column("item"), 0),
        )
        of_all = pc.or_(is_told, pa.array(begun_first(rest)))
        about_none = pc.is_null(rest.column("partition"))
        mine = rest.filter(pc.or_(pc.or_(of_all, about_none), self._partitions.mask(rest)))
        raised = raised_first(batch)
        raised = raised.filter(self._partitions.mask(raised))
        return _joined(mine, told_first(batch), heard_first(batch), raised)


def _joined(*batches: pa.RecordBatch) -> pa.RecordBatch:
    """Return all rows of these batches as one."""
    whole = pa.Table.from_batches(batches).combine_chunks()
    return whole.to_batches()[0] if len(whole) else batches[0].slice(0, 0)


class _Shown:
    """Keep the describes of partitions of the slice."""

    def __init__(self, partitions: _Partitions) -> None:
        self._partitions = partitions

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(self._partitions.mask(batch))


class _Stretch:
    """Keep the records of a stretch of offsets, and perhaps those without one."""

    def __init__(self, part: Slice, *, unplaced: bool) -> None:
        self._part, self._unplaced = part, unplaced

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        first, end = self._part.first_offset, self._part.end_offset
        if end is None and not first:
            return batch
        offset = batch.column("offset")
        mine = pc.greater_equal(offset, first)
        if end is not None:
            mine = pc.and_(mine, pc.less(offset, end))
        return batch.filter(pc.fill_null(mine, fill_value=self._unplaced))
