"""The latest moments at which the states of a znode can have appeared: the schedule that decides.

Let t_k be the moment at which state k of the chain appears; moments never go back, intervals are
closed, and t_0 is before everything. Every operation is a condition on these moments:

- an ok change that made state k: call ≤ t_k ≤ end;
- a read that found state k: t_k ≤ end; if reads of its kind are held to what is there, also
  t_{k+1} ≥ call;
- what needs some moment in [call, end] at which the znode was in none of the states k to l - 1 (a
  *refusal* of that stretch): t_k ≥ call or t_l ≤ end.

Refusals are: a held read that found nothing, a refused set, and a refused delete of any version: of
every life. A refused create: of every absence. A refused `cas` or delete that expects version e: of
version e of every life.

All of these are closed under taking the later of two schedules, moment by moment (`versioned` has
the argument for stretches of one state; it holds for any). So there is a latest schedule of upper
bounds and refusals, and the operations fit exactly if it keeps the lower bounds, and if each state
has a maker that was called by its latest moment (`linearizable`).

**What is not shown.** Versions and lives that no answer shows can only have been made by crashed
operations whose values no read found. They can explain a refusal and nothing else: of a create, an
unseen life; of an expected version, a later version or another life. So a refusal that such an
operation was called in time for is not held against anybody: it is left out. Where every crashed
change was seen to take effect, and where no change crashed, the answer is exact; else it may be too
mild, never too hard.

**Price.** A sort, and a binary search a state and sweep; sweeps end when nothing changes, after
two or three of them in histories of real time. Memory is that of the operations.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.znodes.chain import Chain
from fencepost.checkers.znodes.operations import ZnodeOperation

NEVER: Final = OPEN_NS
"""The moment of what does not happen."""
ALWAYS: Final = -1
"""The moment of what is there from the beginning: before every call."""


class _Windows:
    """Intervals in which something was refused, asked for the earliest end of the later calls."""

    def __init__(self, operations: Sequence[ZnodeOperation]) -> None:
        ordered = sorted(operations, key=lambda one: one.call)
        self._calls = [one.call for one in ordered]
        self._best: list[ZnodeOperation] = []
        for one in reversed(ordered):
            best = self._best[-1] if self._best else one
            self._best.append(one if one.end <= best.end else best)
        self._best.reverse()

    def after(self, moment: int) -> ZnodeOperation | None:
        """Return the one that ends first of those that were called after a moment."""
        place = bisect_right(self._calls, moment)
        return self._best[place] if place < len(self._best) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """The operations that were refused, by what a refusal says."""

    absent: Sequence[ZnodeOperation]
    """There was no znode, at some moment."""
    present: Sequence[ZnodeOperation]
    """There was one."""
    other: Sequence[ZnodeOperation]
    """There was none, or one of another version than the one expected."""

    @property
    def count(self) -> int:
        """The number of refusals."""
        return len(self.absent) + len(self.present) + len(self.other)


def refusals_of(
    operations: Sequence[ZnodeOperation],
    held: Callable[[ZnodeOperation], bool],
    *,
    unseen: Sequence[ZnodeOperation],
) -> Refusals:
    """Return the refusals to be kept; `unseen`: crashed writes whose values no read found."""
    lives = min((one.call for one in unseen if one.f == "create"), default=NEVER)
    changes = min((one.call for one in unseen), default=NEVER)
    refused = [one for one in operations if one.is_refused]
    nothing = [one for one in operations if one.is_ok and one.is_read and one.life is None]
    return Refusals(
        absent=[
            *(one for one in nothing if held(one)),
            *(one for one in refused if one.f == "set" or _of_any_version(one)),
        ],
        present=[one for one in refused if one.f == "create" and one.end < lives],
        other=[one for one in refused if one.expected is not None and one.end < changes],
    )


def _of_any_version(one: ZnodeOperation) -> bool:
    return one.f == "delete" and one.expected is None


class StateMoments:
    """The latest moment of each state of a chain, the earliest by its claims, and by whom."""

    def __init__(
        self, chain: Chain, refusals: Refusals, held: Callable[[ZnodeOperation], bool]
    ) -> None:
        # One more state, after all others, which never appears.
        self._chain = chain
        self.latest = [ALWAYS, *[NEVER] * chain.count]
        self.latest_by: list[tuple[ZnodeOperation, ...]] = [()] * (chain.count + 1)
        self.earliest = [ALWAYS, *[ALWAYS] * (chain.count - 1), NEVER]
        self.earliest_by: list[ZnodeOperation | None] = [None] * (chain.count + 1)
        for one in chain.told:
            state = chain.state_of(one)
            self._lower(state, one.end, (one,))
            if not one.is_read:
                self._raise(state, one)
            elif held(one):
                self._raise(state + 1, one)
        self._back()
        rules = [*self._rules(refusals)]
        while self._forward(rules):
            self._back()
        for state in range(1, chain.count):
            if self.earliest[state - 1] > self.earliest[state]:
                self.earliest[state] = self.earliest[state - 1]
                self.earliest_by[state] = self.earliest_by[state - 1]

    def _raise(self, state: int, by: ZnodeOperation) -> None:
        if state < self._chain.count and by.call > self.earliest[state]:
            self.earliest[state] = by.call
            self.earliest_by[state] = by

    def _lower(self, state: int, end: int, by: tuple[ZnodeOperation, ...]) -> bool:
        if state == 0 or end >= self.latest[state]:
            return False
        self.latest[state] = end
        self.latest_by[state] = by
        return True

    def _back(self) -> None:
        """Carry the bounds of later states to earlier ones; not that of what never appears."""
        for state in range(self._chain.count - 2, 0, -1):
            self._lower(state, self.latest[state + 1], self.latest_by[state + 1])

    def _rules(self, refusals: Refusals) -> Sequence[tuple[int, int, _Windows]]:
        """Return the stretches that were refused, each from a state to before another."""
        chain = self._chain
        absent, present = _Windows(refusals.absent), _Windows(refusals.present)
        other: dict[int, list[ZnodeOperation]] = {}
        for one in refusals.other:
            assert one.expected is not None
            other.setdefault(one.expected, []).append(one)
        others = {version: _Windows(those) for version, those in other.items()}
        rules, gone = [], 0
        for place, first in enumerate(chain.first):
            rules.append((gone, first, present))
            gone = chain.gone(place)
            rules.append((first, gone, absent))
            rules += [
                (first + version, first + version + 1, windows)
                for version, windows in others.items()
                if version <= chain.top[place]
            ]
        rules.append((gone, chain.count, present))
        return rules

    def _forward(self, rules: Sequence[tuple[int, int, _Windows]]) -> bool:
        """Apply every rule once; return whether any bound changed."""
        changed = False
        for start, end, windows in rules:
            one = windows.after(self.latest[start])
            if one is not None:
                chained = (one, *self.latest_by[start][:_WITNESSES_MAX])
                changed |= self._lower(end, one.end, chained)
        return changed


_WITNESSES_MAX: Final = 6
"""The witnesses kept for one bound: a proof of more is not read."""
