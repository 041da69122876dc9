"""The metadata log of record: the one log that the quorum decided on, out of every node's copy.

Every node keeps a copy, and a copy may end too early (its node was down) or end in records that
were never committed (its node led alone for a while, or fetched from one that did). A committed
record lies on a majority of the voters, and by Raft's election rule each later leader has it: so
among any majority of logs the most up-to-date one, by (epoch of its last record, last offset),
holds everything committed. That log is taken, cut to what a majority of the voters holds record by
record; beyond that nothing is sure to have been decided. With one controller this is its whole log.

Where fewer controllers than a majority left a log, no log of record exists: what the others hold
may have been undone. A quorum whose voters change (KIP-853) counts all its controllers as voters; a
voter that never was one can only shorten the log of record, not put anything false into it.

A copy has spans. Each but one that begins with the log itself begins with a snapshot: what was
before it is not all there, and what is there of it is the span before. The log of record is the
last span of the copy that was chosen, and what goes before that is put in front, from whichever
node has it: a span leads to another one if it has one of its records, or the last one of its
snapshot. By Raft, at one offset and epoch all that came before is the same.

A controller adds to a batch until it is full or has been open for long enough, and all its records
have the time at which it was begun (`BatchAccumulator`). So that time is a lower bound of when a
record was appended, and the beginning of the next batch is the upper one: in between the controller
may have stood still. One that lives writes twice a second, so the last batch of a log was not open
for long: its writer died, or the log was read. ZooKeeper gives each transaction a time of its own,
when it takes its place in the order.

Records inside a transaction of the metadata log (KIP-868) that was aborted, or never ended, count
for nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from checkers.facts import Facts
from checkers.metadata.records import MetadataRecord, records_in
from checkers.sources import Keep, Source, everything, source_of

__all__ = ["ROWS", "BatchTimes", "LogOfRecord", "LoggedRecords", "log_of_record", "majority_of"]

LAST_OPEN_MS: Final = 1_000
"""How long the last batch of a log was open at most."""
ROWS: Final = (
    *("node", "snapshot", "metadata_offset", "controller_epoch", "timestamp_ms", "type", "control"),
    *("digest", "leader"),
)
"""The columns of all logs that decide, and those of the log of record that are held in memory."""
_KEPT_MAX: Final = 60_000
"""Records that are kept in memory once they were read; of more, each iteration reads them anew."""


class LoggedRecords:
    """Records of a metadata log, in order: as often as one likes, and no more in memory than need.

    `segments`: their row numbers in the source, each segment ascending.
    """

    def __init__(self, source: Source, segments: Sequence[NDArray[np.int64]], keep: Keep) -> None:
        self._source, self._segments, self._keep = source, segments, keep
        self._is_kept = sum(map(len, segments)) <= _KEPT_MAX or keep is not everything

    def __iter__(self) -> Iterator[MetadataRecord]:
        return iter(self._kept) if self._is_kept else self._read()

    def __bool__(self) -> bool:
        return any(True for _ in self)

    @cached_property
    def _kept(self) -> tuple[MetadataRecord, ...]:
        return tuple(self._read())

    def _read(self) -> Iterator[MetadataRecord]:
        for segment in self._segments:
            yield from records_in(self._batches(segment))

    def _batches(self, segment: NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
        begin = 0
        for batch in self._source(MetadataRecord._fields) if len(segment) else ():
            end = begin + batch.num_rows
            first, last = np.searchsorted(segment, (begin, end))
            if first < last:
                yield self._keep(batch.take(pa.array(segment[first:last] - begin)))
            begin = end


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTimes:
    """When the batches of a log were begun and ended, in ms of their controllers' clocks."""

    begin_ms: NDArray[np.int64]
    """Ascending."""
    end_ms_of: NDArray[np.int64]
    """The beginning of the batch after each; of the last one, `LAST_OPEN_MS` after its own."""

    @staticmethod
    def of(timestamps_ms: NDArray[np.int64]) -> "BatchTimes":
        """Return those of these records, which are in the order of their log."""
        if not len(timestamps_ms):
            return BatchTimes(begin_ms=timestamps_ms, end_ms_of=timestamps_ms)
        last = np.flatnonzero(np.append(np.diff(timestamps_ms) != 0, True))
        begin_ms = timestamps_ms[last]
        following_ms = np.append(begin_ms[1:], begin_ms[-1] + LAST_OPEN_MS)
        # Clocks of several controllers may differ: one time may be that of several batches.
        order = np.lexsort((following_ms, begin_ms))
        final = np.append(np.diff(begin_ms[order]) != 0, True)
        end_ms = np.maximum(following_ms, begin_ms)
        return BatchTimes(begin_ms=begin_ms[order][final], end_ms_of=end_ms[order][final])

    def end_ms(self, timestamp_ms: int) -> int:
        """Return by when a batch's records had been appended; of no batch's time, that time."""
        place = int(np.searchsorted(self.begin_ms, timestamp_ms))
        if place == len(self.begin_ms) or self.begin_ms[place] != timestamp_ms:
            return timestamp_ms
        return int(self.end_ms_of[place])


@dataclass(frozen=True, kw_only=True)
class LogOfRecord:
    """The decisions of the quorum, as far as they are known."""

    records: LoggedRecords
    """A snapshot's first, if it begins with one; then by offset. None if there is a doubt. Of a
    slice of the run those that concern it."""
    rows: pa.Table
    """All of them, whatever the slice, as some columns of METADATA_LOG (`ROWS`); with those that
    say nothing and those that were aborted."""
    end_offset: int = 0
    """The first offset that is not sure to have been decided."""
    end_timestamp_ms: int = 0
    """The timestamp of the last record, of any type: the log tells of the time until here."""
    doubt: str = ""
    """The reason why there is no log of record; empty if there is one."""
    on_zookeeper: bool = False

    @cached_property
    def batches(self) -> BatchTimes:
        """The batches of the whole log."""
        stamps = self.rows["timestamp_ms"].to_numpy()
        return BatchTimes.of(stamps[:0] if self.on_zookeeper else stamps)

    @property
    def begins_with_snapshot(self) -> bool:
        """Return whether the state before some offset is known only as a snapshot."""
        return bool(len(self.rows)) and bool(self.rows["snapshot"][0].as_py())


def majority_of(facts: Facts) -> int:
    """Return the number of voters that is a majority."""
    return len(facts.controllers) // 2 + 1


def log_of_record(
    metadata_log: pa.Table | Source, facts: Facts, *, keep: Keep = everything
) -> LogOfRecord:
    """Return the log of record out of METADATA_LOG of all nodes.

    `keep`: those of its records that are wanted.
    """
    source = source_of(metadata_log)
    all_rows = pa.Table.from_batches(source(ROWS))
    copies = _copies(all_rows)
    voters = {node: copies[node] for node in facts.controllers if node in copies}
    majority = majority_of(facts)
    if len(voters) < majority:
        return LogOfRecord(
            records=LoggedRecords(source, (), keep),
            rows=all_rows.slice(0, 0),
            doubt=f"{len(voters)} of {len(facts.controllers)} controllers left a metadata "
            f"log, and {majority} are needed",
        )
    chosen = max(sorted(voters), key=lambda node: voters[node].last)
    end = _decided_end(voters[chosen], tuple(voters.values()), majority=majority)
    offset = all_rows["metadata_offset"].to_numpy()
    parts = [
        numbers[offset[numbers] < end]
        for numbers in _extended(voters[chosen], tuple(copies.values()))
    ]
    rows = all_rows.take(pa.array(np.concatenate(parts)))
    counts = np.split(_without_aborted(rows), np.cumsum([len(part) for part in parts])[:-1])
    segments = [part[mask] for part, mask in zip(parts, counts, strict=True)]
    return LogOfRecord(
        records=LoggedRecords(source, segments, keep),
        rows=rows,
        end_offset=end,
        end_timestamp_ms=_end_timestamp_ms(rows, facts),
        on_zookeeper=facts.on_zookeeper,
    )


def _end_timestamp_ms(rows: pa.Table, facts: Facts) -> int:
    """Return the last record's timestamp. A wrong clock may have been ahead of the true time."""
    if not facts.skews:
        return pc.max(rows["timestamp_ms"]).as_py() or 0
    return max(map(facts.first_ms, pc.unique(rows["timestamp_ms"]).to_pylist()), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Some rows of METADATA_LOG by number, in order, as arrays."""

    number: NDArray[np.int64]
    offset: NDArray[Any]
    epoch: NDArray[Any]
    digest: NDArray[Any]

    def __len__(self) -> int:
        return len(self.number)

    def take(self, rows: NDArray[Any] | slice) -> "_Rows":
        """Return some of them, by place or by mask."""
        return _Rows(
            number=self.number[rows],
            offset=self.offset[rows],
            epoch=self.epoch[rows],
            digest=self.digest[rows],
        )

    def meets(self, other: "_Rows") -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which rows of the other have one of their offset and epoch here, and the same."""
        if not len(self):
            nowhere = np.zeros(len(other), dtype=np.bool_)
            return nowhere, nowhere
        place = np.minimum(np.searchsorted(self.offset, other.offset), len(self) - 1)
        there: NDArray[np.bool_] = (self.offset[place] == other.offset) & (
            self.epoch[place] == other.epoch
        )
        return there, there & (self.digest[place] == other.digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """A part of a node's log without a gap, and the snapshot that it begins with."""

    snapshot: _Rows
    """Its rows; none, if it begins with the log itself."""
    rows: _Rows

    @property
    def first_offset(self) -> int:
        """The first offset behind the snapshot; of an empty log, the end of the snapshot."""
        if len(self.snapshot):
            return int(self.snapshot.offset[0]) + 1
        return int(self.rows.offset[0]) if len(self.rows) else 0

    def leads_to(self, later: "_Span") -> bool:
        """Return whether what is before the later one is before one of the records here, too."""
        here = self.rows.take(self.rows.offset >= later.first_offset - 1)
        there, same = here.meets(later.rows)
        if np.any(there):
            return bool(np.any(same))
        return bool(np.any(here.meets(later.snapshot)[0]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    """One node's log, without its snapshots, and its spans."""

    rows: _Rows
    snapshot_end: int
    """The end offset of its last snapshot, which sums up all before it; 0: it has none."""
    spans: tuple[_Span, ...]
    """Of the log, by offset."""

    @property
    def last(self) -> tuple[int, int]:
        """Return the pair that elections compare: the epoch and the offset of the last record."""
        return (int(self.rows.epoch[-1]), int(self.rows.offset[-1])) if len(self.rows) else (-1, -1)

    def has(self, other: "_Copy") -> NDArray[np.bool_]:
        """Return a mask of the other copy's records that this copy has, too."""
        if not len(self.rows):
            return np.zeros(len(other.rows), dtype=np.bool_)
        return self.rows.meets(other.rows)[1] | (other.rows.offset < self.snapshot_end)


def _copies(rows: pa.Table) -> Mapping[str, _Copy]:
    node = rows["node"].combine_chunks().dictionary_encode()
    names, codes = node.dictionary.to_pylist(), node.indices.to_numpy()
    snapshot = rows["snapshot"].to_numpy()
    everything_of_all = _Rows(
        number=np.arange(len(rows)),
        offset=rows["metadata_offset"].to_numpy(),
        epoch=rows["controller_epoch"].to_numpy(),
        digest=rows["digest"].to_numpy(),
    )
    found = {}
    for name in sorted(names):
        mine = np.flatnonzero(codes == names.index(name))
        found[name] = _copy(everything_of_all.take(mine), snapshot[mine])
    return found


def _copy(rows: _Rows, snapshot: NDArray[np.bool_]) -> _Copy:
    spans = tuple(_spans(rows, snapshot))
    last = spans[-1].snapshot
    return _Copy(
        rows=rows.take(~snapshot),
        snapshot_end=int(last.offset[0]) + 1 if len(last) else 0,
        spans=spans,
    )


def _spans(rows: _Rows, snapshot: NDArray[np.bool_]) -> Iterator[_Span]:
    anew = snapshot[1:] & (~snapshot[:-1] | (rows.offset[1:] != rows.offset[:-1]))
    bounds = [0, *(np.flatnonzero(anew) + 1).tolist(), len(rows)]
    for start, end in pairwise(bounds):
        log = start + int(np.count_nonzero(snapshot[start:end]))
        yield _Span(snapshot=rows.take(slice(start, log)), rows=rows.take(slice(log, end)))


def _decided_end(chosen: _Copy, voters: Sequence[_Copy], *, majority: int) -> int:
    """Return the first offset of a record that fewer voters than a majority hold."""
    holders = np.sum([copy.has(chosen) for copy in voters], axis=0)
    held = np.append(holders >= majority, False)
    count = int(np.argmin(held))
    return int(chosen.rows.offset[count - 1]) + 1 if count else chosen.spans[-1].first_offset


def _extended(chosen: _Copy, copies: Sequence[_Copy]) -> Sequence[NDArray[np.int64]]:
    """Return the rows of its last span, with those in front that other spans have, part by part."""
    known = [span for copy in (chosen, *copies) for span in copy.spans]
    first = chosen.spans[-1]
    found = [first.rows.number]
    while older := [one for one in known if one.first_offset < first.first_offset]:
        # The longest one is the first to be asked: mostly it has all of it.
        older.sort(key=lambda span: span.first_offset)
        leading = next((one for one in older if one.leads_to(first)), None)
        if leading is None:
            break
        found.append(leading.rows.number[leading.rows.offset < first.first_offset])
        first = leading
    return [first.snapshot.number, *reversed(found)]


def _without_aborted(rows: pa.Table) -> NDArray[np.bool_]:
    """Return a mask of the rows of a log that count."""
    counts = np.ones(len(rows), dtype=np.bool_)
    types = rows["type"]
    bounds = np.flatnonzero(pc.is_in(types, pa.array(_BOUNDS)).to_numpy())
    begun: int | None = None
    for place in bounds.tolist():
        kind = types[place].as_py()
        if kind == _BEGIN:
            begun = place
            continue
        if kind == _ABORT and begun is not None:
            counts[begun:place] = False
        begun = None
    if begun is not None:
        counts[begun:] = False
    return counts


_BEGIN: Final = "BeginTransactionRecord"
_ABORT: Final = "AbortTransactionRecord"
_BOUNDS: Final = (_BEGIN, _ABORT, "EndTransactionRecord")
