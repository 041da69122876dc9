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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.facts import Facts
from fencepost.checkers.metadata.log_copies import copies_of, decided_end, extended, keys_of
from fencepost.checkers.metadata.records import MetadataRecord, records_in
from fencepost.checkers.metadata.remembered import remembered
from fencepost.checkers.sources import Keep, Source, everything, source_of

LAST_OPEN_MS: Final = 1_000
"""How long the last batch of a log was open at most."""
ROWS: Final = (
    *("node", "snapshot", "metadata_offset", "controller_epoch", "timestamp_ms", "type", "control"),
    *("digest", "leader"),
)
"""The columns of the log of record that are held in memory."""
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
            rows = _batches_at(self._source, MetadataRecord._fields, segment)
            yield from records_in(map(self._keep, rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTimes:
    """When each batch of a log was begun, and the one after it, by controllers' clocks in ms."""

    begin_ms: NDArray[np.int64]
    """Ascending."""
    following_ms: NDArray[np.int64]
    """The beginning of the batch after each; of the last one, `LAST_OPEN_MS` after its own."""

    @staticmethod
    def of(timestamps_ms: NDArray[np.int64]) -> "BatchTimes":
        """Return those of these records, which are in the order of their log."""
        if not len(timestamps_ms):
            return BatchTimes(begin_ms=timestamps_ms, following_ms=timestamps_ms)
        last = np.flatnonzero(np.append(np.diff(timestamps_ms) != 0, True))
        begin_ms = timestamps_ms[last]
        following_ms = np.append(begin_ms[1:], begin_ms[-1] + LAST_OPEN_MS)
        order = np.argsort(begin_ms, kind="stable")
        return BatchTimes(begin_ms=begin_ms[order], following_ms=following_ms[order])

    def followings_ms(self, timestamp_ms: int) -> Sequence[int]:
        """Return when those after the batches with this timestamp were begun.

        There are several if controllers' clocks differed. None is there of no batch's time.
        """
        first = int(np.searchsorted(self.begin_ms, timestamp_ms))
        end = first
        while end < len(self.begin_ms) and self.begin_ms[end] == timestamp_ms:
            end += 1
        found: list[int] = self.following_ms[first:end].tolist()
        return found


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
    agreed = _agreed(metadata_log, facts)
    return LogOfRecord(
        records=LoggedRecords(source_of(metadata_log), agreed.segments, keep),
        rows=agreed.rows,
        end_offset=agreed.end_offset,
        end_timestamp_ms=_end_timestamp_ms(agreed.rows, facts),
        doubt=agreed.doubt,
        on_zookeeper=facts.on_zookeeper,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Agreed:
    """The part of a log of record that is the same for every slice."""

    segments: Sequence[NDArray[np.int64]] = ()
    rows: pa.Table
    end_offset: int = 0
    doubt: str = ""


@remembered
def _agreed(metadata_log: pa.Table | Source, facts: Facts) -> _Agreed:
    source = source_of(metadata_log)
    keys = keys_of(source)
    copies = copies_of(keys)
    voters = {node: copies[node] for node in facts.controllers if node in copies}
    majority = majority_of(facts)
    if len(voters) < majority:
        return _Agreed(
            rows=_rows_at(source, [np.array([], dtype=np.int64)]),
            doubt=f"{len(voters)} of {len(facts.controllers)} controllers left a metadata "
            f"log, and {majority} are needed",
        )
    chosen = max(sorted(voters), key=lambda node: voters[node].last)
    end = decided_end(voters[chosen], tuple(voters.values()), majority=majority)
    offset = keys["metadata_offset"].to_numpy()
    parts = [
        numbers[offset[numbers] < end]
        for numbers in extended(voters[chosen], tuple(copies.values()))
    ]
    rows = _rows_at(source, parts)
    counts = np.split(_without_aborted(rows), np.cumsum([len(part) for part in parts])[:-1])
    segments = [part[mask] for part, mask in zip(parts, counts, strict=True)]
    return _Agreed(segments=segments, rows=rows, end_offset=end)


def _rows_at(source: Source, segments: Sequence[NDArray[np.int64]]) -> pa.Table:
    """Return the rows of these numbers, segment by segment, each of them ascending."""
    found = [batch for segment in segments for batch in _batches_at(source, ROWS, segment)]
    return pa.Table.from_batches(found or [next(iter(source(ROWS))).slice(0, 0)])


def _batches_at(
    source: Source, columns: Sequence[str], numbers: NDArray[np.int64]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of these numbers, which are ascending."""
    begin = 0
    for batch in source(columns) if len(numbers) else ():
        end = begin + batch.num_rows
        first, last = np.searchsorted(numbers, (begin, end))
        if first < last:
            yield batch.take(pa.array(numbers[first:last] - begin))
        begin = end


def _end_timestamp_ms(rows: pa.Table, facts: Facts) -> int:
    """Return the last record's timestamp. A wrong clock may have been ahead of the true time."""
    if not facts.skews:
        return pc.max(rows["timestamp_ms"]).as_py() or 0
    return max(map(facts.first_ms, pc.unique(rows["timestamp_ms"]).to_pylist()), default=0)


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
