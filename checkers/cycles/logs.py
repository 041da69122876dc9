"""The transactions in one partition's records: the runs of its log, and who read from whom."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from checkers.cycles.moments import Committed, KeyTransactions
from checkers.rows import OK, OPEN_NS, codes
from history.schema import F, Outcome

__all__ = ["COLUMNS", "key_transactions"]

Ints = NDArray[np.int64]

COLUMNS: Final = ("key", "offset", "value", "operation", "f", "outcome", "call_ns", "return_ns")
"""The columns of RECORDS that are read."""

_UNPLACED: Final = -1
_FS: Final = (F.SEND, F.POLL, F.FINAL_READ)
_OUTCOMES: Final = (Outcome.OK, Outcome.FAIL, Outcome.INFO)


def key_transactions(
    key: str, records: pa.Table, committed: Committed
) -> tuple[KeyTransactions, str]:
    """Return what the records of a key (`COLUMNS`) say, and why its log is not known, or "".

    A log of which one offset has two values has no order that could be relied on.
    """
    value, operation, call_ns = (
        records[name].to_numpy() for name in ("value", "operation", "call_ns")
    )
    offset = pc.fill_null(records["offset"], _UNPLACED).to_numpy()
    return_ns = pc.fill_null(records["return_ns"], OPEN_NS).to_numpy()
    owner = committed.of_values(value)
    sure = (codes(records["outcome"], tuple(_OUTCOMES)) == OK) & (owner >= 0)
    reads = np.flatnonzero(sure & (codes(records["f"], tuple(_FS)) != 0))
    log, doubt = _log(key, offset, value, rows=np.flatnonzero(sure & (offset != _UNPLACED)))
    run = log[np.flatnonzero(np.diff(owner[log], prepend=-1))]
    pairs = np.stack([operation[reads], owner[reads]])
    _, first = np.unique(pairs, axis=1, return_index=True)
    seen = reads[first]
    found = KeyTransactions(
        key=key,
        run=owner[run],
        run_value=value[run],
        run_operation=operation[run],
        reader=operation[seen],
        seen=owner[seen],
        seen_value=value[seen],
        call_ns=call_ns[seen],
        return_ns=return_ns[seen],
    )
    return found, doubt


def _log(key: str, offset: Ints, value: Ints, *, rows: Ints) -> tuple[Ints, str]:
    """Return one row per offset in log order; no rows if an offset has two values."""
    rows = rows[np.lexsort((rows, offset[rows]))]
    again = np.flatnonzero(np.diff(offset[rows]) == 0)
    different = again[value[rows[again]] != value[rows[again + 1]]]
    if len(different):
        at = int(offset[rows[different[0]]])
        return rows[:0], f"{key} has two values at offset {at}: its log has no order"
    return np.delete(rows, again + 1), ""
