"""The kernel of each model: the rows of one key in, what is wrong with them out."""

from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa

from checkers.anomaly import Found
from checkers.linearizability.budget import Budget
from history.models import Model

__all__ = ["KERNELS", "KeyKernel"]

KeyKernel = Callable[[str, pa.Table, Budget], Found]
"""A key, its rows of `history.schema.MODEL_OPERATIONS` by index, what it may cost; what was found
of the check `nonlinearizable`. Whatever could not be decided within the budget is a doubt.

Raises ValueError, naming the operation, if the rows are no history of the model.
"""

KERNELS: Final[Mapping[Model, KeyKernel]] = {}
