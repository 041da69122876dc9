"""The claims of operations on a versioned register or a log, as arrays: both models in one form.

A *version* counts the changes of an object, and version k appears at the moment t_k. Version 0 is
there from the beginning. Of a register it is the version that clients see; the append that gets
offset k of a log makes version k + 1. (`versioned` says what the claims mean, and decides.)

An ok `cas` that does not say what it made, made what it expected and one more. A row that cannot be
understood at all (an ok write without its version, a return before its call) is left out and makes
the key doubtful.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.linearizability.operations import FS
from fencepost.checkers.rows import FAIL, INFO, OK, codes, taken
from fencepost.history.models import Model
from fencepost.history.operation import Outcome

NEVER: Final = int(np.iinfo(np.int64).max)
"""The moment of what does not happen."""
ENDLESS: Final = NEVER - 1
"""The return of an operation that took effect at some unknown time after its call."""
ALWAYS: Final = int(np.iinfo(np.int64).min)
"""The moment of what has been there from the beginning."""
NOTHING: Final = ALWAYS
"""Stands for null: no value, no version."""
UNTOLD: Final = ALWAYS + 1
"""The value of a version that no operation showed."""

COLUMNS: Final = ("f", "call_ns", "return_ns", "outcome", "error", "expected", "version", "value")
"""The columns of MODEL_OPERATIONS from which claims are made."""

_OUTCOMES: Final = (Outcome.OK, Outcome.FAIL, Outcome.INFO)
_KINDS: Final = len(_OUTCOMES)

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRows:
    """Operations of one key as parallel arrays; NOTHING where a number is null."""

    kind: NDArray[np.int8]
    """The place of `f` in `FS` of the model, times 3, plus OK, FAIL or INFO."""
    call: Int64s
    end: Int64s
    """ENDLESS where the return was never seen."""
    expected: Int64s
    version: Int64s
    value: Int64s
    erred: NDArray[np.bool_]
    """It has an error: a `cas` that has none was refused."""

    def __len__(self) -> int:
        return len(self.kind)

    def slice(self, first: int, count: int) -> "ModelRows":
        """Return up to `count` of the rows from this place on; nothing is copied."""
        part = slice(first, first + count)
        return ModelRows(
            kind=self.kind[part],
            call=self.call[part],
            end=self.end[part],
            expected=self.expected[part],
            version=self.version[part],
            value=self.value[part],
            erred=self.erred[part],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Versions with operations that made or showed them."""

    version: Int64s
    call: Int64s
    end: Int64s
    value: Int64s

    def __len__(self) -> int:
        return len(self.version)

    def take(self, which: NDArray[np.bool_]) -> "Changes":
        """Return those under the mask."""
        return taken(self, which)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """The claims of operations; for those that crashed, what they may have done."""

    made: tuple[Changes, ...]
    """The versions made by ok operations."""
    shown: Changes
    """The versions shown by ok reads."""
    held: bool
    """A read shows that its version was the last one; if not, only that it was there."""
    absent: Changes
    """Versions that a read looked for and did not find; they have no value."""
    refused: Changes
    """`version` is the one that a `cas` expected and that did not hold."""
    crashed_swaps: Changes
    """`version` is the one that it can have made. They have no end."""
    crashed_writes: Changes
    """`version` is 0: they can have made any. They have no end."""
    jumps: tuple[Int64s, Int64s]
    """The versions that an ok `cas` made, and those it expected, where these are not one less."""
    doubt: str
    """The reason why some operations could not be understood; empty without one."""


def model_rows(rows: pa.Table, model: Model) -> ModelRows:
    """Return the operations of any part of one key, from `COLUMNS` of MODEL_OPERATIONS.

    Words may be dictionary-encoded. Raises ValueError for a word that is not the model's.
    """
    kind = codes(rows.column("f"), FS[model]) * np.int8(_KINDS)
    kind += codes(rows.column("outcome"), tuple(_OUTCOMES))
    return ModelRows(
        kind=kind,
        call=_numbers(rows, "call_ns", null=ALWAYS),
        end=np.minimum(_numbers(rows, "return_ns", null=ENDLESS), ENDLESS),
        expected=_numbers(rows, "expected", null=NOTHING),
        version=_numbers(rows, "version", null=NOTHING),
        value=_numbers(rows, "value", null=NOTHING),
        erred=pc.is_valid(rows.column("error")).to_numpy(),
    )


def claims_of(rows: ModelRows, model: Model) -> Claims:
    """Return the claims of these operations."""
    return _of_log(rows) if model is Model.LOG else _of_register(rows)


def _of_register(rows: ModelRows) -> Claims:
    read, cas, write = (FS[Model.VERSIONED_REGISTER].index(f) for f in ("read", "cas", "write"))
    doubts: list[str] = []
    swap_rows = _chosen(rows, cas, OK)
    expected, made = rows.expected[swap_rows], rows.version[swap_rows]
    made = np.where((made == NOTHING) & (expected != NOTHING), expected + 1, made)
    jumped = (made != expected + 1) & (expected != NOTHING)
    refused_rows = _chosen(rows, cas, FAIL)
    refused_rows = refused_rows[~rows.erred[refused_rows]]
    crashed = _crashed(rows, _chosen(rows, cas, INFO), rows.expected, doubts)
    return Claims(
        made=(
            _changes(rows, swap_rows, made, doubts),
            _changes(
                rows, write_rows := _chosen(rows, write, OK), rows.version[write_rows], doubts
            ),
        ),
        shown=_changes(rows, seen := _chosen(rows, read, OK), rows.version[seen], doubts),
        held=True,
        absent=_no_changes(),
        refused=_changes(rows, refused_rows, rows.expected[refused_rows], doubts),
        crashed_swaps=Changes(
            version=crashed.version + 1, call=crashed.call, end=crashed.end, value=crashed.value
        ),
        crashed_writes=_crashed(rows, _chosen(rows, write, INFO), None, doubts),
        jumps=(made[jumped], expected[jumped]),
        doubt=_doubt(doubts),
    )


def _of_log(rows: ModelRows) -> Claims:
    read, append = (FS[Model.LOG].index(f) for f in ("read", "append"))
    doubts: list[str] = []
    append_rows, read_rows = _chosen(rows, append, OK), _chosen(rows, read, OK)
    reads = _changes(rows, read_rows, _after(rows.version[read_rows]), doubts)
    there = reads.value != NOTHING
    no_version = np.empty(0, dtype=np.int64)
    return Claims(
        made=(_changes(rows, append_rows, _after(rows.version[append_rows]), doubts),),
        shown=reads.take(there),
        held=False,
        absent=reads.take(~there),
        refused=_no_changes(),
        crashed_swaps=_no_changes(),
        crashed_writes=_crashed(rows, _chosen(rows, append, INFO), None, doubts),
        jumps=(no_version, no_version),
        doubt=_doubt(doubts),
    )


def _after(offset: Int64s) -> Int64s:
    return np.where(offset == NOTHING, NOTHING, offset + 1)


def _chosen(rows: ModelRows, f: int, outcome: int) -> NDArray[np.intp]:
    return np.flatnonzero(rows.kind == f * _KINDS + outcome)


def _changes(
    rows: ModelRows, which: NDArray[np.intp], version: Int64s, doubts: list[str]
) -> Changes:
    """Return these rows, but those without a version or with an end before the call."""
    changes = Changes(
        version=version, call=rows.call[which], end=rows.end[which], value=rows.value[which]
    )
    if not len(which):
        return changes
    lacking, turned = changes.version == NOTHING, changes.end < changes.call
    broken = lacking | turned
    if not broken.any():
        return changes
    if lacking.any():
        doubts.append(f"operations without the version that they are about: {lacking.sum()}")
    if turned.any():
        doubts.append(f"operations that returned before they were called: {turned.sum()}")
    return changes.take(~broken)


def _crashed(
    rows: ModelRows, which: NDArray[np.intp], version: Int64s | None, doubts: list[str]
) -> Changes:
    """These rows, at any time after their calls; `version` of all rows, or none is needed."""
    changes = Changes(
        version=np.zeros(len(which), dtype=np.int64) if version is None else version[which],
        call=rows.call[which],
        end=np.full(len(which), NEVER),
        value=rows.value[which],
    )
    lacking = changes.version == NOTHING
    if not lacking.any():
        return changes
    doubts.append(f"operations without the version that they are about: {lacking.sum()}")
    return changes.take(~lacking)


def _doubt(doubts: list[str]) -> str:
    return "; ".join(dict.fromkeys(doubts))


def _no_changes() -> Changes:
    none = np.empty(0, dtype=np.int64)
    return Changes(version=none, call=none, end=none, value=none)


def _numbers(rows: pa.Table, name: str, *, null: int) -> Int64s:
    column = rows.column(name)
    if column.null_count:
        column = pc.fill_null(column, null)
    numbers: NDArray[Any] = column.to_numpy()
    return numbers
