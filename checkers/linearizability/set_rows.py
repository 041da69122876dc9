"""The operations of one set as numpy arrays: what was read when, and the elements by number."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from checkers.linearizability.operations import FS, Columns, Effect
from checkers.rows import OPEN_NS
from history.models import Model

__all__ = [
    "MODEL",
    "UNREAD",
    "Elements",
    "Numbers",
    "Places",
    "Reads",
    "Things",
    "added_of",
    "elements_read",
    "reads_of",
    "things_of",
    "values_read",
]

MODEL: Final = Model.SET
UNREAD: Final = int(np.iinfo(np.int64).max)

_READ: Final = FS[MODEL].index("read")

Places = NDArray[np.int64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Elements:
    """The possible elements of the set, as parallel arrays, by value."""

    value: Numbers
    call: Numbers
    """The earliest of its adds."""
    called_by: Places
    end: Numbers
    """The earliest return of an add that must have happened; OPEN_NS without one."""
    ended_by: Places
    size: Numbers
    """The size of the smallest set that was read with it; `UNREAD` if none was."""
    read_by: Numbers
    """Such a read, by number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """Reads by number, and what each found, once."""

    place: Places
    size: Numbers
    start: Numbers
    """The start of each read's elements in `found`; one more entry at the end."""
    found: Numbers
    """Elements, by number, in no order."""

    def elements(self, number: int) -> Numbers:
        """Return the elements that one read found."""
        return self.found[self.start[number] : self.start[number + 1]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Things:
    """Reads and elements, by group, each with the interval of its moment."""

    group: Numbers
    """Twice the size of the set; of a read, one more."""
    call: Numbers
    end: Numbers
    element: Numbers
    """The number of the element; -1 for a read."""
    read: Numbers
    """The number of the read; -1 for an element."""


def values_read(columns: Columns) -> tuple[Numbers, Numbers]:
    """Return every value of every read, with the number of the read."""
    places = np.flatnonzero(columns.f == _READ)
    lists = columns.rows.column("values").take(pa.array(columns.row[places]))
    lengths = pc.list_value_length(lists).to_numpy().astype(np.int64)
    values = pc.list_flatten(lists).to_numpy().astype(np.int64)
    return np.repeat(np.arange(len(places)), lengths), values


def added_of(columns: Columns) -> Elements:
    """Return the elements that can have been added, not yet matched with reads."""
    adds = np.flatnonzero(columns.f != _READ)
    value, number = np.unique(columns.value[adds], return_inverse=True)
    must = columns.effect[adds] == Effect.MUST
    call, called_by = _least(number, columns.call[adds], adds, len(value))
    end, ended_by = _least(number[must], columns.end[adds[must]], adds[must], len(value))
    return Elements(
        value=value,
        call=call,
        called_by=called_by,
        end=end,
        ended_by=ended_by,
        size=np.full(len(value), UNREAD),
        read_by=np.full(len(value), -1),
    )


def _least(number: Numbers, figure: Numbers, by: Numbers, count: int) -> tuple[Numbers, Numbers]:
    """Return the least figure of each number and its row in `by`; OPEN_NS and -1 without one."""
    least = np.full(count, OPEN_NS)
    np.minimum.at(least, number, figure)
    whose = np.full(count, -1)
    is_least = figure == least[number]
    whose[number[is_least]] = by[is_least]
    return least, whose


def reads_of(columns: Columns, read: Numbers, element: Numbers, element_count: int) -> Reads:
    """Return reads with what they found: `element` was found by the read of number `read`."""
    place = np.flatnonzero(columns.f == _READ)
    pairs = read * max(element_count, 1) + element
    if np.any(pairs[1:] <= pairs[:-1]):
        # Some client lists elements in another order, or twice.
        pairs = np.unique(pairs)
        read, element = np.divmod(pairs, max(element_count, 1))
    size = np.bincount(read, minlength=len(place))
    return Reads(place=place, size=size, start=np.append(0, np.cumsum(size)), found=element)


def elements_read(added: Elements, reads: Reads) -> Elements:
    """Return the elements with the smallest set that each was read in."""
    number = np.repeat(np.arange(len(reads.size)), reads.size)
    size, read_by = _least(reads.found, reads.size[number], number, len(added.value))
    return replace(added, size=np.where(read_by < 0, UNREAD, size), read_by=read_by)


def things_of(columns: Columns, elements: Elements, reads: Reads) -> Things:
    """Return reads, and the elements that owe something, by group."""
    owing = np.flatnonzero((elements.size != UNREAD) | (elements.end != OPEN_NS))
    size = elements.size[owing]
    group = np.append(2 * reads.size + 1, np.where(size == UNREAD, UNREAD, 2 * size))
    order = np.argsort(group, kind="stable")
    no_element, no_read = np.full(len(reads.place), -1), np.full(len(owing), -1)
    return Things(
        group=group[order],
        call=np.append(columns.call[reads.place], elements.call[owing])[order],
        end=np.append(columns.end[reads.place], elements.end[owing])[order],
        element=np.append(no_element, owing)[order],
        read=np.append(np.arange(len(reads.place)), no_read)[order],
    )
