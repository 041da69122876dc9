"""D13 unseen: An acknowledged record is not in the final read.

A value that was acknowledged before the last complete final read of its key was called, that no ok
read returned, and that does not stand at or below the bound of lost-write. Unknown for a key with
acknowledged sends and no complete final read.

A complete final read goes from the first to the last offset of the key, after healing. What stands
at or below the bound of lost-write is that check's.

Sound because
- acknowledged and called are compared strictly: at equal times the two were concurrent;
- an acknowledgement under acks=all says that the record is below the high watermark of its leader,
  and a reader that asks for the end of the log afterwards is told at least that much (a new leader
  that does not know yet answers OFFSET_NOT_AVAILABLE, KIP-207);
- a value acknowledged after the final read was called is not required (there should be none).

A value acknowledged without an offset (acks=0) has no position, so it can only be unseen.

Meaning: An acknowledged record is gone, at the end of the log or with all of it.
Case: an acknowledged record with a complete final read after it
Source: Jepsen, workload `kafka`, `unseen`; KIP-207
"""

from typing import Final

import numpy as np

from fencepost.checkers.anomaly import Found, found, none
from fencepost.checkers.data_plane.key_check import KeyCheck
from fencepost.checkers.data_plane.key_log import KeyLog
from fencepost.checkers.data_plane.missing import acknowledged_before, missing
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import UNKNOWN_OFFSET


def unseen(log: KeyLog) -> Found:
    """Find acknowledged values above the bound that the complete final read did not return."""
    if not log.final_reads:
        count = int(np.count_nonzero(log.sends.ok))
        doubt = unread_doubt(log.key, count)
        return none("unseen", log.key, cases=0, doubt=doubt, doubt_count=count)
    absent = missing(log)
    above = absent.where((absent.offset == UNKNOWN_OFFSET) | (absent.offset > log.bound))
    gone = above.where(acknowledged_before(log, above.send))
    last = log.final_reads[-1]
    acknowledged = log.sends.ok & (log.sends.return_ns < last.call_ns)

    def proof(number: int) -> Proof:
        send = gone.send[number]
        value, offset = int(log.sends.value[send]), int(log.sends.offset[send])
        operation = int(log.sends.operation[send])
        known = offset != UNKNOWN_OFFSET
        return Proof.of(
            f"value {{value}} was acknowledged{' at offset {offset}' if known else ''} (operation "
            "{operation}, at {return_}) before the complete final read (operation "
            "{final_read}, from {call}), and no ok read returned it",
            operations={"operation": operation, "final_read": last.operation},
            offsets={"offset": offset if known else None},
            values={"value": value},
            times={"return_": int(log.sends.return_ns[send]), "call": last.call_ns},
            sources=dict.fromkeys(("value", "offset", "return_"), "operation")
            | {"call": "final_read"},
        )

    return found(
        "unseen",
        log.key,
        cases=int(np.count_nonzero(acknowledged)),
        never=np.arange(len(gone.send)),
        proof=proof,
        order=log.sends.row[gone.send],
    )


def unread_doubt(key: str, count: int) -> str:
    """Return why a key with `count` acknowledged sends and no complete final read is unknown."""
    return f"{key} has {count} acknowledged sends and no complete final read" if count else ""


CHECKS: Final = (
    KeyCheck(
        entry=CatalogueEntry.of(
            __doc__,
            nearness=Nearness.RECORD,
            rests_on=("unique-values", "whole-records"),
            needs=("operations", "records"),
        ),
        kernel=unseen,
        doubt=unread_doubt,
    ),
)
