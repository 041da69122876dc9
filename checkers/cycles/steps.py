"""The rows of `history.schema.MICRO_OPERATIONS` of whole keys, as numpy arrays.

Keys are many and short, so nothing here or in the kernels loops over them: the rows of all keys of
a row group are worked on at once.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.rows import OK, OPEN_NS, codes
from fencepost.history.operation import Outcome

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

COLUMNS: Final = (
    *("key", "transaction", "position", "process", "f"),
    *("call_ns", "return_ns", "outcome", "value", "values"),
)
"""The columns of MICRO_OPERATIONS that the checks read."""

NONE: Final = int(np.iinfo(np.int64).min)
"""No element: the list was empty, or the step appended none."""

_FS: Final = ("append", "read")
_OUTCOMES: Final = (Outcome.OK, Outcome.FAIL, Outcome.INFO)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSteps:
    """Steps of transactions, parallel arrays, by key, transaction and position."""

    names: list[str]
    """The names of the keys."""
    key: Ints
    """Its place in `names`; ascending."""
    transaction: Ints
    position: Ints
    process: Ints
    call_ns: Ints
    return_ns: Ints
    """`checkers.rows.OPEN_NS` if the end was never seen."""
    outcome: NDArray[np.int8]
    """The outcome of the transaction: OK, FAIL or INFO of `checkers.rows`."""
    appends: Mask
    value: Ints
    """Appended."""
    known: Mask
    """Reads of ok transactions whose list is known: only they are evidence."""
    start: Ints
    """The start in `elements` of the list that was read."""
    end: Ints
    """The end in `elements` of the list that was read."""
    elements: Ints

    def __len__(self) -> int:
        return len(self.key)

    @property
    def length(self) -> Ints:
        """The number of elements that were read."""
        return self.end - self.start

    def list_of(self, row: int) -> Ints:
        """Return the list that was read."""
        return self.elements[self.start[row] : self.end[row]]


def steps_of(table: pa.Table) -> TransactionSteps:
    """Return the steps of a table with `COLUMNS`, of whole keys whose rows follow each other.

    Raises ValueError for words that the schema does not know, an append without its value, or a
    key that comes in two pieces.
    """
    table = _in_order(table.select(list(COLUMNS)).combine_chunks())
    encoded = _encoded(table["key"])
    appends = codes(table["f"], _FS) == 0
    outcome = codes(table["outcome"], tuple(_OUTCOMES))
    if pc.any(pc.and_(pc.is_null(table["value"]), pa.array(appends))).as_py():
        raise ValueError("an append without the value that it appended")
    lists = _one(table["values"])
    offsets = lists.offsets.to_numpy()
    listed = pc.is_valid(lists).to_numpy(zero_copy_only=False)
    return TransactionSteps(
        names=encoded.dictionary.to_pylist(),
        key=encoded.indices.to_numpy().astype(np.int64),
        transaction=table["transaction"].to_numpy(),
        position=table["position"].to_numpy().astype(np.int64),
        process=table["process"].to_numpy(),
        call_ns=table["call_ns"].to_numpy(),
        return_ns=pc.fill_null(table["return_ns"], OPEN_NS).to_numpy(),
        outcome=outcome,
        appends=appends,
        value=pc.fill_null(table["value"], NONE).to_numpy(),
        known=~appends & listed & (outcome == OK),
        start=offsets[:-1].astype(np.int64),
        end=offsets[1:].astype(np.int64),
        elements=pc.fill_null(lists.values, NONE).to_numpy(),
    )


def _in_order(table: pa.Table) -> pa.Table:
    """Return the rows by key, then transaction and position: the order of sealed files."""
    key = _encoded(table["key"]).indices.to_numpy().astype(np.int64)
    if len(np.flatnonzero(np.diff(key))) + 1 > len(np.unique(key)) > 0:
        raise ValueError("the rows of a key do not follow each other")
    transaction, position = (table[name].to_numpy() for name in ("transaction", "position"))
    later = (np.diff(key) != 0) | (np.diff(transaction) > 0)
    if np.all(later | ((np.diff(transaction) == 0) & (np.diff(position) > 0))):
        return table
    place = np.cumsum(np.diff(key, prepend=key[:1]) != 0)
    return table.take(pa.array(np.lexsort((position, transaction, place)))).combine_chunks()


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return codes that ascend with the rows, so that a key's code is its place in the table."""
    keys = _one(column)
    if pa.types.is_dictionary(keys.type):
        steps = np.diff(keys.indices.to_numpy(), prepend=-1)
        if np.all((steps == 0) | (steps == 1)) and steps.sum() == len(keys.dictionary):
            return keys
        keys = keys.cast(pa.string())
    return keys.dictionary_encode()


def _one(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
