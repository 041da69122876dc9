"""The histories of a versioned register that are worst for a checker, each of them linearizable.

A search would be lost in them. They are made by numpy at once, of any length.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.history.operation import Outcome
from fencepost.history.schema import MODEL_OPERATIONS

Int64s = NDArray[np.int64]

_SPACING_NS: Final = 10_000
_READ, _CAS = 0, 1
_OK, _FAIL, _INFO = 0, 1, 2
_NULL: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """One entry an operation, in the order of effect; `_NULL` where nothing is known."""

    process: Int64s
    f: Int64s
    call_ns: Int64s
    return_ns: Int64s
    outcome: Int64s
    expected: Int64s
    version: Int64s
    value: Int64s


WorstCase = Callable[[str, int], pa.Table]
"""A key and a count of operations; MODEL_OPERATIONS of that key by index, from 0."""


def all_refused(key: str, count: int) -> pa.Table:
    """Make every other operation a refusal that the earliest schedule does not explain.

    The swap to version k may take effect from its call on, as the earliest schedule has it; then
    version k holds all through the refusal that expected it. So each version has to wait, and all
    of them are one connected run.
    """
    half = count // 2
    made = np.arange(1, half + 1)
    begin = made * 4 * _SPACING_NS
    swaps = _Columns(
        process=made % 3,
        f=np.full(half, _CAS),
        call_ns=begin,
        return_ns=begin + 8 * _SPACING_NS,
        outcome=np.full(half, _OK),
        expected=made - 1,
        version=made,
        value=made,
    )
    refusals = _Columns(
        process=np.full(half, 3),
        f=np.full(half, _CAS),
        call_ns=begin + _SPACING_NS,
        return_ns=begin + 2 * _SPACING_NS,
        outcome=np.full(half, _FAIL),
        expected=made,
        version=np.full(half, _NULL),
        value=np.full(half, half + 1),
    )
    return _table(key, _joined(swaps, refusals))


def never_answered(key: str, count: int) -> pa.Table:
    """Make half of the operations swaps without an answer: all of them are open at the end.

    Every other one of these took effect, and a read saw it.
    """
    half = count // 2
    number = np.arange(half)
    begin = (number + 1) * 4 * _SPACING_NS
    version = (number + 1) // 2
    swaps = _Columns(
        process=1 + number,
        f=np.full(half, _CAS),
        call_ns=begin,
        return_ns=np.full(half, _NULL),
        outcome=np.full(half, _INFO),
        expected=number // 2,
        version=np.full(half, _NULL),
        # Of a pair that expects one version the later one wrote what is read afterwards.
        value=np.where(number % 2 == 1, version, half + number),
    )
    reads = _Columns(
        process=np.zeros(half, np.int64),
        f=np.full(half, _READ),
        call_ns=begin + _SPACING_NS,
        return_ns=begin + 2 * _SPACING_NS,
        outcome=np.full(half, _OK),
        expected=np.full(half, _NULL),
        version=version,
        value=np.where(version == 0, _NULL, version),
    )
    return _table(key, _joined(swaps, reads))


WORST_CASES: Final[Mapping[str, WorstCase]] = {
    "all-refused": all_refused,
    "never-answered": never_answered,
}


def _joined(one: _Columns, other: _Columns) -> _Columns:
    return _Columns(
        **{
            name: np.concatenate([getattr(one, name), getattr(other, name)])
            for name in _Columns.__slots__
        }
    )


def _table(key: str, columns: _Columns) -> pa.Table:
    order = np.lexsort((columns.process, columns.call_ns))
    count = len(order)

    def numbers(name: str) -> pa.Array:
        taken = getattr(columns, name)[order]
        return pa.array(taken, mask=taken == _NULL)

    def words(name: str, choice: list[str]) -> pa.Array:
        codes = pa.array(getattr(columns, name)[order].astype(np.int8))
        return pa.DictionaryArray.from_arrays(codes, pa.array(choice)).cast(pa.string())

    made = {
        "index": pa.array(np.arange(count)),
        "process": numbers("process"),
        "key": pa.DictionaryArray.from_arrays(
            pa.array(np.zeros(count, np.int8)), pa.array([key])
        ).cast(pa.string()),
        "f": words("f", ["read", "cas"]),
        "outcome": words("outcome", [Outcome.OK, Outcome.FAIL, Outcome.INFO]),
        "error": pa.nulls(count, pa.string()),
        "values": pa.nulls(count, MODEL_OPERATIONS.field("values").type),
    }
    for name in ("call_ns", "return_ns", "expected", "version", "value"):
        made[name] = numbers(name)
    return pa.table({name: made[name] for name in MODEL_OPERATIONS.names}, schema=MODEL_OPERATIONS)
