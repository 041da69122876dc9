"""The operations of one counter as numpy arrays: reads, and adds of anything but 0."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from checkers.linearizability.operations import FS, Columns, Operation, operations_of
from checkers.proof import Proof
from history.models import Model

__all__ = [
    "CITED_MAX",
    "MODEL",
    "CounterRows",
    "Numbers",
    "Proofs",
    "are_alike",
    "counter_of",
    "single",
]

MODEL: Final = Model.COUNTER
CITED_MAX: Final = 20
"""Adds that a proof names one by one."""

_READ: Final = FS[MODEL].index("read")

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterRows:
    """Parallel arrays; `read` and `add` are places in the columns."""

    columns: Columns
    read: Numbers
    found: Numbers
    read_call: Numbers
    read_end: Numbers
    add: Numbers
    delta: Numbers
    add_call: Numbers
    add_end: Numbers
    """OPEN_NS of an add that may have happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proofs:
    """Anomalies, counted, each spelled out when it is asked for."""

    count: int
    of: Callable[[int], Proof]


def counter_of(columns: Columns) -> CounterRows:
    """Return reads and adds of anything but 0, which changes nothing and fits everywhere."""
    read = np.flatnonzero(columns.f == _READ)
    add = np.flatnonzero((columns.f != _READ) & (columns.value != 0))
    return CounterRows(
        columns=columns,
        read=read,
        found=columns.value[read],
        read_call=columns.call[read],
        read_end=columns.end[read],
        add=add,
        delta=columns.value[add],
        add_call=columns.call[add],
        add_end=columns.end[add],
    )


def are_alike(whole: CounterRows) -> bool:
    """Return whether all adds are the same number; True without adds."""
    return not len(whole.delta) or bool(np.all(whole.delta == whole.delta[0]))


def single(whole: CounterRows, place: np.int64) -> Operation:
    """Return the operation at a place in the columns."""
    (operation,) = operations_of(whole.columns.take(np.array([place])), MODEL)
    return operation
