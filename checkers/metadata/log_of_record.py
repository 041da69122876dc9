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

A copy may begin with a snapshot where an older part was deleted. If another node that agrees with
the log of record goes back further, its older part is put in front.

Records inside a transaction of the metadata log (KIP-868) that was aborted, or never ended, count
for nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from checkers.facts import Facts
from checkers.metadata.records import MetadataRecord, records_in
from checkers.sources import Keep, Source, everything, source_of

__all__ = ["ROWS", "LogOfRecord", "Records", "log_of_record", "majority_of"]

ROWS: Final = (
    *("node", "snapshot", "metadata_offset", "controller_epoch", "timestamp_ms", "type", "control"),
    *("digest", "leader"),
)
"""The columns of all logs that decide, and those of the log of record that are held in memory."""
_KEPT_MAX: Final = 60_000
"""Records that are kept in memory once they were read; of more, each iteration reads them anew."""


class Records:
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
class LogOfRecord:
    """The decisions of the quorum, as far as they are known."""

    records: Records
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
            records=Records(source, (), keep),
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
    counts = _without_aborted(rows)
    cut = len(parts[0])
    segments = (parts[0][counts[:cut]], parts[1][counts[cut:]])
    return LogOfRecord(
        records=Records(source, segments, keep),
        rows=rows,
        end_offset=end,
        end_timestamp_ms=_end_timestamp_ms(rows, facts),
    )


def _end_timestamp_ms(rows: pa.Table, facts: Facts) -> int:
    """Return the last record's timestamp. A wrong clock may have been ahead of the true time."""
    if not facts.skews:
        return pc.max(rows["timestamp_ms"]).as_py() or 0
    return max(map(facts.first_ms, pc.unique(rows["timestamp_ms"]).to_pylist()), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    """One node's log: its rows by number, and those behind its snapshot as arrays by offset."""

    summed: NDArray[np.int64]
    """The rows of its snapshot."""
    logged: NDArray[np.int64]
    """The others."""
    offset: NDArray[Any]
    epoch: NDArray[Any]
    digest: NDArray[Any]

    @property
    def first_offset(self) -> int:
        """The first offset of the log behind the snapshot; without a snapshot, of the log."""
        return int(self.offset[0]) if len(self.offset) else np.iinfo(np.int64).max

    @property
    def last(self) -> tuple[int, int]:
        """Return the pair that elections compare: the epoch and the offset of the last record."""
        return (int(self.epoch[-1]), int(self.offset[-1])) if len(self.offset) else (-1, -1)

    def has(self, other: "_Copy") -> NDArray[Any]:
        """Return a mask of the other copy's records that this copy has, too."""
        if not len(self.offset):
            return np.zeros(len(other.offset), dtype=np.bool_)
        place = np.minimum(np.searchsorted(self.offset, other.offset), len(self.offset) - 1)
        same: NDArray[Any] = (
            (self.offset[place] == other.offset)
            & (self.epoch[place] == other.epoch)
            & (self.digest[place] == other.digest)
        )
        # The log below its first record is summed up in the snapshot that it begins with.
        return same | (other.offset < self.first_offset) if len(self.summed) else same


def _copies(rows: pa.Table) -> Mapping[str, _Copy]:
    node = rows["node"].combine_chunks().dictionary_encode()
    names, codes = node.dictionary.to_pylist(), node.indices.to_numpy()
    snapshot = rows["snapshot"].to_numpy()
    offset = rows["metadata_offset"].to_numpy()
    epoch, digest = rows["controller_epoch"].to_numpy(), rows["digest"].to_numpy()
    found = {}
    for name in sorted(names):
        mine = codes == names.index(name)
        summed, logged = np.flatnonzero(mine & snapshot), np.flatnonzero(mine & ~snapshot)
        found[name] = _Copy(
            summed=summed,
            logged=logged,
            offset=offset[logged],
            epoch=epoch[logged],
            digest=digest[logged],
        )
    return found


def _decided_end(chosen: _Copy, voters: Sequence[_Copy], *, majority: int) -> int:
    """Return the first offset of a record that fewer voters than a majority hold."""
    holders = np.sum([copy.has(chosen) for copy in voters], axis=0)
    held = np.append(holders >= majority, False)
    count = int(np.argmin(held))
    return int(chosen.offset[count - 1]) + 1 if count else chosen.first_offset


def _extended(
    chosen: _Copy, copies: Sequence[_Copy]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows before its log, and its log's.

    Before it is its snapshot, or the older part that another copy still has.
    """
    oldest = min(copies, key=lambda copy: copy.first_offset)
    overlap = (oldest.offset >= chosen.first_offset) & chosen.has(oldest)
    # One record in common at one offset and epoch: by Raft, all that came before is the same.
    if oldest.first_offset >= chosen.first_offset or not np.any(overlap):
        return chosen.summed, chosen.logged
    older = oldest.logged[oldest.offset < chosen.first_offset]
    return np.concatenate([oldest.summed, older]), chosen.logged


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
