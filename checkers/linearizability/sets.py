"""The check that operations on a grow-only set, read whole, are linearizable: exact, no search.

Reads in the order in which they take effect contain each other. So what they found has to be a
chain, and then the chain *is* their order: all reads of a smaller set come before those of a larger
one. An element first comes into the set after the last read without it and before the first one
with it. So everything stands in groups whose order is known:

    adds of what the smallest set has · reads of it · adds of what the next one has more · reads …
    … reads of the largest set · adds of unread elements

An element has one moment, at which its first add takes effect. It is not before the earliest call
of its adds, nor after the earliest return of those that must have happened; any moment in between
will do, as the other adds of it can follow at once or later. A read has one in its interval. Adds
that may have happened, of unread elements, owe nothing.

So each thing has a closed interval, and the groups an order. The operations are linearizable
exactly if everything can take effect as early as the groups allow: no thing's interval ends before
another's, of an earlier group, begins. One running maximum, near-linear in the total size of what
was read (its elements are sorted once).

Source: linearizability, Herlihy and Wing 1990; the reduction is ours, and tested against trying
every order.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.anomaly import Found, found
from fencepost.checkers.linearizability.budget import Budget
from fencepost.checkers.linearizability.operations import (
    FS,
    Columns,
    Effect,
    Operation,
    answer_count,
    columns_of,
    operations_of,
)
from fencepost.checkers.linearizability.searched import CHECK
from fencepost.checkers.linearizability.words import cited, numbered
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import OPEN_NS
from fencepost.history.models import Model

_MODEL: Final = Model.SET
_UNREAD: Final = int(np.iinfo(np.int64).max)
_READ: Final = FS[_MODEL].index("read")
_Places = NDArray[np.int64]
_Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Elements:
    """The possible elements of the set, as parallel arrays, by value."""

    value: _Numbers
    call: _Numbers
    """The earliest of its adds."""
    called_by: _Places
    end: _Numbers
    """The earliest return of an add that must have happened; OPEN_NS without one."""
    ended_by: _Places
    size: _Numbers
    """The size of the smallest set that was read with it; `_UNREAD` if none was."""
    read_by: _Numbers
    """Such a read, by number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reads:
    """Reads by number, and what each found, once."""

    place: _Places
    size: _Numbers
    start: _Numbers
    """The start of each read's elements in `found`; one more entry at the end."""
    found: _Numbers
    """Elements, by number, in no order."""

    def elements(self, number: int) -> _Numbers:
        """Return the elements that one read found."""
        return self.found[self.start[number] : self.start[number + 1]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Things:
    """Reads and elements, by group, each with the interval of its moment."""

    group: _Numbers
    """Twice the size of the set; of a read, one more."""
    call: _Numbers
    end: _Numbers
    element: _Numbers
    """The number of the element; -1 for a read."""
    read: _Numbers
    """The number of the read; -1 for an element."""


def grow_only_set(key: str, rows: pa.Table, _budget: Budget) -> Found:
    """Find what is wrong with the operations of one set: `KeyKernel`. It needs no budget."""
    columns = columns_of(rows, _MODEL)
    reads_of_values, values = _values_read(columns)
    added = _added_of(columns)
    number = np.minimum(np.searchsorted(added.value, values), max(len(added.value) - 1, 0))
    known = added.value[number] == values if len(added.value) else np.zeros(len(values), dtype=bool)
    reads = _reads_of(columns, reads_of_values[known], number[known], len(added.value))
    elements = _elements_read(added, reads)
    strange = np.flatnonzero(~known)
    apart = _apart(elements, reads)
    # Where the sets are no chain, the groups have no order.
    things = _things_of(columns, elements, reads)
    late, awaited = _late(things) if not len(apart) else (apart[:0], apart[:0])

    def proof(anomaly: int) -> Proof:
        if anomaly < len(strange):
            place = int(reads.place[reads_of_values[strange[anomaly]]])
            return _of_strange(columns, place, int(values[strange[anomaly]]))
        if anomaly < len(strange) + len(apart):
            return _of_apart(columns, elements, reads, int(apart[anomaly - len(strange)]))
        pair = anomaly - len(strange) - len(apart)
        story = _Story(columns=columns, elements=elements, reads=reads, things=things)
        return story.of(early=int(late[pair]), awaited=int(awaited[pair]))

    count = len(strange) + len(apart) + len(late)
    cases = answer_count(columns, _MODEL)
    return found(CHECK, key, cases=cases, never=np.arange(count), proof=proof)


def _apart(elements: _Elements, reads: _Reads) -> _Numbers:
    """Find reads that lack something which a set no larger than theirs had."""
    known = np.searchsorted(np.sort(elements.size), reads.size, side="right")
    return np.flatnonzero(known != reads.size)


def _late(things: _Things) -> tuple[_Numbers, _Numbers]:
    """Find things that were over before one of an earlier group began, and that one."""
    if not len(things.group):
        return things.group, things.group
    reach = np.maximum.accumulate(things.call)
    latest = np.maximum.accumulate(np.where(things.call == reach, np.arange(len(reach)), 0))
    before = np.searchsorted(things.group, things.group, side="left") - 1
    late = np.flatnonzero((before >= 0) & (things.end < reach[before]))
    return late, latest[before[late]]


def _of_strange(columns: Columns, place: int, value: int) -> Proof:
    """Return the proof that the read at this place returned a value that was never added."""
    (read,) = _operations(columns, place)
    return Proof.of(
        "{read} returned {value}, which no operation can have added",
        values={"value": value},
        read=cited(read, _MODEL),
    )


def _of_apart(columns: Columns, elements: _Elements, reads: _Reads, number: int) -> Proof:
    """Return the proof: this read, and one as small or smaller, neither containing the other."""
    mine = reads.elements(number)
    earlier = np.flatnonzero(elements.size <= reads.size[number])
    lacking = int(np.setdiff1d(earlier, mine)[0])
    other = int(elements.read_by[lacking])
    only_mine = int(np.setdiff1d(mine, reads.elements(other))[0])
    here, there = int(elements.value[only_mine]), int(elements.value[lacking])
    one, two = _operations(columns, int(reads.place[number]), int(reads.place[other]))
    return Proof.of(
        "{read} found {here} without {there}, and {other} {there} without {here}: "
        "in a set that only grows, one of two reads contains the other",
        operations=tuple(sorted((one.index, two.index))),
        values={"here": here, "there": there},
        read=cited(one, _MODEL),
        other=cited(two, _MODEL),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Story:
    """Tells why one thing was over too early."""

    columns: Columns
    elements: _Elements
    reads: _Reads
    things: _Things

    def of(self, *, early: int, awaited: int) -> Proof:
        """Return the proof: `early` was over before `awaited`, which must precede it, began."""
        lost, needed = self.things.element[early], self.things.element[awaited]
        read, earlier_read = self.things.read[early], self.things.read[awaited]
        if lost < 0 and needed < 0:
            return self._went_back(int(read), int(earlier_read))
        if lost < 0:
            return self._found_early(int(read), int(needed))
        if needed < 0:
            return self._lost(int(lost), int(earlier_read))
        return self._overtaken(int(lost), int(needed))

    def _went_back(self, large: int, small: int) -> Proof:
        elements = self.reads.elements(large)
        more = elements[self.elements.size[elements] > self.reads.size[small]]
        value = int(self.elements.value[more[0]])
        first, second = self._reads(large, small)
        return Proof.of(
            "{first} returned at {end} s with {value}, and {second} was called at {call} s and "
            "is without it",
            operations=_indices(first, second),
            values={"value": value},
            first=cited(first, _MODEL, end=first.end),
            second=cited(second, _MODEL, call=second.call),
        )

    def _found_early(self, number: int, element: int) -> Proof:
        value = int(self.elements.value[element])
        (read,) = self._reads(number)
        (add,) = _operations(self.columns, int(self.elements.called_by[element]))
        return Proof.of(
            "{read} returned at {end} s with {value}, whose first add, {add}, was "
            "called at {call} s",
            operations=_indices(read, add),
            values={"value": value},
            read=cited(read, _MODEL, end=read.end),
            add=numbered("add", add, call=add.call),
        )

    def _lost(self, element: int, number: int) -> Proof:
        value = int(self.elements.value[element])
        (read,) = self._reads(number)
        (add,) = _operations(self.columns, int(self.elements.ended_by[element]))
        return Proof.of(
            "{add} returned at {end} s, and {read} was called at {call} s and is without {value}",
            operations=_indices(add, read),
            values={"value": value},
            add=cited(add, _MODEL, end=add.end),
            read=cited(read, _MODEL, call=read.call),
        )

    def _overtaken(self, element: int, later: int) -> Proof:
        value, later_value = (int(self.elements.value[one]) for one in (element, later))
        (read,) = self._reads(int(self.elements.read_by[later]))
        add, later_add = _operations(
            self.columns,
            int(self.elements.ended_by[element]),
            int(self.elements.called_by[later]),
        )
        return Proof.of(
            "{add} returned at {end} s, before the first add of {later_value}, "
            "{later_add}, was called at {call} s; {read} found {later_value} without {value}",
            operations=_indices(add, later_add, read),
            values={"value": value, "later_value": later_value},
            add=cited(add, _MODEL, end=add.end),
            later_add=numbered("later_add", later_add, call=later_add.call),
            read=cited(read, _MODEL),
        )

    def _reads(self, *numbers: int) -> list[Operation]:
        return _operations(self.columns, *(int(self.reads.place[number]) for number in numbers))


def _indices(*operations: Operation) -> tuple[int, ...]:
    return tuple(sorted({one.index for one in operations}))


def _operations(columns: Columns, *places: int) -> list[Operation]:
    return operations_of(columns.take(np.array(places, dtype=np.int64)), _MODEL)


def _values_read(columns: Columns) -> tuple[_Numbers, _Numbers]:
    """Return every value of every read, with the number of the read."""
    places = np.flatnonzero(columns.f == _READ)
    lists = columns.rows.column("values").take(pa.array(columns.row[places]))
    lengths = pc.list_value_length(lists).to_numpy().astype(np.int64)
    values = pc.list_flatten(lists).to_numpy().astype(np.int64)
    return np.repeat(np.arange(len(places)), lengths), values


def _added_of(columns: Columns) -> _Elements:
    """Return the elements that can have been added, not yet matched with reads."""
    adds = np.flatnonzero(columns.f != _READ)
    value, number = np.unique(columns.value[adds], return_inverse=True)
    must = columns.effect[adds] == Effect.MUST
    call, called_by = _least(number, columns.call[adds], adds, len(value))
    end, ended_by = _least(number[must], columns.end[adds[must]], adds[must], len(value))
    return _Elements(
        value=value,
        call=call,
        called_by=called_by,
        end=end,
        ended_by=ended_by,
        size=np.full(len(value), _UNREAD),
        read_by=np.full(len(value), -1),
    )


def _least(
    number: _Numbers, figure: _Numbers, by: _Numbers, count: int
) -> tuple[_Numbers, _Numbers]:
    """Return the least figure of each number and its row in `by`; OPEN_NS and -1 without one."""
    least = np.full(count, OPEN_NS)
    np.minimum.at(least, number, figure)
    whose = np.full(count, -1)
    is_least = figure == least[number]
    whose[number[is_least]] = by[is_least]
    return least, whose


def _reads_of(columns: Columns, read: _Numbers, element: _Numbers, element_count: int) -> _Reads:
    """Return reads with what they found: `element` was found by the read of number `read`."""
    place = np.flatnonzero(columns.f == _READ)
    pairs = read * max(element_count, 1) + element
    if np.any(pairs[1:] <= pairs[:-1]):
        # Some client lists elements in another order, or twice.
        pairs = np.unique(pairs)
        read, element = np.divmod(pairs, max(element_count, 1))
    size = np.bincount(read, minlength=len(place))
    return _Reads(place=place, size=size, start=np.append(0, np.cumsum(size)), found=element)


def _elements_read(added: _Elements, reads: _Reads) -> _Elements:
    """Return the elements with the smallest set that each was read in."""
    number = np.repeat(np.arange(len(reads.size)), reads.size)
    size, read_by = _least(reads.found, reads.size[number], number, len(added.value))
    return replace(added, size=np.where(read_by < 0, _UNREAD, size), read_by=read_by)


def _things_of(columns: Columns, elements: _Elements, reads: _Reads) -> _Things:
    """Return reads, and the elements that owe something, by group."""
    owing = np.flatnonzero((elements.size != _UNREAD) | (elements.end != OPEN_NS))
    size = elements.size[owing]
    group = np.append(2 * reads.size + 1, np.where(size == _UNREAD, _UNREAD, 2 * size))
    order = np.argsort(group, kind="stable")
    no_element, no_read = np.full(len(reads.place), -1), np.full(len(owing), -1)
    return _Things(
        group=group[order],
        call=np.append(columns.call[reads.place], elements.call[owing])[order],
        end=np.append(columns.end[reads.place], elements.end[owing])[order],
        element=np.append(no_element, owing)[order],
        read=np.append(np.arange(len(reads.place)), no_read)[order],
    )
