"""Comparison of what one table of a run repeats of another.

A record repeats what a check of its key needs of its operation. Both are in files of their own, and
no task has both: so each file is summed up to one number, which a row enters with all that is
repeated, and which does not depend on the order or the files of the rows. If what one row repeats
differs, or two rows have exchanged it, the sums of both tables differ.

A copy of the metadata log repeats what the others have: equal digests are of equal records, so that
what was decoded of them is equal as well.
"""

import zlib
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.sources import Source
from fencepost.history.operation import F

_REPEATED: Final = (
    *("operation", "position", "process", "f", "outcome", "call_ns", "return_ns", "key"),
)
"""The columns of records that tell of their operation."""

_COPY: Final = ("metadata_offset", "controller_epoch", "digest")
_CONTENT: Final = (
    *("timestamp_ms", "type", "type_key", "version", "control", "topic_id", "partition"),
    *("replicas", "isr", "adding", "removing", "elr", "last_known_elr", "leader", "leader_epoch"),
    *("partition_epoch", "leader_recovery_state", "broker_id", "broker_epoch", "incarnation_id"),
    *("fenced", "in_controlled_shutdown", "name", "value"),
)
_COPIED: Final = ("node", "snapshot", *_COPY, *_CONTENT)
"""The columns of metadata logs that are compared."""

_Numbers = NDArray[np.uint64]
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_MIXES: Final = tuple(
    (np.uint64(shift), np.uint64(factor))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))
)
_NULL: Final = 0x5BD1E995


def repeated_of(operations: pa.Table) -> int:
    """Return the sum of what the records of some OPERATIONS have to repeat."""
    count = operations["record_count"].to_numpy().astype(np.uint64)
    index = _numbers(operations["index"])
    rows = _rows(operations, index)
    # Positions are 0, 1, 2, …, so that their sum is known.
    placed = _mixed(index) * (count * (count - np.uint64(1)) // np.uint64(2))
    return _total(np.where(count > 0, rows * count + placed, 0))


def repeated_by(records: Source) -> int:
    """Return the sum of what RECORDS repeat."""
    total = 0
    for batch in records(_REPEATED):
        rows = pa.Table.from_batches([batch])
        operation = _numbers(rows["operation"])
        position = rows["position"].to_numpy().astype(np.uint64)
        total += _total(_rows(rows, operation) + _mixed(operation) * position)
    return signed(total)


def _rows(rows: pa.Table, index: _Numbers) -> _Numbers:
    of_one_key = pc.not_equal(_words(rows["f"]), F.POLL.value)
    key = pc.if_else(of_one_key, _words(rows["key"]), pa.scalar(None, pa.string()))
    return_ns = pc.fill_null(rows["return_ns"], OPEN_NS)
    columns = (rows["process"], rows["f"], rows["outcome"], rows["call_ns"], return_ns, key)
    return _joined(index, *map(_numbers, columns))


def other_copy(metadata_log: Source) -> str:
    """Return where nodes have one record with one digest and another content; empty if nowhere.

    The rows of one transaction of ZooKeeper's share digest and offset, and have one order.
    """
    node, place, content = (np.concatenate(parts) for parts in _copies(metadata_log))
    order = np.lexsort((np.arange(len(node)), node, place))
    node, place, content = node[order], place[order], content[order]
    begins = np.flatnonzero(np.diff(place, prepend=~place[:1]) | np.diff(node, prepend=~node[:1]))
    # One number a copy of what stands in a place, which depends on the order of its rows.
    number = np.arange(len(node)) - np.repeat(begins, np.diff(np.append(begins, len(node))))
    mixed = _mixed(content + _mixed(number.astype(np.uint64)))
    copies = np.add.reduceat(mixed, begins) if len(begins) else mixed
    of_place = place[begins]
    unlike = np.flatnonzero((of_place[1:] == of_place[:-1]) & (copies[1:] != copies[:-1]))
    if not len(unlike):
        return ""
    wanted = of_place[unlike[0]]
    for batch in metadata_log(_COPIED):
        rows = _own(batch)
        for at in np.flatnonzero(_places(rows) == wanted)[:1].tolist():
            offset = rows["metadata_offset"][at].as_py()
            return f"nodes have the record at offset {offset} with one digest and other contents"
    return ""


def _copies(metadata_log: Source) -> tuple[list[_Numbers], list[_Numbers], list[_Numbers]]:
    empty = np.zeros(0, dtype=np.uint64)
    found: tuple[list[_Numbers], list[_Numbers], list[_Numbers]] = ([empty], [empty], [empty])
    for batch in metadata_log(_COPIED):
        rows = _own(batch)
        columns = (_numbers(rows[name]) for name in _CONTENT)
        parts = (_numbers(rows["node"]), _places(rows), _joined(_places(rows), *columns))
        for several, part in zip(found, parts, strict=True):
            several.append(part)
    return found


def _own(batch: pa.RecordBatch) -> pa.Table:
    """Return the records of a node's own log: a snapshot may have been made of several."""
    return pa.Table.from_batches([batch.filter(pc.invert(batch.column("snapshot")))])


def _places(rows: pa.Table) -> _Numbers:
    return numbers_of(rows, _COPY)


def numbers_of(rows: pa.Table, columns: Sequence[str]) -> NDArray[np.uint64]:
    """Return a number for each row, the same for those that are equal in these columns."""
    return _joined(*(_numbers(rows[name]) for name in columns))


def _words(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of words as such: a file may be read with numbers for them."""
    return column.cast(pa.string())


def _numbers(column: pa.ChunkedArray) -> _Numbers:
    """Return a number for each value, the same for equal ones."""
    values = column.combine_chunks()
    if pa.types.is_dictionary(values.type):
        values = values.cast(pa.string())
    if pa.types.is_list(values.type):
        return _of_lists(values)
    if pa.types.is_string(values.type):
        coded = values.dictionary_encode()
        words = [zlib.crc32(word.encode()) for word in coded.dictionary.to_pylist()]
        known: _Numbers = np.array([*words, _NULL], dtype=np.uint64)
        found: _Numbers = known[coded.indices.fill_null(len(words)).to_numpy(zero_copy_only=False)]
        return found
    numbers: NDArray[np.int64] = pc.fill_null(values.cast(pa.int64()), _NULL).to_numpy(False)
    return numbers.astype(np.int64).view(np.uint64)


def _of_lists(values: pa.ListArray) -> _Numbers:
    lengths = pc.fill_null(pc.list_value_length(values), -1).to_numpy(zero_copy_only=False)
    found = _mixed(lengths.astype(np.int64).view(np.uint64))
    flat = pc.list_flatten(values).to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)
    of = pc.list_parent_indices(values).to_numpy(zero_copy_only=False)
    first = np.searchsorted(of, of)
    place = np.arange(len(of)) - first
    np.add.at(found, of, _mixed(flat + _mixed(place.astype(np.uint64))))
    return found


def _joined(*columns: _Numbers) -> _Numbers:
    found = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        found = _mixed(found ^ column)
    return found


def _mixed(numbers: _Numbers) -> _Numbers:
    """Return a number for each that looks as if it were drawn (splitmix64)."""
    found = numbers + _STEP
    for shift, factor in _MIXES:
        found = (found ^ (found >> shift)) * factor
    return found


def _total(numbers: _Numbers) -> int:
    return signed(int(numbers.sum(dtype=np.uint64)))


def signed(number: int) -> int:
    """Return a sum modulo 2**64, as a table holds it."""
    return (number + 2**63) % 2**64 - 2**63
