"""The kernel of each model: the rows of one key in, what is wrong with them out.

Each is exact, within its budget. Registers of unique values, sets and counters of equal adds have
near-linear kernels of their own; the others are searched.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from fencepost.checkers.anomaly import Found
from fencepost.checkers.linearizability.budget import Budget
from fencepost.checkers.linearizability.counters import counter
from fencepost.checkers.linearizability.operations import columns_of
from fencepost.checkers.linearizability.register import register
from fencepost.checkers.linearizability.searched import searched
from fencepost.checkers.linearizability.sets import grow_only_set
from fencepost.history.models import Model

KeyKernel = Callable[[str, pa.Table, Budget], Found]
"""A key, its rows of `history.schema.MODEL_OPERATIONS` by index, what it may cost; what was found
of the check `nonlinearizable`. A question that was not decided within the budget is a doubt.

Raises ValueError, naming the operation, if the rows are no history of the model.
"""


@dataclass(frozen=True, slots=True)
class _Searched:
    """A search for orders of a model that has no kernel of its own."""

    model: Model

    def __call__(self, key: str, rows: pa.Table, budget: Budget) -> Found:
        return searched(key, columns_of(rows, self.model), model=self.model, budget=budget)


KERNELS: Final[Mapping[Model, KeyKernel]] = {
    Model.VERSIONED_REGISTER: _Searched(Model.VERSIONED_REGISTER),
    Model.REGISTER: register,
    Model.LOG: _Searched(Model.LOG),
    Model.SET: grow_only_set,
    Model.COUNTER: counter,
}
"""The kernel of every model whose keys are separate objects; lists are judged across keys."""
