"""D1 lost-write: a record that must be there was not returned, though reading went beyond it.

The bound is the highest position that any ok read reached, final reads included. A value at or
below it that must have happened, and that no ok read returned, is lost: a reader is shown record n
only when every committed record before n stands in the log.

Sound because
- only values that must have happened are required, so that a crashed send is never missed;
- the place compared is the position in the log, not a time: whatever was concurrent with what, a
  reader that was returned a later record has passed this one;
- absence proves something only where somebody looked. Where no ok read went over the value's place
  and no complete final read was called after its acknowledgement, the value is unread, perhaps not
  lost (a consumer that resumed behind it after a crash). It is then a doubt, not an anomaly, and
  the key cannot be called valid.

It does not see a value whose offset nobody knows, nor one above the bound (D13), nor one that was
returned once and is gone now (D18). Records must not be removed by retention or compaction.

Source: Jepsen's Kafka workload (`lost-write`).
"""

import numpy as np

from checkers.anomaly import Found, Proof, found
from checkers.kernels.key_log import KeyLog
from checkers.kernels.missing import acknowledged_before, looked_over, missing

__all__ = ["lost_writes"]


def lost_writes(log: KeyLog) -> Found:
    """Values at or below the bound that must have happened and that no ok read returned."""
    absent = missing(log)
    below = absent.where((absent.position >= 0) & (absent.position <= log.bound))
    proven = looked_over(log, below.position) | acknowledged_before(log, below.send)
    lost = below.where(proven)
    reader = _reader_of_the_bound(log)
    offset_at = log.log.offset[np.searchsorted(log.log.position, lost.position)]

    def proof(number: int) -> Proof:
        send = lost.send[number]
        offset, value = int(offset_at[number]), int(log.sends.value[send])
        operation = int(log.sends.operation[send])
        reached = int(log.reads.offset[reader])
        reading = int(log.reads.operation[reader])
        return Proof(
            operations=(operation, reading),
            offsets=(offset, reached),
            values=(value,),
            detail=f"value {value} must have happened (operation {operation}) and stood at offset "
            f"{offset}; operation {reading} read up to offset {reached}, and no ok read "
            f"returned it",
        )

    numbers = np.arange(len(lost.send))
    return found(
        "lost-write",
        log.key,
        never=numbers,
        proof=proof,
        doubt=_doubt(log, int(np.count_nonzero(~proven))),
    )


def _reader_of_the_bound(log: KeyLog) -> int:
    """A read row that reached the bound; 0 if there is none (then nothing is lost, either)."""
    at_bound = log.reads.ok & (log.read_position == log.bound) & (log.read_entry >= 0)
    return int(np.argmax(at_bound)) if len(at_bound) else 0


def _doubt(log: KeyLog, unread_count: int) -> str:
    if not unread_count:
        return ""
    return (
        f"{unread_count} values below the highest offset read were returned by no ok read of "
        f"{log.key}, but no read went over their place and no complete final read followed"
    )
