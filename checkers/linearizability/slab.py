"""The claims of operations on a range of versions, summed up so that ranges can be put together.

A slab takes the operations piece by piece, in any order, and keeps an array a bound: memory grows
with its versions, and with the refusals that are not settled yet, not with the operations. Its
summary is small: whatever a slab says to its neighbours goes through

- the latest of its lower bounds, which holds for all later versions;
- the earliest of its upper bounds, which holds for all earlier versions;
- the moment to which its refusals lower the first version of the next slab (`exit`).

The first two change no moment that matters inside: with an upper bound u of later versions, the
latest schedule is the earlier of itself and u (a refusal that was called after u returns after u).
Only an entry, a first version that the slab before lowers, may; and it does not if no refusal that
expected this version was called after it (`steady_from`).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.linearizability.claims import (
    ALWAYS,
    NEVER,
    NOTHING,
    UNTOLD,
    Changes,
    Claims,
)
from fencepost.checkers.linearizability.faults import (
    NO_ENTRY,
    ClaimKind,
    EntryBound,
    Fault,
    Violation,
    Witness,
)
from fencepost.checkers.linearizability.schedule import Unmade, lowered, unsettled

FAULTS_MAX: Final = 100
"""The most faults told of each rule and slab; all are counted."""
_LINKS_MAX: Final = 50
"""The most refusals told of a chain."""
_REFUSALS_MAX: Final = 1 << 22
"""The most refusals that wait before they are settled as far as they can be."""
_ONE: Final = np.int32(1)
"""One, typed as its summand: numpy's loop for a plain number takes fifty times as long."""

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The summary of a slab. Bounds are of its own operations; NEVER and ALWAYS without any."""

    first: int
    """Its versions: from this one …"""
    end: int
    """… to the one before this one."""
    upper: int
    """The moment by which some version of it had appeared."""
    lower: int
    """Some version, up to `end`, did not appear before."""
    first_lower: int
    """The first version did not appear before."""
    steady_from: int
    """The moment from which on an entry changes no moment but that of the first version."""
    exit: EntryBound
    unmade: Unmade
    """`latest` in the light of this slab alone."""
    writes: tuple[Int64s, Int64s]
    """Calls and values of the crashed writes that it was given to count."""
    faults: tuple[Fault, ...]
    fault_count: int
    case_count: int
    """The number of answers taken: each names a version, so no other slab counts it."""
    doubt: str


class Slab:
    """The versions from `first` to `end` - 1 of one key.

    `limit`: more versions than this cannot be; operations on those belong to no slab.
    """

    def __init__(self, first: int, end: int, *, limit: int) -> None:
        self._first, self._end, self._limit = first, end, limit
        size = end - first + 1
        # One block: the larger it is, the larger the pages that the operating system gives.
        self._lower, self._upper, self._value = np.empty((3, size), dtype=np.int64)
        self._lower[:], self._upper[:], self._value[:] = ALWAYS, NEVER, UNTOLD
        self._made = np.zeros(size, dtype=np.int32)
        if first == 0:
            self._value[0], self._made[0] = NOTHING, 1
        self._refused: list[Changes] = []
        self._refused_count = 0
        self._refused_max = _REFUSALS_MAX
        self._swaps: list[Changes] = []
        self._writes: list[Changes] = []
        self._faults: dict[Violation, list[Fault]] = {}
        self._fault_count = 0
        self._case_count = 0
        self._doubts: dict[str, None] = {}

    def add(self, claims: Claims, *, owned: bool = True) -> None:
        """Take operations; `owned`: also those that belong to no version, as one slab has to."""
        for made in claims.made:
            if mine := self._counted(made):
                self._make(mine)
        if shown := self._counted(claims.shown):
            self._show(shown, held=claims.held)
        if absent := self._counted(claims.absent):
            self._miss(absent)
        if refused := self._counted(claims.refused):
            self._refuse(refused)
        if len(swaps := self._inside(claims.crashed_swaps)):
            self._swaps.append(swaps)
        if owned:
            self._own(claims)

    def summary(self, entry: EntryBound = NO_ENTRY) -> Summary:
        """Return the summary of all that was taken, given `entry`. More can be taken afterwards."""
        earliest = np.maximum.accumulate(self._lower)
        bounds = np.minimum.accumulate(self._upper[::-1])[::-1].copy()
        upper = int(bounds[0])
        bounds[0] = ALWAYS if self._first == 0 else min(upper, entry.latest)
        latest = bounds.copy()
        self._settle(latest, earliest)
        refused = self._refused[0]
        place = refused.version - self._first
        lowered(latest, expected=place, call=refused.call, end=refused.end)
        times, times_count = self._times(earliest, latest, bounds, entry)
        at_first = refused.call[(place == 0) & (refused.end < latest[1])]
        return Summary(
            first=self._first,
            end=self._end,
            upper=upper,
            lower=int(earliest[-1]),
            first_lower=int(self._lower[0]),
            steady_from=int(at_first.max(initial=ALWAYS)),
            exit=self._exit(latest, bounds, entry),
            unmade=self._unmade(latest),
            writes=(
                np.concatenate([np.empty(0, np.int64), *(one.call for one in self._writes)]),
                np.concatenate([np.empty(0, np.int64), *(one.value for one in self._writes)]),
            ),
            faults=(*times, *(fault for told in self._faults.values() for fault in told)),
            fault_count=times_count + self._fault_count,
            case_count=self._case_count,
            doubt="; ".join(self._doubts),
        )

    def _counted(self, answers: Changes) -> Changes:
        """Return the answers about its versions; they are cases."""
        mine = self._inside(answers)
        self._case_count += len(mine)
        return mine

    def _inside(self, changes: Changes) -> Changes:
        if not len(changes):
            return changes
        inside = (changes.version >= self._first) & (changes.version < self._end)
        return changes if inside.all() else changes.take(inside)

    def _make(self, made: Changes) -> None:
        if self._first == 0:
            made = made.take(made.version > 0) if np.any(made.version == 0) else made
        place = made.version - self._first
        np.maximum.at(self._lower, place, made.call)
        np.minimum.at(self._upper, place, made.end)
        before = self._made[place]
        np.add.at(self._made, place, _ONE)
        again = np.unique(place[(self._made[place] > 1) & (before <= 1)])
        for version in (again + self._first).tolist():
            self._tell(Violation.MADE_TWICE, Witness(kind=ClaimKind.MADE, version=version))
        self._compare(place, made.value)

    def _show(self, shown: Changes, *, held: bool) -> None:
        place = shown.version - self._first
        np.minimum.at(self._upper, place, shown.end)
        if held:
            np.maximum.at(self._lower, place + 1, shown.call)
        self._compare(place, shown.value)

    def _miss(self, absent: Changes) -> None:
        place = absent.version - self._first
        np.maximum.at(self._lower, place, absent.call)
        if self._first == 0:
            # No read finds what is before the first offset of a log.
            self._lower[0] = ALWAYS

    def _compare(self, place: Int64s, value: Int64s) -> None:
        known = self._value[place]
        news = np.flatnonzero(known == UNTOLD)
        if len(news):
            self._value[place[news]] = value[news]
            known = self._value[place]
        differs = np.flatnonzero(known != value)
        if not len(differs):
            return
        _, firsts = np.unique(place[differs], return_index=True)
        for one in differs[np.sort(firsts)].tolist():
            version = int(place[one]) + self._first
            self._tell(
                Violation.TWO_VALUES,
                Witness(kind=ClaimKind.VALUE, version=version, number=int(known[one])),
                Witness(kind=ClaimKind.VALUE, version=version, number=int(value[one])),
            )

    def _refuse(self, refused: Changes) -> None:
        self._refused.append(refused)
        self._refused_count += len(refused)
        if self._refused_count > self._refused_max:
            earliest = np.maximum.accumulate(self._lower)
            latest = np.minimum.accumulate(self._upper[::-1])[::-1].copy()
            self._settle(latest, earliest)
            # Twice what is left: to look at all versions again costs no more than what came since.
            self._refused_max = max(_REFUSALS_MAX, 2 * self._refused_count)

    def _settle(self, latest: Int64s, earliest: Int64s) -> None:
        """Forget the refusals that hold whatever else is taken."""
        parts = self._refused or [_none()]
        kept = []
        for part in parts:
            open_ = unsettled(
                latest,
                earliest,
                expected=part.version - self._first,
                call=part.call,
                end=part.end,
            )
            kept.append(part.take(open_))
        self._refused = [_joined(kept)]
        self._refused_count = len(self._refused[0])

    def _own(self, claims: Claims) -> None:
        self._writes.append(claims.crashed_writes)
        if claims.doubt:
            self._doubts[claims.doubt] = None
        for version, expected in zip(*(side.tolist() for side in claims.jumps), strict=True):
            self._tell(
                Violation.JUMP, Witness(kind=ClaimKind.JUMPED, version=version, number=expected)
            )
        lowest = 0 if claims.held else 1
        for changes, first in ((claims.shown, lowest), *((made, 1) for made in claims.made)):
            for version in changes.version[changes.version < first].tolist():
                self._tell(Violation.BEFORE_FIRST, Witness(kind=ClaimKind.SAW, version=version))
            for version in np.unique(changes.version[changes.version > self._limit]).tolist():
                self._tell(Violation.NOBODY, Witness(kind=ClaimKind.SAW, version=version))

    def _tell(self, rule: Violation, *witnesses: Witness) -> None:
        self._fault_count += 1
        told = self._faults.setdefault(rule, [])
        if len(told) < FAULTS_MAX:
            told.append(Fault(rule=rule, witnesses=witnesses))

    def _times(
        self, earliest: Int64s, latest: Int64s, bounds: Int64s, entry: EntryBound
    ) -> tuple[list[Fault], int]:
        """Find versions that appeared before they can have, a fault a stretch of them."""
        wrong = np.concatenate([[False], latest < earliest])
        starts = np.flatnonzero(wrong[1:] & ~wrong[:-1])
        faults = [
            Fault(
                rule=Violation.TIMES,
                witnesses=(
                    Witness(
                        kind=ClaimKind.NOT_BEFORE,
                        version=place + self._first,
                        number=int(earliest[place]),
                    ),
                    *self._chain(place, latest, bounds, entry),
                ),
            )
            for place in starts[:FAULTS_MAX].tolist()
        ]
        return faults, len(starts)

    def _chain(
        self, place: int, latest: Int64s, bounds: Int64s, entry: EntryBound
    ) -> tuple[Witness, ...]:
        """Return why a version's moment is no later: the refusals that lowered it, then a bound."""
        links: list[Witness] = []
        while place > 0 and latest[place] < bounds[place] and len(links) < _LINKS_MAX:
            links.append(
                Witness(
                    kind=ClaimKind.REFUSED, version=place + self._first, number=int(latest[place])
                )
            )
            place -= 1
        if len(links) == _LINKS_MAX or latest[place] == ALWAYS:
            return tuple(links)
        if place == 0 and latest[0] == entry.latest:
            return (*links, *entry.witnesses)
        bound = Witness(kind=ClaimKind.BY, version=place + self._first, number=int(latest[place]))
        return (*links, bound)

    def _exit(self, latest: Int64s, bounds: Int64s, entry: EntryBound) -> EntryBound:
        if latest[-1] == NEVER:
            return NO_ENTRY
        return EntryBound(
            latest=int(latest[-1]),
            witnesses=self._chain(len(latest) - 1, latest, bounds, entry)[:_LINKS_MAX],
        )

    def _unmade(self, latest: Int64s) -> Unmade:
        """Find versions that no ok operation made; neighbours that are alike as one run."""
        place = np.flatnonzero(self._made[:-1] == 0)
        moment, value, swap = latest[place], self._value[place], self._swapped()[place]
        told = value != UNTOLD
        begins = np.ones(len(place), dtype=np.bool_)
        begins[1:] = (
            (np.diff(place) > 1)
            | (np.diff(moment) != 0)
            | (np.diff(swap) != 0)
            | told[1:]
            | told[:-1]
            # The first version stands alone: the slab before may lower it.
            | (place[:-1] == 0)
        )
        runs = np.flatnonzero(begins)
        return Unmade(
            first=place[runs] + self._first,
            count=np.diff(runs, append=len(place)),
            latest=moment[runs],
            value=value[runs],
            told=told[runs],
            swap=swap[runs],
        )

    def _swapped(self) -> Int64s:
        """Return the earliest call of a crashed `cas` that can have made each version."""
        calls = np.full(len(self._made), NEVER)
        for swaps in self._swaps:
            place = swaps.version - self._first
            value = self._value[place]
            fits = (value == UNTOLD) | (value == swaps.value)
            np.minimum.at(calls, place[fits], swaps.call[fits])
        return calls


def _none() -> Changes:
    none = np.empty(0, dtype=np.int64)
    return Changes(version=none, call=none, end=none, value=none)


def _joined(parts: list[Changes]) -> Changes:
    if len(parts) == 1:
        return parts[0]
    return Changes(
        version=np.concatenate([part.version for part in parts]),
        call=np.concatenate([part.call for part in parts]),
        end=np.concatenate([part.end for part in parts]),
        value=np.concatenate([part.value for part in parts]),
    )
