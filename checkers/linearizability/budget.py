"""The time and memory that the judgement of one key may cost, and the part that is left.

A search can be exponential in the operations that are open at once. It asks its meter as it goes,
and reaching the bound is an answer: this key is unknown, and no other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Self


class OverBudgetError(Exception):
    """The budget that ran out and its size: the doubt about a key, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The budget of one key."""

    seconds: float
    bytes: int


@dataclass(slots=True, kw_only=True)
class Meter:
    """The part of a budget that is spent. The clock is handed in, so that a test can move it."""

    budget: Budget
    deadline: float
    clock: Callable[[], float]
    held_bytes: int = 0

    @classmethod
    def started(cls, budget: Budget, *, clock: Callable[[], float] = perf_counter) -> Self:
        """Return a meter whose time runs from now."""
        return cls(budget=budget, deadline=clock() + budget.seconds, clock=clock)

    @property
    def rest(self) -> Budget:
        """The time that is left, never negative, and the memory whole: it is free again."""
        seconds = max(0.0, self.deadline - self.clock())
        return Budget(seconds=seconds, bytes=self.budget.bytes)

    def check(self) -> None:
        """Raise OverBudgetError if the time or the memory of the budget is spent."""
        if self.held_bytes > self.budget.bytes:
            raise OverBudgetError(f"the search ran out of its {self.budget.bytes >> 20} MiB")
        if self.clock() > self.deadline:
            raise OverBudgetError(f"the search ran out of its {self.budget.seconds:g} s")
