"""The table of transactions, held against the sends and the offsets that belong to it.

A producer records a transaction, its sends, and the offsets sent with it, each in a place of its
own (`history.request_schema`), and all have one outcome. Where two of these contradict each other,
the recording is wrong and not the cluster, and nothing tells which of them to believe.

- A producer has one transaction open at a time. So one that has no end is the last of its process,
  and the next one begins when the one before it has ended.
- An acknowledged end was called for, and has no error.
- A record of a transaction is a send of its process to that key. Its outcome follows from the
  intent and the outcome of the transaction (`_sends_of`). A transaction without an end may have
  sends with one: its process died between the two notes.
- A send that has an end is of a transaction; one that is open may not be noted there yet.
- Offsets are sent within a transaction of their process, and have the outcome of its sends.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.history.operation import SEND_OFFSETS, Outcome

SENDS: Final = ("key", "value", "process", "outcome", "return_ns")
"""The columns of `records` that are compared, of its sends."""

_NONE: Final = -1
_OUTCOMES: Final = (Outcome.OK, Outcome.FAIL, Outcome.INFO)
_OK, _FAIL, _INFO = 1, 2, 4
_ANY: Final = _OK | _FAIL | _INFO
_BITS: Final = {Outcome.OK: _OK, Outcome.FAIL: _FAIL, Outcome.INFO: _INFO}

_Numbers = NDArray[np.int64]


def self_contradiction(transactions: pa.Table) -> str:
    """Return where the table contradicts itself; empty if nowhere."""
    lengths = (pc.list_value_length(transactions[name]) for name in ("keys", "values"))
    if not pc.all(pc.equal(*lengths)).as_py():
        return "of which some have more keys than values, or fewer"
    last: dict[int, dict[str, Any]] = {}
    columns = ("index", "process", "begin_ns", "end_call_ns", "return_ns", "outcome", "error")
    for row in _rows(transactions, columns):
        before = last.get(row["process"])
        last[row["process"]] = row
        if before is not None and before["return_ns"] is None:
            return f"{before['index']} has no end, and its process began {row['index']}"
        if before is not None and before["return_ns"] > row["begin_ns"]:
            return f"{row['index']} begins before {before['index']} of its process has ended"
        end_ns, return_ns = row["end_call_ns"], row["return_ns"]
        if row["outcome"] == Outcome.OK and (None in (end_ns, return_ns) or row["error"]):
            return f"{row['index']} is ok, without an end that was called and acknowledged"
        if end_ns is not None and not row["begin_ns"] <= end_ns <= (return_ns or end_ns):
            return f"{row['index']} was to be ended at {end_ns} ns, outside itself"
    return ""


def unlike_sends(transactions: pa.Table, sends: pa.Table) -> str:
    """Return a transaction and a send that contradict each other; empty if there are none.

    `sends` has SENDS; `transactions` tells of no other keys. Memory is that of both.
    """
    owners = pc.list_parent_indices(transactions["keys"].combine_chunks()).to_numpy()
    keys = pc.list_flatten(transactions["keys"].combine_chunks())
    values = pc.list_flatten(transactions["values"].combine_chunks()).to_numpy()
    index = transactions["index"].to_numpy()
    allowed = np.array([_sends_of(row) for row in _rows(transactions, _ENDS)], dtype=np.int64)
    process = transactions["process"].to_numpy()
    for key in sorted({*pc.unique(keys).to_pylist(), *pc.unique(sends["key"]).to_pylist()}):
        told = pc.equal(keys, key).to_numpy(zero_copy_only=False)
        value, owner = values[told], owners[told].astype(np.int64)
        mine = sends.filter(pc.equal(sends["key"], key))
        place = _places(value, among=mine["value"].to_numpy())
        if np.any(place < 0):
            wrong = int(np.argmax(place < 0))
            return (
                f"transaction {index[owner[wrong]]} tells of value {value[wrong]} of {key}, and no "
                "client sent it"
            )
        if len(np.unique(place)) < len(place):
            return f"a value of {key} is told of by several transactions"
        bits, by = _bits(mine["outcome"]), mine["process"].to_numpy()
        strange = (by[place] != process[owner]) | ((bits[place] & allowed[owner]) == 0)
        if np.any(strange):
            wrong = int(np.argmax(strange))
            row = mine.slice(int(place[wrong]), 1).to_pylist()[0]
            return (
                f"transaction {index[owner[wrong]]} is not as its send of value {value[wrong]} "
                f"to {key} by process {row['process']}, which is {row['outcome']}"
            )
        ended = pc.is_valid(mine["return_ns"]).to_numpy()
        ended[place] = False
        if np.any(ended):
            row = mine.slice(int(np.argmax(ended)), 1).to_pylist()[0]
            return (
                f"process {row['process']} sent value {row['value']} to {key}, which is of no "
                "transaction"
            )
    return ""


def unlike_offsets(transactions: pa.Table, group_offsets: pa.Table) -> str:
    """Return offsets that were sent otherwise than their transaction says; empty if there are none.

    Both tables are in the order of their begins.
    """
    sent = group_offsets.filter(pc.equal(group_offsets["f"], SEND_OFFSETS))
    of_process: dict[int, list[dict[str, Any]]] = {}
    for row in _rows(transactions, ("index", "process", "begin_ns", *_ENDS)):
        of_process.setdefault(row["process"], []).append(row)
    begins = {one: [row["begin_ns"] for row in rows] for one, rows in of_process.items()}
    for row in _rows(sent, ("index", "process", "call_ns", "return_ns", "outcome")):
        began = begins.get(row["process"], [])
        place = int(np.searchsorted(began, row["call_ns"], side="right")) - 1
        owner = of_process[row["process"]][place] if place >= 0 else None
        ends_ns = None if owner is None else owner["end_call_ns"] or owner["return_ns"]
        if owner is None or (ends_ns is not None and ends_ns < row["call_ns"]):
            return f"row {row['index']} sent offsets outside a transaction"
        if row["return_ns"] is None and place < len(began) - 1:
            return f"row {row['index']} has no end, and its process began another transaction"
        if row["return_ns"] is not None and not _BITS[Outcome(row["outcome"])] & _sends_of(owner):
            return (
                f"row {row['index']} is {row['outcome']}, and it was sent with transaction "
                f"{owner['index']}, of which that cannot be"
            )
    return ""


_ENDS: Final = ("intent", "outcome", "end_call_ns", "return_ns")


def _sends_of(transaction: dict[str, Any]) -> int:
    """Return the outcomes, as a sum of bits, that the sends of a transaction may have."""
    if transaction["return_ns"] is None:
        return _ANY
    match transaction["intent"], Outcome(transaction["outcome"]):
        case "commit", Outcome.OK:
            return _OK
        case "commit", Outcome.INFO:
            return _INFO
        case _:
            # It was aborted, or never asked for a commit, whatever became of the abort.
            return _FAIL


def _rows(table: pa.Table, columns: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for batch in table.select(list(columns)).to_batches(max_chunksize=1 << 14):
        yield from batch.to_pylist()


def _bits(outcomes: pa.ChunkedArray) -> _Numbers:
    bits = np.zeros(len(outcomes), dtype=np.int64)
    for one in _OUTCOMES:
        bits[pc.equal(outcomes, one.value).to_numpy()] = _BITS[one]
    return bits


def _places(values: _Numbers, *, among: _Numbers) -> _Numbers:
    """Return the place of each value; `_NONE` for an absent one."""
    if not len(among):
        return np.full(len(values), _NONE, dtype=np.int64)
    order = np.argsort(among, kind="stable")
    place = np.searchsorted(among[order], values).clip(max=len(among) - 1)
    return np.where(among[order[place]] == values, order[place], _NONE).astype(np.int64)
