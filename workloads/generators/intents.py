"""The intended end of the next transaction: a pattern, or a share of aborts drawn from the seed."""

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


class Intent(StrEnum):
    """The end that a producer intends for a transaction."""

    COMMIT = "commit"
    ABORT = "abort"


class Intents:
    """The intents of one producer, one after the other."""

    def __init__(
        self, pattern: Sequence[Intent], *, abort_share: float, rng: "np.random.Generator"
    ) -> None:
        self._pattern = tuple(pattern)
        self._abort_share = abort_share
        self._rng = rng
        self._count = 0

    @property
    def count(self) -> int:
        """The number of intents handed out."""
        return self._count

    def next(self) -> Intent:
        """Return the intent of the next transaction."""
        number, self._count = self._count, self._count + 1
        if self._pattern:
            return self._pattern[number % len(self._pattern)]
        return Intent.ABORT if self._rng.random() < self._abort_share else Intent.COMMIT
