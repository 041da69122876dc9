"""What is wrong with the lists themselves, before any graph: each a proof by one or two reads.

- aborted-element (Adya's G1a): an ok transaction read what a failed one appended.
- garbage-element: a read has an element that nobody appended.
- duplicate-element: a list has an element twice.
- incompatible-order: of two reads of a key neither is a prefix of the other. They differ at one
  place. If both elements there are of transactions that are known to be committed, both are in the
  list for good, and each came before the other; else one of them may have been undone in between,
  which takes reading uncommitted data. Likewise where the appends of one transaction to a key are
  not in its order, or a later one of them is in the list and an earlier one is not.
- intermediate-read (G1b): a transaction's external read ends with an element that its writer
  followed by another one, in the same transaction.
- dirty-update: in a list, the element of a failed transaction is followed by one of a transaction
  that was committed: the update was made on top of what was undone.
- internal-inconsistency: a later read of a transaction does not show what its earlier read showed
  and what it appended since; or its first read shows what it appends later. If what it appended
  itself is missing, no level allows it; what others appended in between may come to light under
  read-committed.
- lost-update: several committed transactions read the same version of a list and then appended to
  it. Whichever came first, the others did not see it. Where the appends were read, the graph says
  so (G-single); this is about appends that nobody read.

Each is certain by itself. Only reads of ok transactions count.

Source: Adya, Liskov, O'Neil 2000; Kingsbury and Alvaro 2020, section 4.3; the catalogue of Elle.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from checkers.cycles.steps import Steps
from checkers.cycles.versions import Versions, is_failed
from checkers.cycles.visits import Visits
from checkers.kernels.rows import FAIL, OK
from history.models import Isolation

__all__ = ["SPELLED_MAX", "Oddities", "Oddity", "oddities"]

Ints = NDArray[np.int64]

SPELLED_MAX: Final = 1000
"""Proofs spelled out a kind and row group; all are counted."""
_SHOWN: Final = 12
"""Elements of a list that a sentence shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Oddity:
    """One anomaly of a list and its proof."""

    key: str
    level: Isolation
    """The weakest that forbids it."""
    transactions: tuple[int, ...]
    values: tuple[int, ...]
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Oddities:
    """All anomalies of one check."""

    check: str
    spelled: tuple[Oddity, ...]
    unspelled: dict[Isolation, int]
    """How many more there are, by the weakest level that forbids them."""


@dataclass(frozen=True, slots=True)
class _Lists:
    steps: Steps
    versions: Versions
    visits: Visits

    def name(self, row: int) -> str:
        return self.steps.names[int(self.steps.key[row])]

    def transaction(self, row: int) -> int:
        return int(self.steps.transaction[row])

    def reader(self, places: Ints) -> Ints:
        """The rows of the longest reads that hold these elements."""
        key = np.searchsorted(self.versions.bounds, places, side="right") - 1
        rows: Ints = self.versions.longest[key]
        return rows


def oddities(steps: Steps, versions: Versions, visits: Visits) -> Iterator[Oddities]:
    """Every anomaly of these keys' lists, check by check."""
    lists = _Lists(steps, versions, visits)
    strange = _strangers(lists)
    yield _aborted(lists, strange)
    yield _garbage(lists, strange)
    yield _duplicates(lists)
    yield _orders(lists)
    yield _intermediate(lists)
    yield _dirty(lists)
    yield _internal(lists)
    yield _lost_updates(lists)


def _spelled(
    check: str, levels: list[Isolation], spell: Callable[[int, Isolation], Oddity]
) -> Oddities:
    unspelled = levels[SPELLED_MAX:]
    return Oddities(
        check=check,
        spelled=tuple(spell(number, level) for number, level in enumerate(levels[:SPELLED_MAX])),
        unspelled={level: unspelled.count(level) for level in set(unspelled)},
    )


def _strangers(lists: _Lists) -> tuple[Ints, Ints, Ints]:
    """Elements that were read and whose writer is nobody or failed: reader, value, writer (rows).

    One reader each: the longest read, else one that is no prefix of it.
    """
    steps, versions = lists.steps, lists.versions
    odd = np.flatnonzero((versions.writer < 0) | is_failed(steps, versions.writer))
    odd = np.setdiff1d(odd, versions.again)
    rows = np.repeat(versions.differing, steps.length[versions.differing])
    tails = [steps.list_of(row) for row in versions.differing.tolist()]
    values = np.concatenate([np.empty(0, np.int64), *tails])
    writer = versions.writers_of(steps.key[rows], values)
    bad = np.flatnonzero((writer < 0) | is_failed(steps, writer))
    reader = np.concatenate([lists.reader(odd), rows[bad]])
    value = np.concatenate([versions.value[odd], values[bad]])
    both = np.concatenate([versions.writer[odd], writer[bad]])
    _, kept = np.unique(np.stack([steps.key[reader], value]), axis=1, return_index=True)
    kept = np.sort(kept)
    return reader[kept], value[kept], both[kept]


def _aborted(lists: _Lists, strange: tuple[Ints, Ints, Ints]) -> Oddities:
    reader, value, writer = (column[strange[2] >= 0] for column in strange)

    def spell(number: int, level: Isolation) -> Oddity:
        read, wrote = lists.transaction(reader[number]), lists.transaction(writer[number])
        name, element = lists.name(reader[number]), int(value[number])
        return Oddity(
            key=name,
            level=level,
            transactions=(wrote, read),
            values=(element,),
            detail=f"transaction {read} read {element} in {name}, which transaction {wrote} "
            "appended, and that failed: it must not exist",
        )

    return _spelled("aborted-element", [Isolation.READ_COMMITTED] * len(reader), spell)


def _garbage(lists: _Lists, strange: tuple[Ints, Ints, Ints]) -> Oddities:
    reader, value, _ = (column[strange[2] < 0] for column in strange)

    def spell(number: int, level: Isolation) -> Oddity:
        read, name = lists.transaction(reader[number]), lists.name(reader[number])
        return Oddity(
            key=name,
            level=level,
            transactions=(read,),
            values=(int(value[number]),),
            detail=f"transaction {read} read {int(value[number])} in {name}, which nobody appended",
        )

    return _spelled("garbage-element", [Isolation.READ_UNCOMMITTED] * len(reader), spell)


def _duplicates(lists: _Lists) -> Oddities:
    steps, versions = lists.steps, lists.versions
    again = versions.again
    found = list(zip(lists.reader(again).tolist(), versions.value[again].tolist(), strict=True))
    for row in versions.differing.tolist():
        values, counts = np.unique(steps.list_of(row), return_counts=True)
        found += [(row, int(value)) for value in values[counts > 1]]

    def spell(number: int, level: Isolation) -> Oddity:
        row, value = found[number]
        return Oddity(
            key=lists.name(row),
            level=level,
            transactions=(lists.transaction(row),),
            values=(value,),
            detail=f"transaction {lists.transaction(row)} read {lists.name(row)} as "
            f"{_list(steps.list_of(row))}: {value} comes twice, and was appended once",
        )

    return _spelled("duplicate-element", [Isolation.READ_UNCOMMITTED] * len(found), spell)


def _orders(lists: _Lists) -> Oddities:
    steps, versions = lists.steps, lists.versions
    rows, places = versions.differing, versions.differs_at
    key = steps.key[rows]
    ours = versions.writers_of(key, steps.elements[steps.start[rows] + places])
    theirs = versions.writer[versions.bounds[key] + places]
    committed = (ours >= 0) & (theirs >= 0)
    committed &= (steps.outcome[ours] == OK) & (steps.outcome[theirs] == OK)
    earlier, later = _out_of_own_order(lists)
    levels = [_order_level(known) for known in committed.tolist()]

    def spell(number: int, level: Isolation) -> Oddity:
        if number < len(rows):
            return _neither_prefix(lists, int(rows[number]), int(places[number]), level)
        number -= len(rows)
        return _own_order(lists, int(earlier[number]), int(later[number]), level)

    levels += [Isolation.READ_UNCOMMITTED] * len(later)
    return _spelled("incompatible-order", levels, spell)


def _order_level(committed: bool) -> Isolation:  # noqa: FBT001  # the one thing it depends on
    return Isolation.READ_UNCOMMITTED if committed else Isolation.READ_COMMITTED


def _out_of_own_order(lists: _Lists) -> tuple[Ints, Ints]:
    """Appends of a visit, one after the other, that the list does not show in this order."""
    steps, appends = lists.steps, lists.visits.appends
    place = lists.versions.place[appends]
    one = np.diff(lists.visits.visit[appends]) == 0
    wrong = one & (place[1:] >= 0) & ((place[:-1] < 0) | (place[:-1] > place[1:]))
    wrong &= steps.outcome[appends[1:]] != FAIL
    return appends[:-1][wrong], appends[1:][wrong]


def _neither_prefix(lists: _Lists, row: int, place: int, level: Isolation) -> Oddity:
    steps = lists.steps
    other = int(lists.versions.longest[steps.key[row]])
    ours, theirs = steps.list_of(row), steps.list_of(other)
    return Oddity(
        key=lists.name(row),
        level=level,
        transactions=(lists.transaction(row), lists.transaction(other)),
        values=(int(ours[place]), int(theirs[place])),
        detail=f"transaction {lists.transaction(row)} read {lists.name(row)} as {_list(ours)} and "
        f"transaction {lists.transaction(other)} as {_list(theirs)}: neither is a prefix of the "
        f"other, they differ at place {place} ({int(ours[place])} and {int(theirs[place])})",
    )


def _own_order(lists: _Lists, earlier: int, later: int, level: Isolation) -> Oddity:
    steps, name = lists.steps, lists.name(later)
    first, second = int(steps.value[earlier]), int(steps.value[later])
    reader = int(lists.versions.longest[steps.key[later]])
    return Oddity(
        key=name,
        level=level,
        transactions=(lists.transaction(later), lists.transaction(reader)),
        values=(first, second),
        detail=f"transaction {lists.transaction(later)} appended {first} to {name} and then "
        f"{second}; transaction {lists.transaction(reader)} read "
        f"{_list(steps.list_of(reader))}, where {first} is not before {second}",
    )


def _intermediate(lists: _Lists) -> Oddities:
    steps, visits = lists.steps, lists.visits
    reads = visits.external[visits.external >= 0]
    reads = reads[steps.length[reads] > 0]
    last = steps.elements[steps.end[reads] - 1]
    writer = lists.versions.writers_of(steps.key[reads], last)
    followed = (writer >= 0) & (visits.last_append[visits.visit[writer]] != writer)
    followed &= (steps.outcome[writer] != FAIL) & (visits.visit[writer] != visits.visit[reads])
    reads, writer = reads[followed], writer[followed]

    def spell(number: int, level: Isolation) -> Oddity:
        row, wrote = int(reads[number]), int(writer[number])
        final = int(visits.last_append[visits.visit[wrote]])
        seen, later = int(steps.value[wrote]), int(steps.value[final])
        return Oddity(
            key=lists.name(row),
            level=level,
            transactions=(lists.transaction(wrote), lists.transaction(row)),
            values=(seen, later),
            detail=f"transaction {lists.transaction(row)} read {lists.name(row)} up to {seen}, "
            f"after which transaction {lists.transaction(wrote)} still appended {later}: it saw "
            "the middle of that transaction",
        )

    return _spelled("intermediate-read", [Isolation.READ_COMMITTED] * len(reads), spell)


def _dirty(lists: _Lists) -> Oddities:
    steps, versions = lists.steps, lists.versions
    committed = np.flatnonzero((versions.writer >= 0) & (steps.outcome[versions.writer] == OK))
    failed = np.flatnonzero(is_failed(steps, versions.writer))
    following = np.searchsorted(committed, failed)
    end = versions.bounds[np.searchsorted(versions.bounds, failed, side="right")]
    inside = following < len(committed)
    inside[inside] = committed[following[inside]] < end[inside]
    failed, after = failed[inside], committed[following[inside]]

    def spell(number: int, level: Isolation) -> Oddity:
        gone, update = int(versions.writer[failed[number]]), int(versions.writer[after[number]])
        first, second = int(steps.value[gone]), int(steps.value[update])
        return Oddity(
            key=lists.name(gone),
            level=level,
            transactions=(lists.transaction(gone), lists.transaction(update)),
            values=(first, second),
            detail=f"{lists.name(gone)} holds {first} of transaction {lists.transaction(gone)}, "
            f"which failed, and after it {second} of transaction {lists.transaction(update)}, "
            "which was committed on top of it",
        )

    return _spelled("dirty-update", [Isolation.READ_COMMITTED] * len(failed), spell)


def _internal(lists: _Lists) -> Oddities:
    steps = lists.steps
    rows = _unlike_before(lists)
    found = [(row, _lost_own(lists, row)) for row in rows.tolist()]
    future = _future_reads(lists)

    def spell(number: int, level: Isolation) -> Oddity:
        if number < len(found):
            return _unlike(lists, found[number][0], level)
        row, append = (int(column[number - len(found)]) for column in future)
        value, who = int(steps.value[append]), lists.transaction(row)
        return Oddity(
            key=lists.name(row),
            level=level,
            transactions=(who,),
            values=(value,),
            detail=f"transaction {who} read {lists.name(row)} as {_list(steps.list_of(row))}, "
            f"and appended {value} only afterwards",
        )

    levels = [Isolation.READ_UNCOMMITTED if own else Isolation.SNAPSHOT for _, own in found]
    levels += [Isolation.READ_UNCOMMITTED] * len(future[0])
    return _spelled("internal-inconsistency", levels, spell)


def _unlike_before(lists: _Lists) -> Ints:
    """Reads that do not show what their visit knew: its last read, and its appends since."""
    steps, visits = lists.steps, lists.visits
    since = np.where(visits.before >= 0, visits.before, visits.first[visits.visit])
    own = visits.appended - visits.appended[since]
    rows = np.flatnonzero(steps.known & ((visits.before >= 0) | (own > 0)))
    own, before = own[rows], visits.before[rows]
    wrong = (before >= 0) & (steps.length[rows] != steps.length[before] + own)
    wrong |= steps.length[rows] < own
    # Two prefixes of one list agree as far as they go; others are compared one by one.
    wrong |= np.isin(rows, lists.versions.differing) | np.isin(before, lists.versions.differing)
    tail = np.flatnonzero(~wrong & (own > 0))
    count = own[tail]
    within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    first = visits.appended[rows[tail]] - count
    appended = steps.value[visits.appends[np.repeat(first, count) + within]]
    read = steps.elements[np.repeat(steps.end[rows[tail]] - count, count) + within]
    wrong[np.repeat(tail, count)[appended != read]] = True
    kept = [row for row in rows[wrong].tolist() if not _as_before(lists, row)]
    return np.array(kept, np.int64)


def _as_before(lists: _Lists, row: int) -> bool:
    steps, before = lists.steps, int(lists.visits.before[row])
    own = steps.value[lists.visits.own_appends(row)]
    shown = steps.list_of(row)
    if before >= 0:
        return np.array_equal(shown, np.concatenate([steps.list_of(before), own]))
    return len(shown) >= len(own) and np.array_equal(shown[len(shown) - len(own) :], own)


def _lost_own(lists: _Lists, row: int) -> bool:
    """Whether something is missing that the visit appended before."""
    visits = lists.visits
    first = visits.appended[visits.first[visits.visit[row]]]
    own = visits.appends[first : visits.appended[row]]
    return bool(np.setdiff1d(lists.steps.value[own], lists.steps.list_of(row)).size)


def _unlike(lists: _Lists, row: int, level: Isolation) -> Oddity:
    steps, before = lists.steps, int(lists.visits.before[row])
    own = steps.value[lists.visits.own_appends(row)]
    who, name = lists.transaction(row), lists.name(row)
    knew = f"read {_list(steps.list_of(before))}" if before >= 0 else "knew nothing"
    return Oddity(
        key=name,
        level=level,
        transactions=(who,),
        values=tuple(own.tolist()),
        detail=f"transaction {who} {knew} of {name}, appended {_list(own)}, and then read "
        f"{_list(steps.list_of(row))}",
    )


def _future_reads(lists: _Lists) -> tuple[Ints, Ints]:
    """External reads that show what their visit appends later: the read, and the append."""
    steps, versions, visits = lists.steps, lists.versions, lists.visits
    appends = visits.appends[versions.place[visits.appends] >= 0]
    read = visits.external[visits.visit[appends]]
    place = versions.place[appends] - versions.bounds[steps.key[appends]]
    seen = (read >= 0) & (place < steps.length[read]) & ~np.isin(read, versions.differing)
    return read[seen], appends[seen]


def _lost_updates(lists: _Lists) -> Oddities:
    steps, versions, visits = lists.steps, lists.versions, lists.visits
    read, last = visits.external, visits.last_append
    whole = (read >= 0) & (last >= 0) & (versions.place[last] < 0)
    key = steps.key[read]
    whole &= steps.length[read] == np.diff(versions.bounds)[key] if len(key) else whole
    whole &= ~np.isin(read, versions.differing)
    read, last, key = read[whole], last[whole], key[whole]
    order = np.argsort(key, kind="stable")
    read, last, key = read[order], last[order], key[order]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    counts = np.diff(np.append(starts, len(key)))
    found = [
        read[start : start + count]
        for start, count in zip(starts, counts, strict=True)
        if count > 1
    ]
    wrote = [
        last[start : start + count]
        for start, count in zip(starts, counts, strict=True)
        if count > 1
    ]

    def spell(number: int, level: Isolation) -> Oddity:
        rows, appends = found[number][:_SHOWN], wrote[number][:_SHOWN]
        who = tuple(lists.transaction(row) for row in rows.tolist())
        name = lists.name(int(rows[0]))
        return Oddity(
            key=name,
            level=level,
            transactions=who,
            values=tuple(steps.value[appends].tolist()),
            detail=f"transactions {', '.join(map(str, who))} all read {name} as "
            f"{_list(steps.list_of(int(rows[0])))} and then appended to it: one came first, and "
            "the others did not see it",
        )

    return _spelled("lost-update", [Isolation.SNAPSHOT] * len(found), spell)


def _list(values: Ints) -> str:
    """As one writes it, the middle of long ones left out."""
    words = [str(value) for value in values.tolist()]
    if len(words) > _SHOWN:
        half = _SHOWN // 2
        words = [*words[:half], "…", *words[-half:]]
    return f"[{' '.join(words)}]"
