"""The order of a list's versions, from its longest read, and where each read stands in it.

A reader of a list that is only appended to sees a prefix of what it is in the end. So the longest
read of a key, element by element, is the order in which its first elements were appended, and every
other read must be a prefix of it. What was appended and is not in the longest read came later, or
never: of the order among these nothing is known.

Elements are told apart by their values, unique a key. An element whose transaction failed, or that
no transaction appended, has no transaction in the graph; the order of the others stands without it.

Source: Kingsbury and Alvaro, Elle, VLDB 2020, sections 4.1 and 4.2.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.cycles.steps import TransactionSteps
from fencepost.checkers.rows import FAIL

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_BLOCK: Final = 1 << 22
"""Elements compared at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyVersions:
    """The versions of every key: the longest reads, key after key, as one array of elements."""

    longest: Ints
    """A key's row of its longest read; -1 without any."""
    bounds: Ints
    """The bounds of keys: `key` has the elements from `bounds[key]` up to `bounds[key + 1]`."""
    value: Ints
    writer: Ints
    """The row that appended each element; -1 without one."""
    place: Ints
    """The element that each appending row became; -1 if no longest read has it."""
    again: Ints
    """Elements, by place, that are in the list before already."""
    differing: Ints
    """Rows of reads that are no prefix of the longest one."""
    differs_at: Ints
    """The first place in these lists at which they differ from it."""
    repeated: Ints
    """Rows that append what an earlier row of the key appends: elements cannot be told apart."""
    codes: "_Codes"

    def writers_of(self, key: Ints, values: Ints) -> Ints:
        """Return the rows that appended these; -1 for values that no row appended."""
        return self.codes.rows_of(key, values)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Codes:
    """Appended (key, value) pairs, sorted, to find rows by."""

    distinct: Ints
    """Values, sorted, if they span too much for the codes to be plain products."""
    low: int
    span: int
    sorted_codes: Ints
    sorted_rows: Ints

    @classmethod
    def of(cls, key: Ints, value: Ints, *, rows: Ints) -> "_Codes":
        low = int(value.min(initial=0))
        span = int(value.max(initial=0)) - low + 1
        distinct = np.empty(0, np.int64)
        if span * (int(key.max(initial=0)) + 1) >= 1 << 62:
            distinct = np.unique(value)
            low, span = 0, len(distinct)
            value = np.searchsorted(distinct, value)
        unsorted = key * span + (value - low)
        order = np.argsort(unsorted, kind="stable")
        return cls(
            distinct=distinct,
            low=low,
            span=span,
            sorted_codes=unsorted[order],
            sorted_rows=rows[order],
        )

    def rows_of(self, key: Ints, values: Ints) -> Ints:
        if not len(self.sorted_codes):
            return np.full(len(key), -1, np.int64)
        known = np.ones(len(key), np.bool_)
        if len(self.distinct):
            place = np.minimum(np.searchsorted(self.distinct, values), len(self.distinct) - 1)
            known = self.distinct[place] == values
            values = place
        known &= (values >= self.low) & (values < self.low + self.span)
        wanted = key * self.span + np.where(known, values - self.low, 0)
        found = np.searchsorted(self.sorted_codes, wanted)
        found[found == len(self.sorted_codes)] = 0
        known &= self.sorted_codes[found] == wanted
        return np.where(known, self.sorted_rows[found], -1)


def versions_of(steps: TransactionSteps) -> KeyVersions:
    """Return the versions of these keys."""
    longest = _longest(steps)
    bounds = np.zeros(len(steps.names) + 1, np.int64)
    read = np.flatnonzero(longest >= 0)
    bounds[read + 1] = steps.length[longest[read]]
    bounds = np.cumsum(bounds)
    key = np.repeat(np.arange(len(steps.names)), np.diff(bounds))
    value = steps.elements[np.repeat(steps.start[longest], np.diff(bounds)) + _within(bounds)]
    appends = np.flatnonzero(steps.appends)
    codes = _Codes.of(steps.key[appends], steps.value[appends], rows=appends)
    writer = codes.rows_of(key, value)
    place = np.full(len(steps), -1, np.int64)
    # Backwards, so that of an element that comes twice the first place stays.
    seen = np.flatnonzero(writer >= 0)[::-1]
    place[writer[seen]] = seen
    differing, differs_at = _differing(steps, longest)
    same = np.flatnonzero(np.diff(codes.sorted_codes) == 0) + 1
    return KeyVersions(
        longest=longest,
        bounds=bounds,
        value=value,
        writer=writer,
        place=place,
        again=_again(key, value, writer, place),
        differing=differing,
        differs_at=differs_at,
        repeated=codes.sorted_rows[same],
        codes=codes,
    )


def _longest(steps: TransactionSteps) -> Ints:
    """Return the longest read of each key; among equally long ones, the first."""
    length = np.where(steps.known, steps.length, -1)
    starts = np.searchsorted(steps.key, np.arange(len(steps.names)))
    most = np.maximum.reduceat(length, starts) if len(starts) else length
    reaching = np.flatnonzero(steps.known & (length == most[steps.key]))[::-1]
    longest = np.full(len(steps.names), -1, np.int64)
    longest[steps.key[reaching]] = reaching
    return longest


def _within(bounds: Ints) -> Ints:
    """Return 0, 1, … inside each of the stretches with these bounds."""
    return np.arange(bounds[-1]) - np.repeat(bounds[:-1], np.diff(bounds))


def _again(key: Ints, value: Ints, writer: Ints, place: Ints) -> Ints:
    """Return places of elements that occur earlier in the list, those never appended included."""
    known = writer >= 0
    again = known.copy()
    again[known] = place[writer[known]] != np.flatnonzero(known)
    strange = np.flatnonzero(~known)
    if len(strange):
        _, first = np.unique(np.stack([key[strange], value[strange]]), axis=1, return_index=True)
        again[np.delete(strange, first)] = True
    return np.flatnonzero(again)


def _differing(steps: TransactionSteps, longest: Ints) -> tuple[Ints, Ints]:
    """Return the reads that are no prefix of their key's longest, and where each differs."""
    reads = np.flatnonzero(steps.known)
    rows, places = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for block in _blocks(steps, reads):
        length = steps.length[block]
        first = np.cumsum(length) - length
        within = np.arange(int(length.sum())) - np.repeat(first, length)
        reference = steps.start[longest[steps.key[block]]]
        own = steps.elements[np.repeat(steps.start[block], length) + within]
        wrong = np.flatnonzero(own != steps.elements[np.repeat(reference, length) + within])
        which, at = np.unique(np.searchsorted(first, wrong, side="right") - 1, return_index=True)
        # Where lists are empty several begin at one place; the last of them has the element.
        rows.append(block[which])
        places.append(within[wrong[at]])
    return np.concatenate(rows), np.concatenate(places)


def _blocks(steps: TransactionSteps, reads: Ints) -> Iterator[Ints]:
    total = np.cumsum(steps.length[reads])
    cuts = np.searchsorted(total, np.arange(_BLOCK, int(total[-1]) if len(total) else 0, _BLOCK))
    return (part for part in np.split(reads, np.unique(cuts)) if len(part))


def is_failed(steps: TransactionSteps, writer: Ints) -> Mask:
    """Return whether the transaction of each element failed, by the rows that appended them."""
    failed: Mask = (writer >= 0) & (steps.outcome[writer] == FAIL)
    return failed
