"""The way from a drafted history to the tables of `history.schema`."""

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from generators.draft import NEVER_NS, OK, Draft
from history.schema import OPERATIONS, RECORDS, F, Outcome

__all__ = ["operations_and_records"]

_FS: Final = tuple(F)
_OUTCOMES: Final = (Outcome.OK, Outcome.FAIL, Outcome.INFO)


def operations_and_records(draft: Draft) -> tuple[pa.Table, pa.Table]:
    """Return both tables; operations are numbered by their calls (ties: process, its order)."""
    sends, readings = draft.sends, draft.readings
    send_order = np.arange(len(sends))
    order = np.lexsort(
        (
            np.concatenate([send_order, readings["order"]]),
            np.concatenate([sends["process"], readings["process"]]),
            np.concatenate([sends["call_ns"], readings["call_ns"]]),
        )
    )
    index = np.empty(len(order), np.int64)
    index[order] = np.arange(len(order))
    f = np.where(readings["key"] < 0, _FS.index(F.POLL), _FS.index(F.FINAL_READ))
    columns = {
        "process": np.concatenate([sends["process"], readings["process"]]),
        "f": np.concatenate([np.full(len(sends), _FS.index(F.SEND)), f]),
        "key": np.concatenate([sends["key"], readings["key"]]),
        "call_ns": np.concatenate([sends["call_ns"], readings["call_ns"]]),
        "return_ns": np.concatenate([sends["return_ns"], readings["return_ns"]]),
        "outcome": np.concatenate([sends["outcome"], readings["outcome"]]),
        "record_count": np.concatenate(
            [
                np.ones(len(sends), np.int64),
                np.bincount(draft.reads["reading"], minlength=len(readings)),
            ]
        ),
    }
    operations = _operations(draft, {name: column[order] for name, column in columns.items()})
    return operations, _records(draft, index, columns)


def _operations(draft: Draft, columns: dict[str, NDArray[np.int64]]) -> pa.Table:
    failed = columns["outcome"] != OK
    arrays = {
        "index": pa.array(np.arange(len(failed))),
        "process": pa.array(columns["process"]),
        "f": _words(columns["f"], _FS),
        "key": _words(columns["key"], draft.recipe.key_names),
        "call_ns": pa.array(columns["call_ns"]),
        "return_ns": _or_null(columns["return_ns"], NEVER_NS),
        "outcome": _words(columns["outcome"], _OUTCOMES),
        "error": _words(np.where(failed, 0, -1), ("REQUEST_TIMED_OUT",)),
        "record_count": pa.array(columns["record_count"].astype(np.int32)),
    }
    return pa.table(arrays, schema=OPERATIONS)


def _records(
    draft: Draft, index: NDArray[np.int64], columns: dict[str, NDArray[np.int64]]
) -> pa.Table:
    sends, reads = draft.sends, draft.reads
    by_reading = np.argsort(reads["reading"], kind="stable")
    reads = reads[by_reading]
    position = np.arange(len(reads)) - np.searchsorted(reads["reading"], reads["reading"])
    row = np.concatenate([np.arange(len(sends)), len(sends) + reads["reading"]])
    key = np.concatenate([sends["key"], reads["key"]])
    offset = np.concatenate([sends["offset"], reads["offset"]])
    value = np.concatenate([sends["value"], reads["value"]])
    place = np.concatenate([np.zeros(len(sends), np.int64), position])
    order = np.lexsort((place, index[row], key))
    row = row[order]
    arrays = {
        "key": _words(key[order], draft.recipe.key_names),
        "offset": _or_null(offset[order], -1),
        "value": pa.array(value[order]),
        "operation": pa.array(index[row]),
        "position": pa.array(place[order].astype(np.int32)),
        "process": pa.array(columns["process"][row]),
        "f": _words(columns["f"][row], _FS),
        "outcome": _words(columns["outcome"][row], _OUTCOMES),
        "call_ns": pa.array(columns["call_ns"][row]),
        "return_ns": _or_null(columns["return_ns"][row], NEVER_NS),
        "session": pa.array(np.zeros(len(row), np.int32)),
    }
    return pa.table(arrays, schema=RECORDS)


def _words(codes: NDArray[np.int64], words: tuple[str, ...]) -> pa.Array:
    """Return the word of each code; null of code -1."""
    indices = pa.array(codes.astype(np.int32), mask=codes < 0)
    return pa.DictionaryArray.from_arrays(indices, [str(word) for word in words]).cast(pa.string())


def _or_null(numbers: NDArray[np.int64], null: int) -> pa.Array:
    return pa.array(numbers, mask=numbers == null)
