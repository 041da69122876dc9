"""An operation on its way between a file and the tables, as every format and model has it."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from fencepost.history.operation import Outcome


class Cells(NamedTuple):
    """The effect of an operation, or of one step of a transaction, on one key.

    The columns of MODEL_OPERATIONS (or MICRO_OPERATIONS) that the model decides about. `expected`,
    `value` and `values` are as the file has them, `key` is a name in the tables.
    """

    key: str
    f: str
    expected: Any = None
    version: int | None = None
    value: Any = None
    values: tuple[Any, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenOperation:
    """An operation, from its call to its end."""

    line: int
    """The line of the file in which it was called."""
    process: int
    f: str
    """The function, as the file has it."""
    call_ns: int
    return_ns: int | None
    """None if its end was never seen, or says nothing (info)."""
    outcome: Outcome
    error: str | None
    cells: tuple[Cells, ...]
    """The cells: one, or for a transaction one a step."""
