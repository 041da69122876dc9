"""The operations on znodes that a client draws, each against what the client saw last of its znode.

Keys that last are created, read and set; a share of all keys is deleted and created again, too. The
mix says how often. A client expects the version that it saw last, which others may have changed:
about as many swaps are refused as are made where several clients write one key.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from numpy.random import Generator

_NAMED_SHARE: Final = 0.5
"""The share of deletes that name the version to delete."""
_BATCH: Final = 1024
"""Numbers drawn at a time: one by one costs more than the operation."""


class ZnodeF(StrEnum):
    """The function of an operation on a znode, as ZNODE_OPERATIONS names it."""

    CREATE = "create"
    SET = "set"
    CAS = "cas"
    DELETE = "delete"
    READ = "read"
    SYNC_READ = "sync-read"
    FINAL_READ = "final-read"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZnodeIntent:
    """One operation to do."""

    f: ZnodeF
    key: str
    expected: int | None = None


def znode_keys(count: int, *, deleted_share: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the paths of the keys that last, and of those that are deleted and created again."""
    deleted_count = round(count * deleted_share)
    return (
        tuple(f"/register/r-{number}" for number in range(count - deleted_count)),
        tuple(f"/register/d-{number}" for number in range(deleted_count)),
    )


class ZnodeDraws:
    """The draws of one client process."""

    def __init__(
        self,
        lasting: Sequence[str],
        deleted: Sequence[str],
        *,
        weights: Mapping[ZnodeF, int],
        draw: Generator,
    ) -> None:
        self._keys = (*lasting, *deleted)
        self._lasting_count = len(lasting)
        self._of_deleted = _steps(weights)
        self._of_lasting = _steps({f: n for f, n in weights.items() if f is not ZnodeF.DELETE})
        self._draw = draw
        self._numbers: list[float] = []
        self._seen: dict[str, int] = {}

    def next(self) -> ZnodeIntent:
        """Return the next operation."""
        place = int(self._number() * len(self._keys))
        key = self._keys[place]
        steps = self._of_lasting if place < self._lasting_count else self._of_deleted
        at = self._number()
        f = next(f for f, bound in steps if at < bound)
        if f is ZnodeF.CAS or (f is ZnodeF.DELETE and self._number() < _NAMED_SHARE):
            return ZnodeIntent(f=f, key=key, expected=self._seen.get(key, 0))
        return ZnodeIntent(f=f, key=key)

    def saw(self, key: str, version: int) -> None:
        """Take note of the version that a key had, by the answer that came last."""
        self._seen[key] = version

    def _number(self) -> float:
        if not self._numbers:
            self._numbers = self._draw.random(_BATCH).tolist()
        return self._numbers.pop()


def _steps(weights: Mapping[ZnodeF, int]) -> tuple[tuple[ZnodeF, float], ...]:
    """Return each function with the upper end of its part of [0, 1)."""
    total, reached = sum(weights.values()), 0
    steps = []
    for f, weight in weights.items():
        if weight:
            reached += weight
            steps.append((f, reached / total))
    return tuple(steps)
