"""The copies of the metadata log, node by node: what each has, and how they lie to each other.

A copy has spans, each of which begins with a snapshot or with the log itself
(`checkers.metadata.log_of_record`). Records are known here by number, offset, epoch and digest.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.sources import Source

_KEYS: Final = ("node", "snapshot", "metadata_offset", "controller_epoch", "digest")


def keys_of(source: Source) -> pa.Table:
    """Return of all rows what decides which are of the log: a night has a million and more."""
    batches = (
        batch.set_column(0, "node", batch.column("node").dictionary_encode())
        for batch in source(_KEYS)
    )
    return pa.Table.from_batches(batches).unify_dictionaries()


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
class Copy:
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

    def has(self, other: "Copy") -> NDArray[np.bool_]:
        """Return a mask of the other copy's records that this copy has, too."""
        if not len(self.rows):
            return np.zeros(len(other.rows), dtype=np.bool_)
        return self.rows.meets(other.rows)[1] | (other.rows.offset < self.snapshot_end)


def copies_of(rows: pa.Table) -> Mapping[str, Copy]:
    """Return the copy of each node, out of `keys_of` their logs."""
    node = rows["node"].combine_chunks()
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


def _copy(rows: _Rows, snapshot: NDArray[np.bool_]) -> Copy:
    spans = tuple(_spans(rows, snapshot))
    last = spans[-1].snapshot
    return Copy(
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


def decided_end(chosen: Copy, voters: Sequence[Copy], *, majority: int) -> int:
    """Return the first offset of a record that fewer voters than a majority hold."""
    holders = np.sum([copy.has(chosen) for copy in voters], axis=0)
    held = np.append(holders >= majority, False)
    count = int(np.argmin(held))
    return int(chosen.rows.offset[count - 1]) + 1 if count else chosen.spans[-1].first_offset


def extended(chosen: Copy, copies: Sequence[Copy]) -> Sequence[NDArray[np.int64]]:
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
