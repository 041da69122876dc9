"""The kernel of one znode: the writes on it are linearizable, and reads show what they made.

The promises of ZooKeeper decide which operations are held to what. Writes, and refusals of writes,
which the leader decides in the order of its log, are linearizable. Final reads are, too: behind a
sync, on an ensemble that is whole again. Any read is of something that was there: a version that
was made by the time the read returned, with its one value ("any updates that are seen by the
client, through a read request or successful update, will never be rolled back").

A state that appeared was made: by an ok change, or by one that crashed, was called by the state's
latest moment, and fits: it wrote the value that the state was seen to have; a create made version 0
of a life; a `cas` made the version after the one it expected; a delete that names a version ended a
life at that version. Each made one state. (A delete that names a later version than any that was
seen fits too, where crashed writes can have made the versions between.) So states are served in the
order of their latest moments, each by an operation that can serve fewest others: whatever can serve
a state can serve every later one of its kind, so that serving the earliest first, and by the
choosiest, is never worse.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fencepost.checkers.anomaly import Found, found
from fencepost.checkers.proof import Proof
from fencepost.checkers.znodes.chain import Chain, Discrepancy
from fencepost.checkers.znodes.operations import ZnodeOperation, cited, told_each
from fencepost.checkers.znodes.schedule import NEVER, Refusals, StateMoments, refusals_of

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
    lacking = [] if late else list(_unmade(operations, chain, schedule))
    return ZnodeJudgement(
        chain=chain,
        schedule=schedule,
        refusals=refusals,
        broken=(*chain.broken, *late, *lacking),
    )


def _proof(broken: Discrepancy) -> Proof:
    """Return operations that contradict each other as a proof."""
    return Proof.of(
        "{why}: {told}",
        operations=cited(broken.operations),
        why=broken.why,
        told=told_each(broken.operations),
    )


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
            never = Proof.of("there was no znode, and it was not created again")
            yield Discrepancy(why=never, operations=by)
            continue
        if claim.index in told:
            continue
        told.add(claim.index)
        yield Discrepancy(
            why=Proof.of(
                "{state} appeared at {earliest} s or later by one operation, and at {latest} s "
                "or earlier by others",
                moments={"earliest": schedule.earliest[state], "latest": schedule.latest[state]},
                state=chain.clause(state),
            ),
            operations=(claim, *by),
        )


def unseen_of(operations: Sequence[ZnodeOperation], chain: Chain) -> list[ZnodeOperation]:
    """Return the crashed writes of values that no answer shows."""
    shown = {value for values in chain.values.values() for value in values}
    return [
        one
        for one in operations
        if not one.is_read
        and not one.is_ok
        and not one.is_refused
        and one.f != "delete"
        and one.value not in shown
    ]


def _unmade(
    operations: Sequence[ZnodeOperation], chain: Chain, schedule: StateMoments
) -> Iterator[Discrepancy]:
    """Yield the states that no operation can have made."""
    crashed = [one for one in operations if not (one.is_ok or one.is_refused)]
    unseen = unseen_of(operations, chain)
    by_value = {one.value: one for one in crashed if one.f != "delete"}
    spare = _Spare(crashed, unseen)
    wanting = [state for state in range(1, chain.count) if not chain.makers.get(state)]
    for state in sorted(wanting, key=lambda state: schedule.latest[state]):
        latest = schedule.latest[state]
        place, version = chain.place_of(state)
        if version is None:
            if state == chain.count - 1 and latest == NEVER:
                continue  # The last life need not have ended.
            fits = spare.delete(chain.top[place], latest)
        elif values := chain.values.get(state):
            maker = by_value.get(next(iter(values)))
            fits = maker is not None and _makes(maker, version) and maker.call <= latest
        else:
            fits = spare.write(version, latest)
        if not fits:
            yield Discrepancy(
                why=Proof.of(
                    f"{{state}} was there by {'the end' if latest == NEVER else '{latest} s'}, no "
                    "ok operation made it, and none that crashed is left that can have",
                    moments={"latest": None if latest == NEVER else latest},
                    state=chain.clause(state),
                ),
                operations=_shown(chain, schedule, state),
            )


class _Spare:
    """Crashed operations that made nothing yet, by what they can make, in the order of calls."""

    def __init__(self, crashed: Sequence[ZnodeOperation], unseen: Sequence[ZnodeOperation]) -> None:
        self._kinds: Mapping[tuple[str, int | None], list[ZnodeOperation]] = defaultdict(list)
        writes = [one for one in unseen if one.f in ("set", "cas")]
        self._first_write = min((one.call for one in writes), default=NEVER)
        deletes = [one for one in crashed if one.f == "delete"]
        for one in sorted([*unseen, *deletes], key=lambda one: one.call):
            self._kinds[one.f, one.expected].append(one)

    def write(self, version: int, latest: int) -> bool:
        """Take one that can have made a version by then."""
        if version == 0:
            return self._take("create", None, latest)
        return self._take("cas", version - 1, latest) or self._take("set", None, latest)

    def delete(self, version: int, latest: int) -> bool:
        """Take one that can have ended a life at a version, or a later one that was not seen."""
        if self._take("delete", version, latest) or self._take("delete", None, latest):
            return True
        further = (
            expected
            for f, expected in sorted(self._kinds, key=str)
            if f == "delete" and expected is not None and expected > version
        )
        return self._first_write <= latest and any(
            self._take("delete", expected, latest) for expected in further
        )

    def _take(self, f: str, expected: int | None, latest: int) -> bool:
        waiting = self._kinds.get((f, expected))
        if not waiting or waiting[0].call > latest:
            return False
        waiting.pop(0)
        return True


def _makes(one: ZnodeOperation, version: int) -> bool:
    if one.f == "cas":
        return one.expected == version - 1
    return (one.f == "create") == (version == 0)


def _shown(chain: Chain, schedule: StateMoments, state: int) -> tuple[ZnodeOperation, ...]:
    values = chain.values.get(state, {})
    return (*values.values(), *schedule.latest_by[state])
