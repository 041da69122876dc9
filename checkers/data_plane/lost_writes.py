"""D1 lost-write: A record is missing below what was read.

The bound is the highest position that any ok read reached. Each value at or below it that must have
happened and that no ok read returned is lost; so is each acknowledged value that an ok read
returned and a complete final read called after both did not. Where no read went over its place and
no complete final read followed, the key is unknown instead.

A reader is shown record n only when every committed record before n stands in the log.

Sound because
- only values that must have happened are required, so that a crashed send is never missed;
- the place compared is the position in the log, not a time: whatever was concurrent with what, a
  reader that was returned a later record has passed this one;
- absence proves something only where a client looked. Where no ok read went over the value's place
  and no complete final read was called after its acknowledgement, the value is unread, perhaps not
  lost (a consumer that resumed behind it after a crash). It is then a doubt, not an anomaly, and
  the key cannot be called valid.

A value that was read once and is gone in the end is lost, too: a consumer that keeps up with the
producers returns every value within milliseconds, and when the log is cut after that, no reader is
missing anything.

It does not see a value whose offset is unknown, nor one above the bound (D13). Records must not be
removed by retention or compaction.

Meaning: An acknowledged record is gone, while later ones are there.
Case: an acknowledged record that was read, or any that must have been written and that a read
should have returned
Source: Jepsen, workload `kafka`, `lost-write`
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.anomaly import Found, found
from fencepost.checkers.data_plane.key_check import KeyCheck
from fencepost.checkers.data_plane.key_log import KeyLog
from fencepost.checkers.data_plane.key_summary import reader_of
from fencepost.checkers.data_plane.missing import acknowledged_before, looked_over, missing
from fencepost.checkers.data_plane.vanished import vanished_before
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.membership import is_among
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import UNKNOWN_OFFSET
from fencepost.checkers.setting import FinalRead

_AFTERWARDS: Final = 1 << 62
"""The key by which values that were read once sort after values that were never read."""


def lost_writes(log: KeyLog) -> Found:
    """Find values at or below the bound that no ok read returned, or a final read lacks again."""
    absent = missing(log)
    below = absent.where((absent.offset != UNKNOWN_OFFSET) & (absent.offset <= log.bound))
    proven = looked_over(log, below.offset) | acknowledged_before(log, below.send)
    lost = below.where(proven)
    unread_count = int(np.count_nonzero(~proven))
    reading = _reader_of_the_bound(log)
    forgotten = _forgotten(log)

    def proof(number: int) -> Proof:
        if number >= len(lost.send):
            return _proof_of_forgotten(log, forgotten[number - len(lost.send)])
        send = lost.send[number]
        offset, value = int(lost.offset[number]), int(log.sends.value[send])
        operation = int(log.sends.operation[send])
        return Proof.of(
            "value {value} must have happened (operation {operation}) and stood at "
            "offset {offset}; operation {reading} read up to offset {bound}, and no ok "
            "read returned it",
            operations={"operation": operation, "reading": reading},
            offsets={"offset": offset, "bound": log.bound},
            values={"value": value},
            sources={"value": "operation", "offset": "operation", "bound": "reading"},
        )

    again = np.array([row for _, row, _ in forgotten], dtype=np.int64)
    return found(
        "lost-write",
        log.key,
        cases=_read_count(log) + len(lost.send),
        never=np.arange(len(lost.send) + len(forgotten)),
        proof=proof,
        doubt=unread_below_doubt(log.key, unread_count),
        doubt_count=unread_count,
        order=np.concatenate([log.sends.row[lost.send], _AFTERWARDS + log.reads.row[again]]),
    )


def unread_below_doubt(key: str, count: int) -> str:
    """Return why a key with `count` values neither read nor looked for is unknown; empty for 0."""
    if not count:
        return ""
    return (
        f"{count} values below the highest offset read were returned by no ok read of {key}, but "
        f"no read went over their place and no complete final read followed"
    )


def _read_count(log: KeyLog) -> int:
    """Count acknowledged values that were read and would have been missed."""
    read = log.sends.ok & log.returned
    if not log.final_reads:
        # The places of the others are unknown, so reading cannot be said to have gone beyond them.
        read &= log.send_entry >= 0
    return int(np.count_nonzero(read))


def _forgotten(log: KeyLog) -> list[tuple[int, int, FinalRead]]:
    """Find (send, read, final read) rows of acknowledged values that were read, later no more.

    One a value, by the order of the reads, with the first final read that proves it.
    """
    first: dict[int, tuple[int, int, FinalRead]] = {}
    for final_read in log.final_reads:
        row = vanished_before(final_read, log)
        send = _acknowledged(log, log.reads.value[row], before_ns=final_read.call_ns)
        for one_send, one_row in zip(send.tolist(), row.tolist(), strict=True):
            if one_send >= 0:
                first.setdefault(int(log.reads.value[one_row]), (one_send, one_row, final_read))
    return sorted(first.values(), key=lambda found_row: found_row[1])


def _acknowledged(log: KeyLog, values: NDArray[np.int64], *, before_ns: int) -> NDArray[np.int64]:
    """Return the send of each of these distinct values, if it was acknowledged before; else -1.

    Strictly: at equal times the acknowledgement and the final read were concurrent.
    """
    earlier = np.flatnonzero(log.sends.ok & (log.sends.return_ns < before_ns))
    earlier = earlier[is_among(log.sends.value[earlier], values)]
    order = np.argsort(values)
    send = np.full(len(values), -1, dtype=np.int64)
    send[order[np.searchsorted(values[order], log.sends.value[earlier])]] = earlier
    return send


def _proof_of_forgotten(log: KeyLog, found_row: tuple[int, int, FinalRead]) -> Proof:
    send, row, final_read = found_row
    value, offset = int(log.sends.value[send]), int(log.reads.offset[row])
    operation, reading = int(log.sends.operation[send]), int(log.reads.operation[row])
    return Proof.of(
        "value {value} was acknowledged (operation {operation}) and read at offset "
        "{offset} (operation {reading}), and the complete final read that was called "
        "afterwards (operation {final_read_operation}) did not return it",
        operations={
            "operation": operation,
            "reading": reading,
            "final_read_operation": final_read.operation,
        },
        offsets={"offset": offset},
        values={"value": value},
        sources={"value": "operation", "offset": "reading"},
    )


def _reader_of_the_bound(log: KeyLog) -> int:
    """Return the first operation that read up to the bound; 0 without one (nothing is lost)."""
    if log.around:
        return log.around.reader
    return reader_of(log.bound, log.reads)


CHECKS: Final = (
    KeyCheck(
        entry=CatalogueEntry.of(
            __doc__,
            nearness=Nearness.RECORD,
            rests_on=("unique-values", "whole-records"),
            needs=("operations", "records"),
        ),
        kernel=lost_writes,
        doubt=unread_below_doubt,
    ),
)
