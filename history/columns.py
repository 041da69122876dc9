"""Columns of a table from arrays of numbers: stand-ins become nulls, codes become words."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from history.errors import name_of
from history.operation import F, Outcome
from history.schema import OPERATIONS, RECORDS
from history.segment_format import NO_KEY, OPEN_NS, UNKNOWN_OFFSET

__all__ = ["operation_table", "record_table"]

_F_WORDS: Final = [str(f) for f in F]
_OUTCOME_WORDS: Final = [str(outcome) for outcome in Outcome]


def operation_table(
    operations: NDArray[np.void], *, first_index: int, keys: Sequence[str]
) -> pa.Table:
    """Return pieces of `merge.OPERATION`, numbered from `first_index`, as rows of OPERATIONS."""
    index = np.arange(first_index, first_index + len(operations))
    return _table(
        OPERATIONS,
        index=pa.array(index),
        process=_numbers(operations["process"]),
        f=_words(operations["f"], _F_WORDS),
        key=_words(operations["key"], keys, null=NO_KEY),
        call_ns=_numbers(operations["call_ns"]),
        return_ns=_numbers(operations["return_ns"], null=OPEN_NS),
        outcome=_words(operations["outcome"], _OUTCOME_WORDS),
        error=_errors(operations),
        record_count=_numbers(operations["record_count"].astype(np.int32)),
    )


def record_table(records: NDArray[np.void], *, key: str) -> pa.Table:
    """Return a piece of `records.RECORD`, all of one key, as rows of RECORDS."""
    return _table(
        RECORDS,
        key=_words(np.zeros(len(records), np.int32), [key]),
        offset=_numbers(records["offset"], null=UNKNOWN_OFFSET),
        value=_numbers(records["value"]),
        operation=_numbers(records["operation"]),
        position=_numbers(records["position"]),
        process=_numbers(records["process"]),
        f=_words(records["f"], _F_WORDS),
        outcome=_words(records["outcome"], _OUTCOME_WORDS),
        call_ns=_numbers(records["call_ns"]),
        return_ns=_numbers(records["return_ns"], null=OPEN_NS),
        session=_numbers(records["session"]),
    )


def _table(schema: pa.Schema, **columns: pa.Array) -> pa.Table:
    assert list(columns) == schema.names, f"{list(columns)} is not {schema.names}"
    fields = [field.with_type(columns[field.name].type) for field in schema]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))


def _numbers(values: NDArray[Any], *, null: int | None = None) -> pa.Array:
    contiguous = np.ascontiguousarray(values)
    return pa.array(contiguous, mask=None if null is None else contiguous == null)


def _words(codes: NDArray[Any], words: Sequence[str], *, null: int | None = None) -> pa.Array:
    indices = _numbers(codes.astype(np.int32), null=null)
    return pa.DictionaryArray.from_arrays(indices, pa.array(words, pa.string()))


def _errors(operations: NDArray[np.void]) -> pa.Array:
    """Return the errors' names of what did not end well; null for the rest, or if none is known."""
    codes = np.where(operations["outcome"] == Outcome.OK.code, 0, operations["error"])
    known, indices = np.unique(codes, return_inverse=True)
    words = [name_of(code) for code in known.tolist()]
    none = np.searchsorted(known, 0) if 0 in known else NO_KEY
    return _words(indices, words, null=int(none))
