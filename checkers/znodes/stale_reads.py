"""The kernel of one znode: reads behind a `sync` are of what was there when they were called.

A sync read that found a state is *stale* if the next state had appeared before it was called, by
the latest moments that the writes, the refusals and all other reads leave (`schedule`). One that
found nothing is stale if a life had begun by then, and ended only after the read had returned.

ZooKeeper does not promise this without exception. Its documentation says of a `sync` before a read
that it is "not currently a quorum operation" (ZOOKEEPER-1675): a leader that was deposed and does
not know it yet may answer. So a stale sync read is allowed while a fault is in effect that can part
a leader from its followers, and for `DEPOSED_NS` after it, until which a leader that was cut off,
stopped or held back learns that it no longer leads. Where nothing was broken, one server leads, and
a stale sync read breaks the promise.

On a znode whose writes fit no order, which is found elsewhere, moments mean nothing, and no read is
judged.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fencepost.checkers.anomaly import Found, found, none
from fencepost.checkers.proof import Proof
from fencepost.checkers.znodes.linearizable import ZnodeJudgement
from fencepost.checkers.znodes.operations import ZnodeOperation, cited, told, told_each

NAME: Final = "stale-sync-read"
DEPOSED_NS: Final = 10_000_000_000
"""The time in which a leader that comes back is told of its successor; generous."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """A time in which something was broken."""

    begin_ns: int
    end_ns: int


def stale_sync_reads(
    key: str,
    operations: Sequence[ZnodeOperation],
    judged: ZnodeJudgement,
    broken: Sequence[Disturbance],
) -> Found:
    """Find the sync reads of one znode that are stale. `broken`: when faults were in effect."""
    reads = [one for one in operations if one.f == "sync-read"]
    if judged.broken:
        return none(NAME, key, cases=0)
    stale = [(one, since) for one in reads if (since := _outdated(one, judged)) is not None]
    numbers = np.arange(len(stale), dtype=np.int64)
    legal = np.array([_is_allowed(one, broken) for one, _ in stale], dtype=np.bool_)
    return found(
        NAME,
        key,
        cases=len(reads),
        never=numbers[~legal],
        allowed=numbers[legal],
        proof=lambda number: _proof(*stale[number]),
    )


def _outdated(one: ZnodeOperation, judged: ZnodeJudgement) -> tuple[ZnodeOperation, ...] | None:
    """Return the operations that show that another state was there; None if it is not stale."""
    chain, schedule = judged.chain, judged.schedule
    if one.life is not None:
        following = chain.state_of(one) + 1
        if following < chain.count and schedule.latest[following] < one.call:
            return schedule.latest_by[following]
        return None
    for place in range(len(chain.lives) - 1, -1, -1):
        first, gone = chain.first[place], chain.gone(place)
        if schedule.latest[first] < one.call:
            until = schedule.earliest_by[gone]
            if schedule.earliest[gone] > one.end and until is not None:
                return (*schedule.latest_by[first], until)
            return None
    return None


def _is_allowed(one: ZnodeOperation, broken: Sequence[Disturbance]) -> bool:
    return any(time.begin_ns <= one.end and one.call <= time.end_ns + DEPOSED_NS for time in broken)


def _proof(one: ZnodeOperation, since: Sequence[ZnodeOperation]) -> Proof:
    return Proof.of(
        "{read} is behind a sync, and another state was there before it was called: {since}",
        operations=cited((one, *since)),
        read=told(one),
        since=told_each(since),
    )
