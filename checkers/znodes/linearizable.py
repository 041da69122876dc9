"""The kernel of one znode: the writes on it are linearizable, and reads show what they made.

The promises of ZooKeeper decide which operations are held to what. Writes, and refusals of writes,
which the leader decides in the order of its log, are linearizable. Final reads are, too: behind a
sync, on an ensemble that is whole again. Any read is of something that was there: a version that
was made by the time the read returned, with its one value ("any updates that are seen by the
client, through a read request or successful update, will never be rolled back").
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from checkers.anomaly import Found, found
from checkers.proof import Proof
from checkers.znodes.chain import Chain, Discrepancy
from checkers.znodes.makers import unmade, unseen_of
from checkers.znodes.operations import ZnodeOperation, cited, in_words
from checkers.znodes.schedule import Refusals, StateMoments, refusals_of

__all__ = ["NAME", "ZnodeJudgement", "found_of", "judgement"]

NAME = "nonlinearizable-write"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZnodeJudgement:
    """The findings about one znode, and what they were drawn from."""

    chain: Chain
    schedule: StateMoments
    refusals: Refusals
    broken: tuple[Discrepancy, ...]


def found_of(key: str, judged: ZnodeJudgement) -> Found:
    """Return what is wrong with the writes on one znode."""
    return found(
        NAME,
        key,
        cases=len(judged.chain.told) + judged.refusals.count,
        never=np.arange(len(judged.broken), dtype=np.int64),
        proof=lambda number: _proof(judged.broken[number]),
    )


def judgement(operations: Sequence[ZnodeOperation]) -> ZnodeJudgement:
    """Return what contradicts what, of the operations on one znode."""
    chain = Chain(operations)
    refusals = refusals_of(operations, _held, unseen=unseen_of(operations, chain))
    schedule = StateMoments(chain, refusals, _held)
    late = list(_late(chain, schedule))
    # The maker of a state is sought by its latest moment: nothing where none is late enough.
    lacking = [] if late else list(unmade(operations, chain, schedule))
    return ZnodeJudgement(
        chain=chain,
        schedule=schedule,
        refusals=refusals,
        broken=(*chain.broken, *late, *lacking),
    )


def _proof(broken: Discrepancy) -> Proof:
    """Return operations that contradict each other as a proof."""
    told = "; ".join(map(in_words, broken.operations))
    return Proof.of("{why}: {told}", operations=cited(broken.operations), why=broken.why, told=told)


def _held(one: ZnodeOperation) -> bool:
    return one.f == "final-read"


def _late(chain: Chain, schedule: StateMoments) -> Iterator[Discrepancy]:
    """Yield states that had to appear later than they can have: one for each latest claim."""
    told: set[int] = set()
    for state in range(1, chain.count + 1):
        if schedule.earliest[state] <= schedule.latest[state]:
            continue
        claim, by = schedule.earliest_by[state], schedule.latest_by[state]
        if claim is None:  # The state that never appears.
            yield Discrepancy(why="there was no znode, and it was not created again", operations=by)
            continue
        if claim.index in told:
            continue
        told.add(claim.index)
        yield Discrepancy(
            why=f"{chain.words(state)} appeared at {schedule.earliest[state]} ns or later by one "
            f"operation, and at {schedule.latest[state]} ns or earlier by others",
            operations=(claim, *by),
        )
