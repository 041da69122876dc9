"""D2 aborted-read: A failed send, or one of an aborted transaction, was read.

An ok read returned a value whose send failed. A send of a transaction failed if an abort was
acknowledged, or if a commit was never asked for; reads are then at read_committed.

`fail` is a claim of the error registry: the send surely did not happen. A reader that is returned
the value all the same was shown what does not exist, or the registry is wrong about the error;
either way the run cannot pass.

Sound because only ok reads count (a crashed poll gave its reader nothing) and because an indefinite
error is info, never fail. A value that no client sent is not this anomaly: it breaks the assumption
`sent-values`.

Meaning: The producer was told that the record does not exist, or saw to it, and a consumer got it.
Case: a record whose send failed, or that an aborted transaction sent
Source: Adya, Liskov, O'Neil 2000, G1a; Jepsen, workload `kafka`, `G1a`
"""

from typing import Final

import numpy as np

from fencepost.checkers.anomaly import Found, found
from fencepost.checkers.data_plane.key_check import KeyCheck
from fencepost.checkers.data_plane.key_log import KeyLog, rows_at
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import FAIL


def aborted_reads(log: KeyLog) -> Found:
    """Find rows of ok reads whose value was sent by an operation that failed."""
    failed = np.flatnonzero(log.sends.outcome == FAIL)
    row = rows_at(log, log.entry_returned & ~log.entry_sent, among=log.sends.value[failed])
    row = row[log.reads.ok[row]]
    by_value = failed[np.argsort(log.sends.value[failed], kind="stable")]
    sender_of = by_value[np.searchsorted(log.sends.value[by_value], log.reads.value[row])]

    def proof(number: int) -> Proof:
        read = row[number]
        value, offset = int(log.reads.value[read]), int(log.reads.offset[read])
        send = int(log.sends.operation[sender_of[number]])
        reading = int(log.reads.operation[read])
        return Proof.of(
            "operation {reading} returned value {value} at offset {offset}, but its send "
            "(operation {send}) failed: it must not exist",
            operations={"send": send, "reading": reading},
            offsets={"offset": offset},
            values={"value": value},
            sources={"value": "reading", "offset": "reading"},
        )

    return found(
        "aborted-read",
        log.key,
        cases=len(failed),
        never=np.arange(len(row)),
        proof=proof,
        order=log.reads.row[row],
    )


CHECKS: Final = (
    KeyCheck(
        entry=CatalogueEntry.of(
            __doc__,
            nearness=Nearness.RECORD,
            rests_on=("unique-values",),
            needs=("operations", "records"),
        ),
        kernel=aborted_reads,
    ),
)
