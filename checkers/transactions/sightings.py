"""Which values of transactions were read: what torn-transaction needs of the records of each key.

A transaction writes to several keys, and their records lie in several files, so each file answers
for its keys in as few rows as it can: first the values that nobody read, which are few unless much
is wrong; then, for transactions with some of these, who read the others.

A key of a file fits in memory (`checkers.data_plane.key_log`).
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from checkers.membership import is_among
from checkers.rows import COLUMNS, FAIL, Rows, split
from checkers.runner.tables import SealedFile, keys_in, scanned
from history.failure import HarnessError

__all__ = ["SIGHTINGS", "sightings", "sightings_in", "sightings_of_key"]

SIGHTINGS: Final = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        # In the one row of a file itself: why it could not be read, or null. Then `key` is null.
        pa.field("unreadable", pa.string()),
        pa.field("key", pa.string()),
        pa.field("value", pa.int64()),
        pa.field("send", pa.int64()),
        # Of the first ok read that returned the value; null if none did.
        pa.field("read", pa.int64()),
        pa.field("read_ns", pa.int64()),
        pa.field("offset", pa.int64()),
    ]
)


def sightings(files: DataFrame, *, values: NDArray[np.int64] | None) -> DataFrame:
    """SIGHTINGS of these values, or (None) of the unread ones, and of each file."""
    return scanned(files, partial(sightings_in, values=values), schema=SIGHTINGS)


def sightings_in(file: SealedFile, *, values: NDArray[np.int64] | None) -> Iterator[pa.Table]:
    """SIGHTINGS of one file: a table a key, and a row for the file."""
    unreadable = None
    try:
        for key, records in keys_in(file, COLUMNS):
            sends, reads, _ = split(records)
            rows = sightings_of_key(sends, reads, values=values)
            yield _table([row | {"key": key, "path": file.path} for row in rows])
    except (HarnessError, ValueError) as error:
        unreadable = str(error)
    yield _table([{"path": file.path, "unreadable": unreadable}])


def sightings_of_key(
    sends: Rows, reads: Rows, *, values: NDArray[np.int64] | None
) -> Iterator[dict[str, Any]]:
    """One row a send of `values`, or (None) of those that did not fail and were not read."""
    seen = np.flatnonzero(reads.ok)
    if values is None:
        unread = ~is_among(sends.value, reads.value[seen])
        wanted = np.flatnonzero(unread & (sends.outcome != FAIL))
    else:
        wanted = np.flatnonzero(is_among(sends.value, values))
    first = _first_rows(reads.value[seen], sends.value[wanted])
    for send, row in zip(wanted.tolist(), first.tolist(), strict=True):
        sighting = {"value": int(sends.value[send]), "send": int(sends.operation[send])}
        if row >= 0:
            read = int(seen[row])
            sighting |= {
                "read": int(reads.operation[read]),
                "read_ns": int(reads.return_ns[read]),
                "offset": int(reads.offset[read]),
            }
        yield sighting


def _first_rows(among: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each value comes first; -1 where it does not."""
    if not len(among):
        return np.full(len(values), -1, dtype=np.int64)
    order = np.argsort(among, kind="stable")
    place = np.searchsorted(among[order], values)
    place[place == len(among)] = 0
    return np.where(among[order][place] == values, order[place], -1)


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SIGHTINGS)
