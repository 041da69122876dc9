"""D5 nonmonotonic-poll and D6 skipped-poll: from one poll of a process to its next.

Compared are the last record of a process's last ok poll of the key and the first record of its next
one. Within one session (one unbroken ownership of the key by the process) the step must lead to the
very next record: never back, never over one. Under subscribe a rebalance may end a session, and the
next one resumes at the committed offset: that is reported, and allowed. Under assign a new session
is a new assignment, which forgets where the old one stood.

Sound because
- a poll that is not ok may have consumed records that were not recorded, so that a step over one
  proves nothing (`checkers.data_plane.steps`);
- a process has one poll open at a time, so that its polls have an order: an assumption that is
  checked first;
- positions are ranks among the offsets that hold a known record: gaps are legal.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.anomaly import Found, found
from fencepost.checkers.data_plane.key_check import KeyCheck
from fencepost.checkers.data_plane.key_log import KeyLog
from fencepost.checkers.data_plane.steps import FAR, OddSteps
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.proof import Proof

_STEP: Final = (
    "process {process} went from offset {before} (operation {first}) to offset {after} "
    "(operation {second})"
)


def nonmonotonic_polls(log: KeyLog) -> Found:
    """Find steps between polls that lead back, or stay."""
    return _found("nonmonotonic-poll", log, log.across.where(log.across.delta < 1))


def skipped_polls(log: KeyLog) -> Found:
    """Find steps between polls that leave records out."""
    return _found("skipped-poll", log, log.across.where(log.across.delta > 1))


def step_proof(steps: OddSteps, number: int) -> Proof:
    """Return the two records of a step, by operation, offset and value."""
    before, after = steps.pairs.before, steps.pairs.after
    first, second = int(before.operation[number]), int(after.operation[number])
    proof = Proof.of(
        _STEP,
        operations={"first": first, "second": second},
        offsets={"before": int(before.offset[number]), "after": int(after.offset[number])},
        values={"left": int(before.value[number]), "reached": int(after.value[number])},
        sources={"before": "first", "left": "first", "after": "second", "reached": "second"},
        process=after.process[number],
    )
    delta = int(steps.delta[number])
    return proof if abs(delta) >= FAR else measured(proof, delta)


def is_unmeasured(proof: Proof) -> bool:
    """Return whether it is about a step between two segments of a key, whose delta is not known."""
    return proof.rule == _STEP


def measured(proof: Proof, delta: int) -> Proof:
    """Return the proof of a step that leads so far."""
    if delta > 1:
        return proof.further(
            ", which skips {skipped} records: the delta is {delta}, not 1",
            skipped=delta - 1,
            delta=delta,
        )
    return proof.further(", which leads back or stays: the delta is {delta}, not 1", delta=delta)


def _found(check: str, log: KeyLog, steps: OddSteps) -> Found:
    return found(
        check,
        log.key,
        cases=log.step_counts.across,
        never=np.flatnonzero(steps.unbroken),
        allowed=_allowed(log, steps),
        proof=lambda number: step_proof(steps, number),
        order=steps.pairs.after.row,
    )


def _allowed(log: KeyLog, steps: OddSteps) -> NDArray[np.int64]:
    """Return broken steps of processes that may have subscribed; an assigning one forgets."""
    if log.setting.consume == "assign":
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(~steps.unbroken)


_NONMONOTONIC_POLL: Final = CatalogueEntry.of(
    """D5 nonmonotonic-poll: A consumer went back.

    Delta below 1 between the last record of a process's last ok poll of the key and the first
    record of its next one. A new assignment forgets.

    Meaning: A consumer was given records again, without having asked for them.
    Allowed if: consumers subscribed, and the step leads from one session of theirs to another or
    over a poll that crashed
    Case: a step from a process's ok poll of the key to its next one, within one session
    Source: Jepsen, workload `kafka`, `nonmonotonic-poll`
    """,
    nearness=Nearness.CLIENT,
    rests_on=("dense-indices", "one-poll-at-a-time", "whole-records"),
    needs=("operations", "records"),
)

_SKIPPED_POLL: Final = CatalogueEntry.of(
    """D6 skipped-poll: A consumer was not given records in between.

    As nonmonotonic-poll, with delta above 1.

    Meaning: A consumer that goes on polling misses records for ever.
    Allowed if: consumers subscribed, and the step leads from one session of theirs to another or
    over a poll that crashed
    Case: a step from a process's ok poll of the key to its next one, within one session
    Source: Jepsen, workload `kafka`, `poll-skip`
    """,
    nearness=Nearness.CLIENT,
    rests_on=("dense-indices", "one-poll-at-a-time", "whole-records"),
    needs=("operations", "records"),
)

CHECKS: Final = (
    KeyCheck(
        entry=_NONMONOTONIC_POLL,
        kernel=nonmonotonic_polls,
        by_place=True,
    ),
    KeyCheck(
        entry=_SKIPPED_POLL,
        kernel=skipped_polls,
        by_place=True,
    ),
)
