"""The states that need a crashed operation to have made them, and whether there are enough.

A state that appeared was made: by an ok change, or by one that crashed, was called by the state's
latest moment, and fits: it wrote the value that the state was seen to have; a create made version 0
of a life; a `cas` made the version after the one it expected; a delete that names a version ended a
life at that version. Each made one state. (A delete that names a later version than any that was
seen fits too, where crashed writes can have made the versions between.)

States are served in the order of their latest moments, each by an operation that can serve fewest
others: whatever can serve a state can serve every later one of its kind, so that serving the
earliest first, and by the choosiest, is never worse.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from checkers.znodes.chain import Chain, Discrepancy
from checkers.znodes.operations import ZnodeOperation
from checkers.znodes.schedule import NEVER, StateMoments

__all__ = ["unmade", "unseen_of"]


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


def unmade(
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
                why=f"{chain.words(state)} was there by {_clock(latest)}, no ok operation made it, "
                "and none that crashed is left that can have",
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


def _clock(moment: int) -> str:
    return "the end" if moment == NEVER else f"{moment} ns"
