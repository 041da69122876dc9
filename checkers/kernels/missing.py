"""Sends that must have happened and that no ok read returned, and who should have met them.

What a value's absence proves depends on whether anybody looked where it stands:

- a reader that was returned records on both sides of it, in one unbroken session, went over it;
- so did a process that assigned itself the key and was returned a record behind it: its first
  session starts at the first offset of the key;
- a complete final read went over everything up to the last record it returned, and over everything
  that was acknowledged before it was called.

A reader that resumed behind a value (after a rebalance, or in place of one whose last poll crashed)
looked at nothing before that place.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from checkers.kernels.key_log import KeyLog
from checkers.kernels.rows import OK, UNKNOWN_OFFSET

__all__ = ["Missing", "acknowledged_before", "looked_over", "missing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Sends that must have happened and that no ok read returned, in the order of the history."""

    send: NDArray[np.int64]
    """Its row in `KeyLog.sends`."""
    position: NDArray[np.int64]
    """Its lowest known position; -1 if nobody knows where it stands."""

    def where(self, kept: NDArray[np.bool_]) -> "Missing":
        """Those that are kept."""
        return Missing(send=self.send[kept], position=self.position[kept])


def missing(log: KeyLog) -> Missing:
    """All of them."""
    send = np.flatnonzero(log.happened & ~log.returned)
    position = log.send_position[send]
    crashed = ~log.reads.ok & (log.reads.offset != UNKNOWN_OFFSET)
    if len(send) and np.any(crashed):
        position = _lowest(position, log.sends.value[send], log, np.flatnonzero(crashed))
    return Missing(send=send, position=position)


def acknowledged_before(log: KeyLog, send: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these sends had been acknowledged when the last complete final read was called.

    At equal times they were concurrent, so the final read owes nothing.
    """
    if not log.final_reads:
        return np.zeros(len(send), dtype=np.bool_)
    ok: NDArray[np.bool_] = log.sends.outcome[send] == OK
    return ok & (log.sends.return_ns[send] < log.final_reads[-1].call_ns)


def looked_over(log: KeyLog, position: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these positions some ok read went over or stood on, as this module's head says."""
    if not len(position):
        return np.zeros(0, dtype=np.bool_)
    start, end = _spans(log)
    opened = np.zeros(len(log.log) + 1, dtype=np.int64)
    np.add.at(opened, start, 1)
    np.add.at(opened, end + 1, -1)
    over: NDArray[np.bool_] = (np.cumsum(opened) > 0)[position]
    return over & (position >= 0)


def _lowest(
    position: NDArray[np.int64],
    value: NDArray[np.int64],
    log: KeyLog,
    crashed: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Take into account where reads that are not ok saw these values."""
    order = np.argsort(value, kind="stable")
    place = np.searchsorted(value[order], log.reads.value[crashed])
    place[place == len(order)] = 0
    hit = value[order][place] == log.reads.value[crashed]
    lowest = np.where(position < 0, np.iinfo(np.int64).max, position)
    np.minimum.at(lowest, order[place[hit]], log.read_position[crashed[hit]])
    return np.where(lowest == np.iinfo(np.int64).max, np.int64(-1), lowest)


def _spans(log: KeyLog) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The lowest and the highest position of each unbroken stretch of ok reading.

    A stretch that is known to start at the first offset starts at position 0.
    """
    row = np.flatnonzero(log.reads.ok & (log.read_entry >= 0))
    final, operation = log.final[row], log.reads.operation[row]
    stretch = {
        "process": log.reads.process[row].astype(np.int64),
        "final_read": np.where(final, operation, -1),
        "session": np.where(final, 0, log.reads.session[row]),
        "crashed": np.where(final, 0, _crashed_before(log, row)),
    }
    order = np.lexsort(tuple(stretch.values()))
    stretch = {name: column[order] for name, column in stretch.items()}
    first = np.flatnonzero(_changes(stretch.values()))
    position = log.read_position[row][order]
    from_start = (stretch["final_read"] >= 0) | (
        (log.setting.consume == "assign") & (stretch["session"] == 0) & (stretch["crashed"] == 0)
    )
    position = np.where(from_start, np.minimum(position, 0), position)
    # reduceat wants at least one place; without rows there are none, and nothing to reduce.
    if not len(first):
        return first, first
    highest = np.maximum.reduceat(log.read_position[row][order], first)
    return np.minimum.reduceat(position, first), highest


def _crashed_before(log: KeyLog, row: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many polls of the same process had crashed before this row's operation."""
    count = np.zeros(len(row), dtype=np.int64)
    for process, polls in log.setting.info_polls.items():
        mine = log.reads.process[row] == process
        count[mine] = np.searchsorted(polls, log.reads.operation[row][mine])
    return count


def _changes(columns: Iterable[NDArray[np.int64]]) -> NDArray[np.bool_]:
    """Where a new combination starts in these sorted parallel columns."""
    parts = [np.diff(column, prepend=column[:1] - 1) != 0 for column in columns]
    changed: NDArray[np.bool_] = np.logical_or.reduce(parts)
    return changed
