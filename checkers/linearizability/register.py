"""The check that operations on a register are linearizable: zones for unique values, else a search.

Where each value is written once and no client swaps, a value with its write and its reads is a
*cluster*. Let `first` be the earliest return in it and `last` the latest call. No read returned
before its write was called. Then:

- where `first` < `last`, the value was there from `first` to `last`: a client had seen or written
  it by `first`, and a client found it at `last` or later (a *forward zone*);
- else all of the cluster can be at one moment, any from `last` to `first` (a *backward zone*).

The operations are linearizable exactly if no two forward zones overlap and no backward zone lies
inside a forward one; zones that only touch at one moment do neither, as intervals are closed.
*Necessary*: two values cannot be there at once, and a value that is written cannot come back.
*Enough*: put the write of each forward zone at its `first` and its reads from there on; a backward
zone can be put, whole, at some moment that is inside no forward zone.

The unwritten value (null) has a write before everything. A write that crashed must have happened if
its value was read, and has no return of its own, so that the reads alone set `first`; one whose
value was not read owes nothing. One sort, O(n log n).

Where a value is written twice, null is written or a client swaps, a search decides
(`checkers.linearizability.searched`); the problem is NP-complete then.

Source: Gibbons and Korach 1997, "Testing shared memories", 4.1.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.anomaly import Found, found
from fencepost.checkers.linearizability.budget import Budget
from fencepost.checkers.linearizability.operations import (
    FS,
    Columns,
    Effect,
    Operation,
    answer_count,
    columns_of,
    operations_of,
)
from fencepost.checkers.linearizability.searched import CHECK, searched
from fencepost.checkers.linearizability.words import cited, shown
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import OPEN_NS
from fencepost.history.models import Model

_MODEL: Final = Model.REGISTER
_READ, _WRITE = (FS[_MODEL].index(word) for word in ("read", "write"))
_BEFORE: Final = -OPEN_NS
"""The moment at which the unwritten value (null) counts as written."""
_NONE: Final = -1

Places = NDArray[np.int64]


def register(key: str, rows: pa.Table, budget: Budget) -> Found:
    """Find what is wrong with the operations of one register: `KeyKernel`."""
    columns = columns_of(rows, _MODEL)
    unwritten = _unwritten_reads(columns)
    if len(unwritten):
        return found(
            CHECK,
            key,
            cases=answer_count(columns, _MODEL),
            never=unwritten,
            proof=lambda place: _of_unwritten(columns, place),
        )
    if not _has_unique_values(columns):
        return searched(key, columns, model=_MODEL, budget=budget)
    return _by_zones(key, columns)


def _unwritten_reads(columns: Columns) -> Places:
    """Find reads of a value that no operation can have written, by place."""
    changes = (columns.f != _READ) & (columns.effect != Effect.REFUSED) & columns.has_value
    reads = np.flatnonzero((columns.f == _READ) & columns.has_value)
    return reads[~np.isin(columns.value[reads], columns.value[changes])]


def _of_unwritten(columns: Columns, place: int) -> Proof:
    (read,) = _operations(columns, place)
    return Proof.of(
        "{read} returned {value}, which no operation can have written",
        values={"value": read.value},
        read=cited(read, _MODEL),
    )


def _has_unique_values(columns: Columns) -> bool:
    """Return whether each value is written once, by a plain write, and none of them is null."""
    changes = columns.f != _READ
    if np.any(columns.f[changes] != _WRITE) or not np.all(columns.has_value[changes]):
        return False
    written = np.sort(columns.value[changes])
    return not np.any(written[1:] == written[:-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Zones:
    """The clusters as parallel arrays; operations by place, `_NONE` without an operation.

    Cluster 0 is that of the unwritten value (null).
    """

    write: Places
    first: NDArray[np.int64]
    first_by: Places
    last: NDArray[np.int64]
    last_by: Places
    early_reads: Places
    """Reads that returned before their write was called; they are in no cluster."""
    early_writes: Places


def _by_zones(key: str, columns: Columns) -> Found:
    zones = _zones(columns)
    pairs = np.concatenate([_overlaps(zones), _enclosed(zones)])
    early_count = len(zones.early_reads)

    def proof(number: int) -> Proof:
        if number < early_count:
            return _of_early(columns, zones, number)
        holding, other = pairs[number - early_count]
        return _of_pair(columns, zones, int(holding), int(other))

    never = np.arange(early_count + len(pairs))
    return found(CHECK, key, cases=answer_count(columns, _MODEL), never=never, proof=proof)


def _zones(columns: Columns) -> _Zones:
    writes = np.flatnonzero(columns.f == _WRITE)
    writes = writes[np.argsort(columns.value[writes], kind="stable")]
    write = np.append(_NONE, writes)
    reads = np.flatnonzero(columns.f == _READ)
    cluster = np.searchsorted(columns.value[writes], columns.value[reads]) + 1
    cluster[~columns.has_value[reads]] = 0
    is_early = columns.end[reads] < np.append(_BEFORE, columns.call[writes])[cluster]
    early_writes = write[cluster[is_early]]
    kept, cluster_of_kept = reads[~is_early], cluster[~is_early]
    first = np.append(_BEFORE, columns.end[writes])
    last = np.append(_BEFORE, columns.call[writes])
    np.minimum.at(first, cluster_of_kept, columns.end[kept])
    np.maximum.at(last, cluster_of_kept, columns.call[kept])
    first_by, last_by = write.copy(), write.copy()
    is_first = columns.end[kept] == first[cluster_of_kept]
    is_last = columns.call[kept] == last[cluster_of_kept]
    first_by[cluster_of_kept[is_first]] = kept[is_first]
    last_by[cluster_of_kept[is_last]] = kept[is_last]
    return _Zones(
        write=write,
        first=first,
        first_by=first_by,
        last=last,
        last_by=last_by,
        early_reads=reads[is_early],
        early_writes=early_writes,
    )


def _forward(zones: _Zones) -> Places:
    """Return forward zones, by `first`."""
    forward = np.flatnonzero(zones.first < zones.last)
    return forward[np.argsort(zones.first[forward], kind="stable")]


def _overlaps(zones: _Zones) -> NDArray[np.int64]:
    """Find pairs of neighbouring forward zones that overlap: if any two do, two neighbours do."""
    forward = _forward(zones)
    before, after = forward[:-1], forward[1:]
    overlap = zones.first[after] < zones.last[before]
    return np.stack([before[overlap], after[overlap]], axis=1)


def _enclosed(zones: _Zones) -> NDArray[np.int64]:
    """Find pairs of a forward zone and a backward one inside it."""
    forward = _forward(zones)
    backward = np.flatnonzero(zones.first >= zones.last)
    if not len(forward):
        return np.empty((0, 2), dtype=np.int64)
    # Of the forward zones that began before a backward one, the one that lasted longest.
    ends = zones.last[forward]
    reach = np.maximum.accumulate(ends)
    longest = np.maximum.accumulate(np.where(ends == reach, np.arange(len(ends)), 0))
    begun = np.searchsorted(zones.first[forward], zones.last[backward], side="left") - 1
    inside = (begun >= 0) & (zones.first[backward] < reach[begun])
    return np.stack([forward[longest[begun[inside]]], backward[inside]], axis=1)


def _of_early(columns: Columns, zones: _Zones, number: int) -> Proof:
    read, write = _operations(
        columns, int(zones.early_reads[number]), int(zones.early_writes[number])
    )
    return Proof.of(
        "{read} returned at {end} s, before {write} was called at {call} s: "
        "{value} was read before it was written",
        operations=tuple(sorted((read.index, write.index))),
        values={"value": read.value},
        read=cited(read, _MODEL, end=read.end),
        write=cited(write, _MODEL, call=write.call),
    )


def _of_pair(columns: Columns, zones: _Zones, holding: int, other: int) -> Proof:
    """Return the proof: two values of which neither leaves room for the other."""
    held = _value(columns, zones, holding)
    moved = _value(columns, zones, other)
    places = [
        int(place)
        for cluster in (holding, other)
        for place in (zones.write[cluster], zones.first_by[cluster], zones.last_by[cluster])
        if place != _NONE
    ]
    return Proof.of(
        "{held} was there {span}, and {other} {other_span}: each was written once, "
        "and what was replaced cannot come back",
        operations=tuple(sorted(set(columns.index[places].tolist()))),
        held=shown("held_value", held),
        other=shown("other_value", moved),
        span=_span(columns, zones, holding),
        other_span=_span(columns, zones, other),
    )


def _span(columns: Columns, zones: _Zones, cluster: int) -> Proof:
    """Return the clause that says when the value of a cluster was present."""
    first, last = int(zones.first[cluster]), int(zones.last[cluster])
    (until,) = _operations(columns, int(zones.last_by[cluster]))
    called = "{last} s ({until} was called)"
    if first == _BEFORE:
        return Proof.of(f"from the beginning to {called}", until=cited(until, _MODEL, last=last))
    (since,) = _operations(columns, int(zones.first_by[cluster]))
    returned = "{first} s ({since} had returned)"
    return Proof.of(
        f"from {returned} to {called}"
        if first < last
        else f"at some moment from {called} to {returned}",
        until=cited(until, _MODEL, last=last),
        since=cited(since, _MODEL, first=first),
    )


def _value(columns: Columns, zones: _Zones, cluster: int) -> int | None:
    return None if cluster == 0 else int(columns.value[zones.write[cluster]])


def _operations(columns: Columns, *places: int) -> list[Operation]:
    return operations_of(columns.take(np.array(places, dtype=np.int64)), _MODEL)
