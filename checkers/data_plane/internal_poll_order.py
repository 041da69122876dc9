"""D7: the records that one poll, or one final read, returned are neighbours, in order.

Compared are neighbours inside one ok operation and one session of it: where the operation saw a
rebalance of the key, the two sides are not compared. Everything else is as in `poll_order`: a step
back or none is `internal-nonmonotonic-poll`, a step over a record is `internal-skipped-poll`.

Sound because one fetch position moves through the log inside an operation, and nothing but a
rebalance sets it; gaps without records do not count.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.anomaly import Found, found
from fencepost.checkers.data_plane.key_check import KeyCheck
from fencepost.checkers.data_plane.key_log import KeyLog
from fencepost.checkers.data_plane.poll_order import step_proof
from fencepost.checkers.entry import CatalogueEntry, Nearness


def internal_nonmonotonic_polls(log: KeyLog) -> Found:
    """Find steps inside an operation that lead back, or stay."""
    return _found("internal-nonmonotonic-poll", log, log.inside.delta < 1)


def internal_skipped_polls(log: KeyLog) -> Found:
    """Find steps inside an operation that leave records out."""
    return _found("internal-skipped-poll", log, log.inside.delta > 1)


def _found(check: str, log: KeyLog, wrong: NDArray[np.bool_]) -> Found:
    steps = log.inside.where(wrong & log.inside.unbroken)
    return found(
        check,
        log.key,
        cases=log.step_counts.inside,
        never=np.arange(len(steps.delta)),
        proof=lambda number: step_proof(steps, number),
        order=steps.pairs.after.row,
    )


_INTERNAL_NONMONOTONIC_POLL: Final = CatalogueEntry.of(
    """D7a internal-nonmonotonic-poll: One poll returned records in the wrong order.

    Delta below 1 between neighbours inside one ok poll or final read and one session.

    Meaning: A batch of records is out of order, or holds a record twice.
    Case: a step from a record to the next one within an ok poll or final read
    Source: Jepsen, workload `kafka`, `int-nonmonotonic-poll`
    """,
    nearness=Nearness.CLIENT,
    rests_on=("whole-records",),
    needs=("operations", "records"),
)

_INTERNAL_SKIPPED_POLL: Final = CatalogueEntry.of(
    """D7b internal-skipped-poll: One poll left records out.

    Delta above 1 between neighbours inside one ok poll or final read and one session.

    Meaning: A batch of records has a hole where the log holds a record.
    Case: a step from a record to the next one within an ok poll or final read
    Source: Jepsen, workload `kafka`, `int-poll-skip`
    """,
    nearness=Nearness.CLIENT,
    rests_on=("whole-records",),
    needs=("operations", "records"),
)

CHECKS: Final = (
    KeyCheck(
        entry=_INTERNAL_NONMONOTONIC_POLL,
        kernel=internal_nonmonotonic_polls,
        by_place=True,
    ),
    KeyCheck(
        entry=_INTERNAL_SKIPPED_POLL,
        kernel=internal_skipped_polls,
        by_place=True,
    ),
)
