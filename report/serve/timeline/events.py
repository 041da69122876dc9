"""The events of a run as columns of numbers: frames, operations, records of the metadata log.

A run has up to 80 million rows. They are read in batches, of the row groups that a span of time
touches, and words become numbers on the way. The whole run is told by counts, of lane and bucket of
time; single events are told of a span that has few enough of them.

One event is a row of its table: a frame with several partitions has one a partition, so that each
is found by its key. Of the metadata log, which every node has, it is the rows of that node which
has most of them; their times are the controller's wall clock, in milliseconds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Manifest
from fencepost.history.reader import table_files
from fencepost.history.run_directory import RunDirectory
from fencepost.report.frames import DISTURBING
from fencepost.report.serve.timeline.block import Block, longest_of, no_events
from fencepost.report.serve.timeline.names import Codes, Names

BUCKETS: Final = 8192
"""The pieces of time by which a whole run is counted: more than a screen has columns."""
BARS_MAX: Final = 20_000
_BATCH_ROWS: Final = 1 << 18
_CLIENT_LANES_MAX: Final = 24
Counts = NDArray[np.uint32]
_NEVER: Final = -1
_HELD: Final = "held"
_WORDS: Final = ("source", "target", "direction", "action", "api", "error", "topic", "topic_id")
_WIRE: Final = (
    *("frame", "time_ns", "forwarded_ns", *_WORDS, "partition", "path"),
    *("leader_epoch", "controller_epoch", "broker_epoch"),
)
_CLIENTS: Final = {
    "operations": "index",
    "model_operations": "index",
    "znode_operations": "index",
    "micro_operations": "transaction",
}
"""The tables of operations, each with the column that tells one from the other."""
TIMES: Final = {
    "wire": ("time_ns", "forwarded_ns"),
    **dict.fromkeys(_CLIENTS, ("call_ns", "return_ns")),
    "metadata_log": ("timestamp_ms", "timestamp_ms"),
}
"""The columns of each table that tell when an event began and ended."""
_LOG: Final = (
    *("metadata_offset", "timestamp_ms", "type", "node", "snapshot", "topic", "topic_id"),
    *("partition", "controller_epoch", "broker_epoch", "leader_epoch"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineLane:
    """A row of the picture: `kind` is node, link, client or log."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCounts:
    """A whole run by counts."""

    event_count: int
    counts: Counts
    """By lane and bucket; a frame counts on the lane of its sender and on that of its link."""
    odd_counts: Counts
    """The same of those that a rule held, dropped or the like, or that did not end well."""
    bars: Block
    """The `BARS_MAX` frames that were held the longest."""


@dataclass(slots=True)
class TimelineReader:
    """Reads the events of one run; words and lanes keep their codes between readings."""

    run: RunDirectory
    manifest: Manifest
    end_ns: int
    lanes: Names = field(default_factory=Names)
    whats: Names = field(default_factory=Names)
    keys: Names = field(default_factory=Names)
    fates: Names = field(default_factory=Names)
    errors: Names = field(default_factory=Names)
    broker_epochs: Names = field(default_factory=Names)
    _words: Names = field(default_factory=Names)
    _topics: dict[str, str] = field(default_factory=dict)
    _clients: tuple[int, ...] = ()
    _log_node: str = ""
    _prepared: bool = False

    def lane_list(self) -> tuple[TimelineLane, ...]:
        """Return the lanes by code; that of code 0 has no name and no event."""
        named = (name.partition(":") for name in self.lanes.words)
        return tuple(TimelineLane(kind=kind, name=name) for kind, _, name in named)

    def log_node(self) -> str:
        """Return the node whose metadata log is shown; empty if there is none."""
        self._prepare()
        return self._log_node

    def overview(self) -> RunCounts:
        """Count the whole run in one pass, in bounded memory."""
        counts, odd_counts = (np.zeros(0, dtype=np.uint32) for _ in range(2))
        bars, total = no_events(), 0
        for block in self.blocks(0, self.end_ns):
            total += len(block.time_ns)
            bucket = np.clip(block.time_ns * BUCKETS // (self.end_ns + 1), 0, BUCKETS - 1)
            odd, framed = self.is_odd(block), block.link != block.lane
            _count(counts, block.lane, bucket)
            _count(odd_counts, block.lane[odd], bucket[odd])
            if framed.any():
                _count(counts, block.link[framed], bucket[framed])
                _count(odd_counts, block.link[framed & odd], bucket[framed & odd])
            held = odd & framed & (block.until_ns > block.time_ns)
            if held.any():
                bars = longest_of(bars, block.where(held), BARS_MAX)
        size = len(self.lanes.words)
        return RunCounts(
            event_count=total,
            counts=_stacked(counts, size),
            odd_counts=_stacked(odd_counts, size),
            bars=bars,
        )

    def events(self, from_ns: int, to_ns: int, *, at_most: int) -> Block | None:
        """Return the events of a closed span in order; None if there are more than `at_most`."""
        blocks, count = [no_events()], 0
        for block in self.blocks(from_ns, to_ns):
            until = np.maximum(block.until_ns, block.time_ns)
            chosen = block.where((block.time_ns <= to_ns) & (until >= from_ns))
            count += len(chosen.time_ns)
            if count > at_most:
                return None
            blocks.append(chosen)
        return Block.joined(blocks)

    def is_odd(self, block: Block) -> NDArray[np.bool_]:
        """Return a mask of the events that a rule disturbed, and of operations that were not ok."""
        words = self.fates.words
        odd = np.array([word in DISTURBING or word in ("fail", "info") for word in words])
        found: NDArray[np.bool_] = odd[block.fate]
        return found

    def blocks(self, from_ns: int, to_ns: int) -> Iterator[Block]:
        """Yield the events of the batches of rows that reach into the span."""
        self._prepare()
        span = (from_ns, to_ns)
        for batch in self._batches("wire", _WIRE, span):
            yield self._frames(batch)
        for table, row in _CLIENTS.items():
            columns = (row, "process", "f", "key", "call_ns", "return_ns", "outcome", "error")
            for batch in self._batches(table, columns, span):
                yield self._operations(batch, row)
        if self._log_node:
            origin = self.manifest.origin_utc_ns
            stamps = (from_ns + origin, to_ns + origin)
            stamps = (stamps[0] // 1_000_000, stamps[1] // 1_000_000)
            for batch in self._batches("metadata_log", _LOG, stamps):
                yield self._records(batch)

    def _batches(
        self, table: str, columns: Sequence[str], span: tuple[int, int]
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows of the row groups whose times, by their statistics, reach into the span."""
        for path in files_of(self.run, table):
            with pq.ParquetFile(path) as file:
                there = set(file.schema_arrow.names)
                words = [
                    one
                    for one in columns
                    if one in there and file.schema_arrow.field(one).type == pa.string()
                ]
            with pq.ParquetFile(path, read_dictionary=words) as file:
                groups = [
                    group
                    for group in range(file.num_row_groups)
                    if _reaches(file.metadata.row_group(group), TIMES[table], span)
                ]
                yield from file.iter_batches(
                    batch_size=_BATCH_ROWS,
                    row_groups=groups,
                    columns=[one for one in columns if one in there],
                )

    def _prepare(self) -> None:
        """Learn what every batch needs: the lanes of the nodes, of clients, topics by their ids."""
        if self._prepared:
            return
        for node in self.manifest.node_ids:
            self.lanes.code(f"node:{node}")
        processes: set[int] = set()
        for table in _CLIENTS:
            for path in files_of(self.run, table):
                column = pq.read_table(path, columns=["process"])["process"]
                processes |= set(pc.unique(column).to_pylist())
        self._clients = tuple(sorted(processes))
        per_node: dict[str, int] = {}
        columns = ("node", "type", "snapshot", "topic", "topic_id")
        for batch in self._batches("metadata_log", columns, (-(1 << 62), 1 << 62)):
            logged = batch.filter(pc.invert(batch["snapshot"]))
            for one in pc.value_counts(logged["node"]).to_pylist():
                per_node[one["values"]] = per_node.get(one["values"], 0) + one["counts"]
            named = batch.filter(pc.equal(batch["type"], "TopicRecord"))
            self._topics |= {
                row["topic_id"]: row["topic"] for row in named.to_pylist() if row["topic"]
            }
        if per_node and self.manifest.origin_utc_ns:
            self._log_node = max(sorted(per_node), key=lambda node: per_node[node])
            self.lanes.code(f"log:{self._log_node}")
        self._prepared = True

    def _frames(self, batch: pa.RecordBatch) -> Block:
        asked = pc.equal(batch["direction"], "request").to_numpy(zero_copy_only=False)
        source, target = (self._words.codes(batch[name]) for name in ("source", "target"))
        sender, receiver = np.where(asked, source, target), np.where(asked, target, source)
        word = self._words.words
        fate = self.fates.codes(batch["action"])
        sent, passed = _whole(batch["time_ns"]), _whole(batch["forwarded_ns"], _NEVER)
        held = (fate == self.fates.code(_HELD)) & (passed == _NEVER)
        leader, controller = (
            _whole(batch[name], -1) if name in batch.schema.names else np.full(len(batch), -1)
            for name in ("leader_epoch", "controller_epoch")
        )
        return Block(
            time_ns=sent,
            until_ns=np.where(held, self.end_ns, passed),
            kind=np.where(asked, 0, 1).astype(np.uint8),
            lane=self.lanes.joined(sender, spell=lambda a: f"node:{word[a]}"),
            peer=self.lanes.joined(receiver, spell=lambda a: f"node:{word[a]}"),
            link=self.lanes.joined(
                sender, receiver, spell=lambda a, b: f"link:{word[a]} → {word[b]}"
            ),
            what=self.whats.codes(batch["api"]),
            key=self._keys(batch),
            fate=fate,
            error=self.errors.codes(batch["error"]),
            leader_epoch=np.where(leader >= 0, leader, controller),
            broker_epoch=self._epochs(batch),
            row=_whole(batch["frame"]),
        )

    def _operations(self, batch: pa.RecordBatch, row: str) -> Block:
        place = np.searchsorted(np.array(self._clients), _whole(batch["process"]))
        lane = self.lanes.joined(place, spell=self._client)
        return Block(
            time_ns=_whole(batch["call_ns"]),
            until_ns=_whole(batch["return_ns"], _NEVER),
            kind=np.full(len(batch), 2, dtype=np.uint8),
            lane=lane,
            peer=lane,
            link=lane,
            what=self.whats.codes(batch["f"]),
            key=self.keys.codes(batch["key"]),
            fate=self.fates.codes(batch["outcome"]),
            error=self.errors.codes(batch["error"]),
            leader_epoch=np.full(len(batch), -1),
            broker_epoch=np.zeros(len(batch), dtype=np.int64),
            row=_whole(batch[row]),
        )

    def _client(self, place: int) -> str:
        """Return the lane of a client by its place among all; many clients share lanes."""
        share = -(-len(self._clients) // _CLIENT_LANES_MAX)
        first = place - place % share
        last = min(first + share, len(self._clients)) - 1
        if first == last:
            return f"client:process-{self._clients[first]}"
        return f"client:processes-{self._clients[first]}…{self._clients[last]}"

    def _records(self, batch: pa.RecordBatch) -> Block:
        mine = pc.and_(pc.equal(batch["node"], self._log_node), pc.invert(batch["snapshot"]))
        rows = batch.filter(mine)
        count = len(rows)
        lane = np.full(count, self.lanes.code(f"log:{self._log_node}"))
        time_ns = _whole(rows["timestamp_ms"]) * 1_000_000 - self.manifest.origin_utc_ns
        # What was logged before the run's clock began stands at its beginning.
        time_ns = np.maximum(time_ns, 0)
        leader, controller = _whole(rows["leader_epoch"], -1), _whole(rows["controller_epoch"], -1)
        nothing = np.zeros(count, dtype=np.int64)
        return Block(
            time_ns=time_ns,
            until_ns=time_ns,
            kind=np.full(count, 3, dtype=np.uint8),
            lane=lane,
            peer=lane,
            link=lane,
            what=self.whats.codes(rows["type"]),
            key=self._keys(rows),
            fate=nothing,
            error=nothing,
            leader_epoch=np.where(leader >= 0, leader, controller),
            broker_epoch=self._epochs(rows),
            row=_whole(rows["metadata_offset"]),
        )

    def _keys(self, batch: pa.RecordBatch) -> Codes:
        """Return the key of each row: `topic-partition`, the topic, or the path of a znode."""
        topic, topic_id = (self._words.codes(batch[name]) for name in ("topic", "topic_id"))
        path = np.zeros(len(batch), dtype=np.int64)
        if "path" in batch.schema.names:
            path = self._words.codes(batch["path"])
        word = self._words.words

        def spell(topic: int, topic_id: int, path: int, partition: int) -> str:
            name = word[topic] or self._topics.get(word[topic_id], word[topic_id])
            if not name:
                return word[path]
            return f"{name}-{partition}" if partition >= 0 else name

        partition = _whole(batch["partition"], -1)
        return self.keys.joined(topic, topic_id, path, partition, spell=spell)

    def _epochs(self, batch: pa.RecordBatch) -> Codes:
        stated = batch["broker_epoch"].fill_null(-1).dictionary_encode()
        words = ["" if one < 0 else str(one) for one in stated.dictionary.to_pylist()]
        table = np.array([self.broker_epochs.code(word) for word in words], dtype=np.int64)
        codes: Codes = table[stated.indices.to_numpy(zero_copy_only=False)]
        return codes


def files_of(run: RunDirectory, table: str) -> tuple[Path, ...]:
    """Return the files of a table; none if the run has no such table."""
    try:
        return table_files(run, table)
    except HarnessError:
        return ()


def _reaches(group: Any, times: tuple[str, str], span: tuple[int, int]) -> bool:
    """Return whether the rows of a row group may reach into the span; if in doubt, they may."""
    found: Mapping[str, Any] = {
        group.column(place).path_in_schema: group.column(place).statistics
        for place in range(group.num_columns)
    }
    begin, end = (found.get(name) for name in times)
    if begin is None or not begin.has_min_max:
        return True
    if begin.min > span[1]:
        return False
    # A frame that was held to the end has no time here; the overview has it among its bars.
    if end is None or not end.has_min_max:
        return bool(begin.max >= span[0])
    return bool(max(begin.max, end.max) >= span[0])


def _whole(column: pa.Array, otherwise: int = 0) -> NDArray[np.int64]:
    filled = column.cast(pa.int64()).fill_null(otherwise)
    found: NDArray[np.int64] = filled.to_numpy(zero_copy_only=False)
    return found


def _count(counts: Counts, lane: Codes, bucket: Codes) -> None:
    here = np.bincount(lane * BUCKETS + bucket)
    if len(here) > len(counts):
        counts.resize(-(-len(here) // BUCKETS) * BUCKETS, refcheck=False)
    counts[: len(here)] += here.astype(np.uint32)


def _stacked(counts: Counts, size: int) -> Counts:
    counts.resize(size * BUCKETS, refcheck=False)
    return counts.reshape(size, BUCKETS)
