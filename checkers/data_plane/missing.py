"""Sends that must have happened but that no ok read returned, and the reads that should have.

The absence of a value proves something only if a client looked where it stands:

- a reader that was returned records on both sides of it, in one unbroken session, went over it;
- so did a process that assigned itself the key and was returned a record behind it: its first
  session starts at the first offset of the key;
- a complete final read went over everything up to the last record it returned, and over everything
  that was acknowledged before it was called.

A reader that resumed behind a value (after a rebalance, or in place of one whose last poll crashed)
looked at nothing before that place.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.data_plane.key_log import KeyLog
from fencepost.checkers.data_plane.key_summary import Spans, spans_of, stretches_read
from fencepost.checkers.rows import OK, UNKNOWN_OFFSET, taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Sends that must have happened and that no ok read returned, in the order of the history."""

    send: NDArray[np.int64]
    """Its row in `KeyLog.sends`."""
    offset: NDArray[np.int64]
    """Its lowest known offset; `UNKNOWN_OFFSET` without a known one."""

    def where(self, kept: NDArray[np.bool_]) -> "Missing":
        """Return those that are kept."""
        return taken(self, kept)


def missing(log: KeyLog) -> Missing:
    """Return all of them."""
    send = np.flatnonzero(log.happened & ~log.returned)
    offset = np.where(log.send_entry[send] < 0, UNKNOWN_OFFSET, log.sends.offset[send])
    crashed = ~log.reads.ok & (log.reads.offset != UNKNOWN_OFFSET)
    if len(send) and np.any(crashed):
        offset = _lowest(offset, log.sends.value[send], log, np.flatnonzero(crashed))
    return Missing(send=send, offset=offset)


def acknowledged_before(log: KeyLog, send: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of these sends were acknowledged when the last complete final read was called.

    At equal times they were concurrent, so the final read owes nothing.
    """
    if not log.final_reads:
        return np.zeros(len(send), dtype=np.bool_)
    ok: NDArray[np.bool_] = log.sends.outcome[send] == OK
    return ok & (log.sends.return_ns[send] < log.final_reads[-1].call_ns)


def looked_over(log: KeyLog, offset: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of these offsets some ok read went over or stood on (module docstring)."""
    if not len(offset):
        return np.zeros(0, dtype=np.bool_)
    spans = log.around.spans if log.around else _spans(log)
    over: NDArray[np.bool_] = spans.hold(offset) & (offset != UNKNOWN_OFFSET)
    return over


def _lowest(
    offset: NDArray[np.int64],
    value: NDArray[np.int64],
    log: KeyLog,
    crashed: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Take into account where reads that are not ok saw these values."""
    order = np.argsort(value, kind="stable")
    place = np.searchsorted(value[order], log.reads.value[crashed])
    place[place == len(order)] = 0
    hit = value[order][place] == log.reads.value[crashed]
    lowest = np.where(offset == UNKNOWN_OFFSET, np.iinfo(np.int64).max, offset)
    np.minimum.at(lowest, order[place[hit]], log.reads.offset[crashed[hit]])
    return np.where(lowest == np.iinfo(np.int64).max, np.int64(UNKNOWN_OFFSET), lowest)


def _spans(log: KeyLog) -> Spans:
    stretches = stretches_read(log.reads, final=log.final, info_polls=log.setting.info_polls)
    return spans_of([stretches], assigned=log.setting.consume == "assign")
