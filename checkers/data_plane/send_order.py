"""D8 nonmonotonic-send: A producer's records are not in the order it sent them.

Of two neighbouring sends of a process that are ok, the later one stands at an earlier position.

Compared are neighbours among the sends of one process that are ok and know their offset, in the
order in which it queued them (operation index, then place in the operation). An idempotent producer
keeps that order through retries, so it never goes back; one without idempotence may be reordered by
a retry while later batches are in flight, and that is reported as allowed.

Sound because the position is that of the acknowledgement itself, so nothing is inferred; sends that
are not ok, or whose offset is not known, are left out, which can only hide a step back.

Meaning: The order that a producer relies on within a partition was not kept.
Allowed if: the producers were not idempotent: with several batches in flight, a retry reorders them
Case: a step from a process's ok send to the key to its next one
Source: Jepsen, workload `kafka`, `nonmonotonic-send`; KIP-98
"""

from typing import Final

import numpy as np

from fencepost.checkers.anomaly import Found, found
from fencepost.checkers.data_plane.key_check import KeyCheck
from fencepost.checkers.data_plane.key_log import KeyLog
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.proof import Proof


def nonmonotonic_sends(log: KeyLog) -> Found:
    """Find neighbouring sends of one process whose positions go back."""
    before, after = log.sent_back.before, log.sent_back.after

    def proof(number: int) -> Proof:
        first, second = int(before.operation[number]), int(after.operation[number])
        offsets = (int(before.offset[number]), int(after.offset[number]))
        return Proof.of(
            "process {process} sent operation {first} before operation {second}, but "
            "they stand at offsets {before} and {after}",
            operations={"first": first, "second": second},
            offsets={"before": offsets[0], "after": offsets[1]},
            values={"value": int(before.value[number]), "after_value": int(after.value[number])},
            sources={
                "before": "first",
                "value": "first",
                "after": "second",
                "after_value": "second",
            },
            process=after.process[number],
        )

    numbers, nothing = np.arange(len(after)), np.arange(0)
    never, allowed = (numbers, nothing) if log.setting.idempotent else (nothing, numbers)
    return found(
        "nonmonotonic-send",
        log.key,
        cases=log.step_counts.sends,
        never=never,
        allowed=allowed,
        proof=proof,
        order=after.row,
    )


CHECKS: Final = (
    KeyCheck(
        entry=CatalogueEntry.of(
            __doc__,
            nearness=Nearness.CLIENT,
            promise="idempotent",
            rests_on=("dense-indices",),
            needs=("operations", "records"),
        ),
        kernel=nonmonotonic_sends,
        by_place=True,
    ),
)
