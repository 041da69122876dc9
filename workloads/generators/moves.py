"""The next move of a partition: which one, to where, and whether it is called off, from a seed.

A move adds a replica, removes one, or puts one on another broker; where that makes a different
broker the first of them, the preferred leader changes, too. No move leaves fewer or more replicas
than the bounds say, and the budget limits the number of moves.

The generator knows no cluster. It is told where a partition is and names where it is to be, so that
its moves are legal whatever became of the moves before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from numpy.random import Generator

from workloads.generators.keys import KeyCycle

__all__ = ["Move", "Moves", "ReplicaChange", "Replicas"]

T = TypeVar("T")

Replicas = tuple[int, ...]
"""Broker ids, the preferred leader first."""


class ReplicaChange(StrEnum):
    """The effect of a move on the set of replicas."""

    ADD = "add"
    REMOVE = "remove"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One reassignment to ask for."""

    change: ReplicaChange
    replicas: Replicas
    """The replicas after the move."""
    cancel_after_s: float | None
    """Call it off so long after it began, if it is not over by then; None: not by intent."""


class Moves:
    """The moves of one client, over the keys that are its own. Keys are indices.

    `moves_max`: None: no end. `cancel_share`: of the moves, how many are to be called off, each
    after a time of up to `cancel_after_s_max`. ValueError if nothing could ever move.
    """

    def __init__(
        self,
        *,
        keys: Sequence[int],
        broker_ids: Sequence[int],
        replicas_min: int,
        replicas_max: int,
        moves_max: int | None,
        cancel_share: float,
        cancel_after_s_max: float,
        draw: Generator,
    ) -> None:
        if not 1 <= replicas_min <= replicas_max <= len(broker_ids):
            raise ValueError(
                f"{replicas_min} to {replicas_max} replicas on {len(broker_ids)} brokers"
            )
        if replicas_min == len(broker_ids):
            raise ValueError(f"{replicas_min} replicas on as many brokers have nowhere to go")
        self._broker_ids = tuple(broker_ids)
        self._replicas_min = replicas_min
        self._replicas_max = replicas_max
        self._moves_left = moves_max
        self._cancel_share = cancel_share
        self._cancel_after_s_max = cancel_after_s_max
        self._draw = draw
        self._keys = KeyCycle(keys, draw)

    @property
    def is_over(self) -> bool:
        """Return whether the budget is used up."""
        return self._moves_left == 0

    def next_key(self) -> int:
        """Return the key to move now: each equally often."""
        return int(self._keys.take(1)[0])

    def next(self, replicas: Replicas) -> Move:
        """Return the next move of a partition with these replicas; it counts against the budget."""
        assert not self.is_over, "a move beyond the budget"
        if self._moves_left is not None:
            self._moves_left -= 1
        change = self._one_of(self._possible(replicas))
        return Move(
            change=change, replicas=self._changed(replicas, change), cancel_after_s=self._cancel()
        )

    def _possible(self, replicas: Replicas) -> tuple[ReplicaChange, ...]:
        """Return the possible changes; outside the bounds, those that lead towards them."""
        count, spare = len(replicas), self._spare(replicas)
        if count > self._replicas_max:
            return (ReplicaChange.REMOVE,)
        if count < self._replicas_min:
            return (ReplicaChange.ADD,)
        possible = {
            ReplicaChange.ADD: bool(spare) and count < self._replicas_max,
            ReplicaChange.REMOVE: count > self._replicas_min,
            ReplicaChange.REPLACE: bool(spare),
        }
        return tuple(change for change, can in possible.items() if can)

    def _changed(self, replicas: Replicas, change: ReplicaChange) -> Replicas:
        if change is ReplicaChange.ADD:
            place = int(self._draw.integers(len(replicas) + 1))
            return (*replicas[:place], self._one_of(self._spare(replicas)), *replicas[place:])
        place = int(self._draw.integers(len(replicas)))
        instead = (self._one_of(self._spare(replicas)),) if change is ReplicaChange.REPLACE else ()
        return (*replicas[:place], *instead, *replicas[place + 1 :])

    def _cancel(self) -> float | None:
        # Both are drawn each time, so that one share more or less leaves the other draws alone.
        drawn, after = self._draw.random(2).tolist()
        return after * self._cancel_after_s_max if drawn < self._cancel_share else None

    def _spare(self, replicas: Replicas) -> Replicas:
        return tuple(one for one in self._broker_ids if one not in replicas)

    def _one_of(self, choices: Sequence[T]) -> T:
        return choices[int(self._draw.integers(len(choices)))]
