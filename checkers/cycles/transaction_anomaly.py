"""The definition of one anomaly of a list, and the code that the kernels looking for them share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.cycles.steps import TransactionSteps
from fencepost.checkers.cycles.versions import KeyVersions
from fencepost.checkers.cycles.visits import Visits
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import FAIL
from fencepost.history.models import Isolation

Ints = NDArray[np.int64]

SPELLED_MAX: Final = 1000
"""Proofs spelled out a kind and row group; all are counted."""
SHOWN: Final = 12
"""Elements of a list, and transactions, that a sentence shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionAnomaly:
    """One anomaly of a list and its proof."""

    key: str
    level: Isolation
    """The weakest that forbids it."""
    proof: Proof
    """Its operations are the transactions, by index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionAnomalies:
    """All anomalies of one check."""

    check: str
    spelled: tuple[TransactionAnomaly, ...]
    unspelled: dict[Isolation, int]
    """The number of further ones, by the weakest level that forbids them."""
    cases: int
    """The number of those that could have been one, these included …"""
    forbidden_by: Isolation
    """… under a promise of this level or a stronger one."""


@dataclass(frozen=True, slots=True)
class Lists:
    """The steps of whole keys and what was made of them."""

    steps: TransactionSteps
    versions: KeyVersions
    visits: Visits

    def name(self, row: int) -> str:
        """Return the key of a row."""
        return self.steps.names[int(self.steps.key[row])]

    def transaction(self, row: int) -> int:
        """Return the transaction of a row."""
        return int(self.steps.transaction[row])

    def element_count(self) -> int:
        """Count elements of the longest reads, and of reads that are no prefix of them."""
        differing = self.steps.length[self.versions.differing]
        return len(self.versions.value) + int(differing.sum())

    def undone_count(self) -> int:
        """Count elements that failed transactions appended to lists that were read."""
        undone = self.steps.appends & (self.steps.outcome == FAIL)
        return int(np.count_nonzero(undone & (self.versions.longest[self.steps.key] >= 0)))

    def reader(self, places: Ints) -> Ints:
        """Return the rows of the longest reads that hold these elements."""
        key = np.searchsorted(self.versions.bounds, places, side="right") - 1
        rows: Ints = self.versions.longest[key]
        return rows


def spelled_out(
    check: str,
    levels: list[Isolation],
    spell: Callable[[int, Isolation], TransactionAnomaly],
    *,
    cases: int,
    forbidden_by: Isolation,
) -> TransactionAnomalies:
    """Return all anomalies of a check, with the level of each; the first are spelled out by number.

    `forbidden_by`: the weakest level that one of its anomalies can have.
    """
    unspelled = levels[SPELLED_MAX:]
    return TransactionAnomalies(
        check=check,
        spelled=tuple(spell(number, level) for number, level in enumerate(levels[:SPELLED_MAX])),
        unspelled={level: unspelled.count(level) for level in set(unspelled)},
        cases=cases,
        forbidden_by=forbidden_by,
    )


def list_text(values: Ints) -> str:
    """Return the list as text, the middle of long ones left out."""
    words = [str(value) for value in values.tolist()]
    if len(words) > SHOWN:
        half = SHOWN // 2
        words = [*words[:half], "…", *words[-half:]]
    return f"[{' '.join(words)}]"
