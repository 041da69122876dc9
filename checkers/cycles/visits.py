"""Visits: the steps of one transaction on one key, in its order; and which reads say what.

The first read of a visit that follows no append of it is its *external* read: it shows what others
left there. Every later read must show the same and the visit's own appends since, in order.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.cycles.steps import TransactionSteps

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Visits:
    """The visit of every row, and the rows that came before it there."""

    visit: Ints
    """Dense from 0."""
    appends: Ints
    """The rows that append, of all visits."""
    appended: Ints
    """The number of appending rows, of all visits, before this row."""
    first: Ints
    """The first row of each visit."""
    last_append: Ints
    """The last row of each visit that appends; -1 without any."""
    external: Ints
    """The row of each visit's external read; -1 without any."""
    before: Ints
    """The last known read before each row in its visit; -1 without any."""

    def own_appends(self, row: int) -> Ints:
        """Return the rows that its visit appended before this row, since its last known read."""
        since = self.before[row] if self.before[row] >= 0 else self.first[self.visit[row]]
        return self.appends[self.appended[since] : self.appended[row]]


def visits_of(steps: TransactionSteps) -> Visits:
    """Return the visits of these steps."""
    rows = np.arange(len(steps))
    opens = np.ones(len(steps), np.bool_)
    opens[1:] = (np.diff(steps.key) != 0) | (np.diff(steps.transaction) != 0)
    visit = np.cumsum(opens) - 1
    first = np.flatnonzero(opens)
    appended: Ints = np.cumsum(steps.appends) - steps.appends
    appends = np.flatnonzero(steps.appends)
    last_append = np.full(len(first), -1, np.int64)
    last_append[visit[appends]] = appends
    latest = np.maximum.accumulate(np.where(steps.known, rows, -1))
    before = np.concatenate([[-1], latest[:-1]])[: len(steps)]
    before = np.where(before >= first[visit], before, -1) if len(steps) else before
    outside = steps.known & (before < 0) & (appended == appended[first[visit]])
    external = np.full(len(first), -1, np.int64)
    external[visit[outside]] = rows[outside]
    return Visits(
        visit=visit,
        appends=appends,
        appended=appended,
        first=first,
        last_append=last_append,
        external=external,
        before=before,
    )
