"""The rows of one key as numpy arrays, and as operations that a sequential model can take.

The effect that an operation must have had, by its outcome:

- ok: it took effect at one moment between call and return, both included (MUST);
- info: it may have, at any moment after its call (MAY); a read without an answer says nothing;
- fail of a `cas` without an error: it was refused at one moment in between (REFUSED);
- any other fail: it did not take effect, and says nothing (NOTHING).

An operation is before another one exactly if it returned before the other was called; at equal
times they are concurrent. (Two operations of one process are no exception: what a clock cannot
tell apart is not held against a system.)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.rows import FAIL, INFO, OPEN_NS, codes
from fencepost.history.models import Model
from fencepost.history.operation import Outcome

FS: Final[Mapping[Model, tuple[str, ...]]] = {
    Model.VERSIONED_REGISTER: ("read", "cas", "write"),
    Model.REGISTER: ("read", "write", "cas"),
    Model.LOG: ("read", "append"),
    Model.SET: ("read", "add"),
    Model.COUNTER: ("read", "add"),
}
"""The names of a model's operations; the place of a name is its code, 0 being a read."""

_OUTCOMES: Final = (Outcome.OK, Outcome.FAIL, Outcome.INFO)
_OWED: Final[Mapping[Model, Mapping[str, tuple[str, ...]]]] = {
    Model.VERSIONED_REGISTER: {"cas": ("expected",)},
    Model.REGISTER: {},
    Model.LOG: {"append": ("value",), "read": ("version",)},
    Model.SET: {"add": ("value",)},
    Model.COUNTER: {"add": ("value",)},
}
"""Columns that an operation cannot be understood without."""
_ANSWERS: Final = {Model.SET: "values", Model.COUNTER: "value"}
"""The column with the answer of an ok read; null: the answer was never learned."""

_TOLD: Final = ("read", "cas")
"""Operations that are told what is there, or whether it was what they expected."""


class Effect(IntEnum):
    """The effect that an operation has on an order of all operations."""

    NOTHING = 0
    MUST = 1
    MAY = 2
    REFUSED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Operations of one key that owe something, as parallel arrays, by index."""

    index: NDArray[np.int64]
    f: NDArray[np.int8]
    """Codes of `FS`."""
    effect: NDArray[np.int8]
    """Codes of `Effect`, never NOTHING."""
    call: NDArray[np.int64]
    end: NDArray[np.int64]
    """The return; `OPEN_NS` of what may take effect at any time after its call."""
    value: NDArray[np.int64]
    """0 where it is null."""
    has_value: NDArray[np.bool_]
    row: NDArray[np.int64]
    """Its place in `rows`."""
    rows: pa.Table
    """MODEL_OPERATIONS of the key, whole."""

    def __len__(self) -> int:
        return len(self.index)

    def take(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> "Columns":
        """Return these operations, by mask or by place."""
        return Columns(
            index=self.index[which],
            f=self.f[which],
            effect=self.effect[which],
            call=self.call[which],
            end=self.end[which],
            value=self.value[which],
            has_value=self.has_value[which],
            row=self.row[which],
            rows=self.rows,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation, with the columns of MODEL_OPERATIONS that its model reads."""

    index: int
    f: str
    effect: Effect
    call: int
    end: int
    expected: int | None = None
    version: int | None = None
    value: int | None = None
    values: frozenset[int] = frozenset()

    @property
    def passive(self) -> bool:
        """It never changes what is there."""
        return self.f == "read" or self.effect is Effect.REFUSED


def columns_of(rows: pa.Table, model: Model) -> Columns:
    """Return the operations of one key, without those that say nothing.

    Raises ValueError, naming the operation, if one is not of the model.
    """
    f = codes(rows.column("f"), FS[model])
    outcome = codes(rows.column("outcome"), tuple(_OUTCOMES))
    effect = _effects(rows, f=f, outcome=outcome, model=model)
    call = rows.column("call_ns").to_numpy()
    end = pc.fill_null(rows.column("return_ns"), OPEN_NS).to_numpy()
    end = np.where(outcome == INFO, OPEN_NS, end)
    _refuse_broken(rows, f=f, effect=effect, model=model)
    _refuse(rows, (effect != Effect.NOTHING) & (end < call), "returned before it was called")
    value = rows.column("value")
    columns = Columns(
        row=np.arange(rows.num_rows),
        index=rows.column("index").to_numpy(),
        f=f,
        effect=effect,
        call=call,
        end=end,
        value=pc.fill_null(value, 0).to_numpy(),
        has_value=pc.is_valid(value).to_numpy(),
        rows=rows,
    )
    owing = effect != Effect.NOTHING
    return columns if owing.all() else columns.take(owing)


def answer_count(columns: Columns, model: Model) -> int:
    """Return how many got an answer that can be wrong: reads, and `cas` made or refused."""
    words = [place for place, word in enumerate(FS[model]) if word in _TOLD]
    told = np.isin(columns.f, words) & (columns.effect != Effect.MAY)
    return int(np.count_nonzero(told))


def operations_of(columns: Columns, model: Model) -> list[Operation]:
    """Return the same operations one by one, for a search."""
    names = ("expected", "version", "value", "values")
    rows = columns.rows.select(names).take(pa.array(columns.row))
    listed = [rows.column(name).to_pylist() for name in names]
    return [
        Operation(
            index=index,
            f=FS[model][f],
            effect=Effect(effect),
            call=call,
            end=end,
            expected=expected,
            version=version,
            value=value,
            values=frozenset(values or ()),
        )
        for index, f, effect, call, end, expected, version, value, values in zip(
            columns.index.tolist(),
            columns.f.tolist(),
            columns.effect.tolist(),
            columns.call.tolist(),
            columns.end.tolist(),
            *listed,
            strict=True,
        )
    ]


def _effects(
    rows: pa.Table, *, f: NDArray[np.int8], outcome: NDArray[np.int8], model: Model
) -> NDArray[np.int8]:
    effect = np.full(len(f), Effect.MUST, dtype=np.int8)
    effect[outcome == INFO] = Effect.MAY
    effect[outcome == FAIL] = Effect.NOTHING
    if "cas" in FS[model]:
        plain = pc.is_null(rows.column("error")).to_numpy()
        effect[(outcome == FAIL) & plain & (f == FS[model].index("cas"))] = Effect.REFUSED
    effect[(effect == Effect.MAY) & (f == 0)] = Effect.NOTHING
    if model in _ANSWERS:
        unknown = pc.is_null(rows.column(_ANSWERS[model])).to_numpy()
        effect[unknown & (f == 0)] = Effect.NOTHING
    return effect


def _refuse_broken(
    rows: pa.Table, *, f: NDArray[np.int8], effect: NDArray[np.int8], model: Model
) -> None:
    for word, owed in _OWED[model].items():
        mine = (f == FS[model].index(word)) & (effect != Effect.NOTHING)
        for name in owed:
            lacking = mine & pc.is_null(rows.column(name)).to_numpy()
            _refuse(rows, lacking, f"is a {word} of a {model} without {name}")


def _refuse(rows: pa.Table, broken: NDArray[np.bool_], what: str) -> None:
    if np.any(broken):
        place = int(np.flatnonzero(broken)[0])
        raise ValueError(f"operation {rows.column('index')[place].as_py()} {what}")
