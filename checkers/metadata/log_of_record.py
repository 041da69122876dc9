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

Records inside a transaction of the metadata log (KIP-868) that was aborted, or never ended, count
for nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from checkers.facts import Facts
from checkers.metadata.records import MetadataRecord, records_in

__all__ = ["LogOfRecord", "log_of_record", "majority_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOfRecord:
    """The decisions of the quorum, as far as they are known."""

    records: tuple[MetadataRecord, ...]
    """A snapshot's first, if it begins with one; then by offset. None if there is a doubt."""
    rows: pa.Table
    """The same as METADATA_LOG, with those that say nothing and those that were aborted."""
    end_offset: int = 0
    """The first offset that is not sure to have been decided."""
    end_timestamp_ms: int = 0
    """The timestamp of the last record, of any type: the log tells of the time until here."""
    doubt: str = ""
    """The reason why there is no log of record; empty if there is one."""

    @property
    def begins_with_snapshot(self) -> bool:
        """Return whether the state before some offset is known only as a snapshot."""
        return bool(self.records) and self.records[0].snapshot


def majority_of(facts: Facts) -> int:
    """Return the number of voters that is a majority."""
    return len(facts.controllers) // 2 + 1


def log_of_record(metadata_log: pa.Table, facts: Facts) -> LogOfRecord:
    """Return the log of record out of METADATA_LOG of all nodes."""
    copies = _copies(metadata_log)
    voters = {node: copies[node] for node in facts.controllers if node in copies}
    majority = majority_of(facts)
    if len(voters) < majority:
        return LogOfRecord(
            records=(),
            rows=metadata_log.slice(0, 0),
            doubt=f"{len(voters)} of {len(facts.controllers)} controllers left a metadata "
            f"log, and {majority} are needed",
        )
    chosen = max(sorted(voters), key=lambda node: voters[node].last)
    end = _decided_end(voters[chosen], tuple(voters.values()), majority=majority)
    rows = _extended(voters[chosen], tuple(copies.values())).filter(
        pc.less(pc.field("metadata_offset"), end)
    )
    return LogOfRecord(
        records=_without_aborted(tuple(records_in(rows))),
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
    """One node's log, without its snapshots, as arrays in the order of the offsets."""

    rows: pa.Table
    """All of them, those of snapshots too."""
    offset: NDArray[Any]
    epoch: NDArray[Any]
    digest: NDArray[Any]
    snapshot_end: int
    """The end offset of its last snapshot, which sums up all before it; 0: it has none."""
    spans: "tuple[_Span, ...]"
    """Of the log, by offset."""

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
        return same | (other.offset < self.snapshot_end)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """A part of a node's log without a gap, and the snapshot that it begins with."""

    snapshot: pa.Table
    """Its rows; none, if it begins with the log itself."""
    rows: pa.Table

    @property
    def first_offset(self) -> int:
        """The first offset behind the snapshot; of an empty log, the end of the snapshot."""
        if self.snapshot.num_rows:
            return int(self.snapshot["metadata_offset"][0].as_py()) + 1
        return int(self.rows["metadata_offset"][0].as_py()) if self.rows.num_rows else 0

    def before(self, offset: int) -> "_Span":
        """Return the part of it that is below an offset."""
        rows = self.rows.filter(pc.less(self.rows["metadata_offset"], offset))
        return _Span(snapshot=self.snapshot, rows=rows)

    def leads_to(self, later: "_Span") -> bool:
        """Return whether what is before the later one is before one of the records here, too."""
        end = later.first_offset
        rows = self.rows.filter(pc.greater_equal(self.rows["metadata_offset"], end - 1))
        place = ["metadata_offset", "controller_epoch"]
        here, there = rows.select([*place, "digest"]), later.rows.select([*place, "digest"])
        both = here.join(there, place, join_type="inner", right_suffix="_there")
        if both.num_rows:
            return bool(pc.any(pc.equal(both["digest"], both["digest_there"])).as_py())
        last = later.snapshot.select(place)
        return bool(here.join(last, place, join_type="left semi").num_rows)


def _copies(metadata_log: pa.Table) -> Mapping[str, _Copy]:
    nodes = pc.unique(metadata_log["node"]).to_pylist()
    return {
        node: _copy(metadata_log.filter(pc.equal(metadata_log["node"], node)))
        for node in sorted(nodes)
    }


def _copy(rows: pa.Table) -> _Copy:
    logged = rows.filter(pc.invert(rows["snapshot"]))
    spans = tuple(_spans(rows))
    last = spans[-1].snapshot
    return _Copy(
        rows=rows,
        offset=logged["metadata_offset"].to_numpy(),
        epoch=logged["controller_epoch"].to_numpy(),
        digest=logged["digest"].to_numpy(),
        snapshot_end=last["metadata_offset"][0].as_py() + 1 if last.num_rows else 0,
        spans=spans,
    )


def _spans(rows: pa.Table) -> Iterator[_Span]:
    snapshot = rows["snapshot"].to_numpy()
    offset = rows["metadata_offset"].to_numpy()
    anew = snapshot[1:] & (~snapshot[:-1] | (offset[1:] != offset[:-1]))
    bounds = [0, *(np.flatnonzero(anew) + 1).tolist(), rows.num_rows]
    for start, end in pairwise(bounds):
        count = int(np.count_nonzero(snapshot[start:end]))
        yield _Span(
            snapshot=rows.slice(start, count),
            rows=rows.slice(start + count, end - start - count),
        )


def _decided_end(chosen: _Copy, voters: Sequence[_Copy], *, majority: int) -> int:
    """Return the first offset of a record that fewer voters than a majority hold."""
    holders = np.sum([copy.has(chosen) for copy in voters], axis=0)
    held = np.append(holders >= majority, False)
    count = int(np.argmin(held))
    return int(chosen.offset[count - 1]) + 1 if count else chosen.spans[-1].first_offset


def _extended(chosen: _Copy, copies: Sequence[_Copy]) -> pa.Table:
    """Return the rows of its last span, with those in front that other spans have."""
    known = [span for copy in (chosen, *copies) for span in copy.spans]
    first = chosen.spans[-1]
    found = [first.rows]
    while older := [one for one in known if one.first_offset < first.first_offset]:
        # The longest one is the first to be asked: mostly it has all of it.
        older.sort(key=lambda span: span.first_offset)
        leading = next((one for one in older if one.leads_to(first)), None)
        if leading is None:
            break
        found.append(leading.before(first.first_offset).rows)
        first = leading
    return pa.concat_tables([first.snapshot, *reversed(found)])


def _without_aborted(records: Sequence[MetadataRecord]) -> tuple[MetadataRecord, ...]:
    kept: list[MetadataRecord] = []
    begun: int | None = None
    for record in records:
        if record.type == "BeginTransactionRecord":
            begun = len(kept)
        elif record.type == "AbortTransactionRecord" and begun is not None:
            del kept[begun:]
        if record.type in ("EndTransactionRecord", "AbortTransactionRecord"):
            begun = None
        kept.append(record)
    return tuple(kept if begun is None else kept[:begun])
