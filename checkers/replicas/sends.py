"""The acknowledged sends of each key: what of `records` the checks of replicas are about.

A night has millions of a key, so they are asked for in stretches of offsets, the highest ones
first: a rule that joins two of them keeps of each stretch what it has to know further down.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.facts import Tables
from fencepost.checkers.metadata.remembered import remembered
from fencepost.checkers.rows import OPEN_NS, taken
from fencepost.checkers.sources import Source, streamed

SENDS_AT_ONCE: Final = 1 << 18
"""The sends of a stretch, about: 10 MB, and as much again for each array made of them."""
_SENDS: Final = ("offset", "value", "operation", "call_ns", "return_ns")


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgedSends:
    """Acknowledged sends of a key, as parallel arrays, by offset."""

    offset: NDArray[np.int64]
    value: NDArray[np.int64]
    operation: NDArray[np.int64]
    call_ns: NDArray[np.int64]
    return_ns: NDArray[np.int64]

    def take(self, places: NDArray[np.integer] | NDArray[np.bool_]) -> "AcknowledgedSends":
        """Return these, by place or by mask."""
        return taken(self, places)

    def __len__(self) -> int:
        return len(self.offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySends:
    """The acknowledged sends of a key: the ok ones whose offsets are known."""

    key: str
    first_called_ns: int
    """The first call of any operation on the key."""
    first_returned_ns: int
    """When the first of the sends was acknowledged; OPEN_NS if there are none."""
    count: int
    end_offset: int
    """An offset above all of them."""
    whole: AcknowledgedSends | None
    """All of them, if they are one stretch."""

    def stretches(self, tables: Tables) -> Iterator[AcknowledgedSends]:
        """Yield them, out of the tables that they come from, the stretch of highest offsets first.

        No offset is in two of them.
        """
        if self.whole is not None:
            yield self.whole
            return
        length = -(-self.end_offset * SENDS_AT_ONCE // self.count)
        for first in reversed(range(0, self.end_offset, length)):
            source = streamed(tables, "records", offsets=(first, first + length))
            parts = _Parts()
            for batch in source((*_SENDS, "key", "f", "outcome")):
                mine = batch.filter(pc.equal(batch.column("key"), self.key))
                parts.add(mine.filter(_is_acknowledged(mine)))
            yield parts.by_offset()


def acknowledged(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the acknowledged sends of rows of RECORDS, and of each key the row first called."""
    wanted = _is_acknowledged(rows).to_numpy(zero_copy_only=False).copy()
    call_ns = rows.column("call_ns").to_numpy()
    for key in pc.unique(rows.column("key")).to_pylist():
        mine = np.flatnonzero(pc.equal(rows.column("key"), key).to_numpy(zero_copy_only=False))
        wanted[mine[np.argmin(call_ns[mine])]] = True
    return rows.filter(pa.array(wanted))


def sends_by_key(tables: Tables) -> Mapping[str, KeySends]:
    """Return the acknowledged sends out of `records`, by key, sorted."""
    return _sends_by_key(streamed(tables, "records"))


@remembered
def _sends_by_key(records: Source) -> Mapping[str, KeySends]:
    found: dict[str, _Seen] = {}
    for batch in records((*_SENDS, "key", "f", "outcome")):
        for key in pc.unique(batch.column("key")).to_pylist():
            seen = found.setdefault(key, _Seen())
            seen.add(batch.filter(pc.equal(batch.column("key"), key)))
    return {key: found.pop(key).sends(key) for key in sorted(found)}


class _Seen:
    """The sends of a key as they are read: kept as long as they are one stretch."""

    def __init__(self) -> None:
        self._first_called_ns = self._first_returned_ns = OPEN_NS
        self._end_offset = 0
        self._parts: _Parts | None = _Parts()
        self._count = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Take rows of the key."""
        self._first_called_ns = min(self._first_called_ns, pc.min(rows.column("call_ns")).as_py())
        sends = rows.filter(_is_acknowledged(rows))
        if not len(sends):
            return
        first_ns = pc.min(sends.column("return_ns")).as_py()
        self._first_returned_ns = min(self._first_returned_ns, first_ns)
        self._end_offset = max(self._end_offset, pc.max(sends.column("offset")).as_py() + 1)
        self._count += len(sends)
        if self._count > SENDS_AT_ONCE:
            self._parts = None
        elif self._parts is not None:
            self._parts.add(sends)

    def sends(self, key: str) -> KeySends:
        """Return what was seen."""
        return KeySends(
            key=key,
            first_called_ns=self._first_called_ns,
            first_returned_ns=self._first_returned_ns,
            count=self._count,
            end_offset=self._end_offset,
            whole=None if self._parts is None else self._parts.by_offset(),
        )


class _Parts:
    """The columns of sends, in the order in which they are read."""

    def __init__(self) -> None:
        self._columns: dict[str, list[NDArray[np.int64]]] = {name: [] for name in _SENDS}

    def add(self, sends: pa.RecordBatch) -> None:
        """Take rows of acknowledged sends."""
        for name, parts in self._columns.items():
            numbers = sends.column(name).to_numpy(zero_copy_only=False)
            parts.append(numbers.astype(np.int64, copy=False))

    def by_offset(self) -> AcknowledgedSends:
        """Return them as one; each column's parts go as the column is made."""
        order = np.argsort(_joined(self._columns["offset"]), kind="stable")
        return AcknowledgedSends(
            **{name: _joined(self._columns.pop(name))[order] for name in _SENDS}
        )


def _joined(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.array([], dtype=np.int64), *parts])


def _is_acknowledged(rows: pa.RecordBatch) -> pa.Array:
    return pc.and_(
        pc.equal(rows.column("f"), "send"),
        pc.and_(pc.equal(rows.column("outcome"), "ok"), pc.is_valid(rows.column("offset"))),
    )
