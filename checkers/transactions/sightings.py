"""The values of transactions that were read: torn-transaction's input from the records of each key.

A transaction writes to several keys, and their records lie in several files, so each file answers
for its keys in as few rows as it can: first the values that were not read, which are few unless
much is wrong; then, for transactions with some of these, who read the others.

A key of a file fits in memory (`checkers.data_plane.key_log`).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from checkers.membership import is_among
from checkers.rows import COLUMNS, FAIL, Rows, split
from checkers.runner.tables import SealedFile, keys_in

__all__ = ["sightings_in", "sightings_of_key"]


def sightings_in(file: SealedFile, *, values: NDArray[np.int64] | None) -> list[dict[str, Any]]:
    """Return the sightings of a file of `records`, with their keys (`sightings_of_key`)."""
    return [
        row | {"key": key}
        for key, records in keys_in(file, COLUMNS)
        for sends, reads, _ in [split(records)]
        for row in sightings_of_key(sends, reads, values=values)
    ]


def sightings_of_key(
    sends: Rows, reads: Rows, *, values: NDArray[np.int64] | None
) -> Iterator[dict[str, Any]]:
    """Yield a row per send of `values`, or (None) of those that did not fail and were not read.

    `value` and `send`; of the first ok read that returned the value `read`, `read_ns` and `offset`,
    or None.
    """
    seen = np.flatnonzero(reads.ok)
    if values is None:
        unread = ~is_among(sends.value, reads.value[seen])
        wanted = np.flatnonzero(unread & (sends.outcome != FAIL))
    else:
        wanted = np.flatnonzero(is_among(sends.value, values))
    first = _first_rows(reads.value[seen], sends.value[wanted])
    for send, row in zip(wanted.tolist(), first.tolist(), strict=True):
        sighting: dict[str, Any] = dict.fromkeys(("read", "read_ns", "offset"))
        sighting |= {"value": int(sends.value[send]), "send": int(sends.operation[send])}
        if row >= 0:
            read = int(seen[row])
            sighting |= {
                "read": int(reads.operation[read]),
                "read_ns": int(reads.return_ns[read]),
                "offset": int(reads.offset[read]),
            }
        yield sighting


def _first_rows(among: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row where each value comes first; -1 for an absent value."""
    if not len(among):
        return np.full(len(values), -1, dtype=np.int64)
    order = np.argsort(among, kind="stable")
    place = np.searchsorted(among[order], values)
    place[place == len(among)] = 0
    return np.where(among[order][place] == values, order[place], -1)
