"""The faults of the lists themselves, before any graph: each is proven by one or two reads.

- aborted-element (Adya's G1a): an ok transaction read what a failed one appended.
- garbage-element: a read has an element that no transaction appended.
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
  so (G-single); this is about appends that were not read.

Each is certain on its own. Only reads of ok transactions count.

Source: Adya, Liskov, O'Neil 2000; Kingsbury and Alvaro 2020, section 4.3; the catalogue of Elle.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.cycles.inconsistencies import internal_inconsistencies, lost_updates
from fencepost.checkers.cycles.transaction_anomaly import (
    Lists,
    TransactionAnomalies,
    TransactionAnomaly,
    list_text,
    spelled_out,
)
from fencepost.checkers.cycles.versions import is_failed
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import FAIL, OK
from fencepost.history.models import Isolation

Ints = NDArray[np.int64]


def list_anomalies(lists: Lists) -> Iterator[TransactionAnomalies]:
    """Yield every anomaly of these keys' lists, check by check."""
    strange = _strangers(lists)
    yield _aborted(lists, strange)
    yield _garbage(lists, strange)
    yield _duplicates(lists)
    yield _orders(lists)
    yield _intermediate(lists)
    yield _dirty(lists)
    yield internal_inconsistencies(lists)
    yield lost_updates(lists)


def _strangers(lists: Lists) -> tuple[Ints, Ints, Ints]:
    """Return the read elements without a writer or with a failed one: reader, value, writer (rows).

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


def _aborted(lists: Lists, strange: tuple[Ints, Ints, Ints]) -> TransactionAnomalies:
    reader, value, writer = (column[strange[2] >= 0] for column in strange)

    def spell(number: int, level: Isolation) -> TransactionAnomaly:
        read, wrote = lists.transaction(reader[number]), lists.transaction(writer[number])
        name, element = lists.name(reader[number]), int(value[number])
        return TransactionAnomaly(
            key=name,
            level=level,
            proof=Proof.of(
                "transaction {read} read {element} in {name}, which transaction {wrote} "
                "appended, and that failed: it must not exist",
                operations={"wrote": wrote, "read": read},
                values={"element": element},
                name=name,
            ),
        )

    return spelled_out(
        "aborted-element",
        [Isolation.READ_COMMITTED] * len(reader),
        spell,
        cases=lists.undone_count(),
        forbidden_by=Isolation.READ_COMMITTED,
    )


def _garbage(lists: Lists, strange: tuple[Ints, Ints, Ints]) -> TransactionAnomalies:
    reader, value, _ = (column[strange[2] < 0] for column in strange)

    def spell(number: int, level: Isolation) -> TransactionAnomaly:
        read, name = lists.transaction(reader[number]), lists.name(reader[number])
        return TransactionAnomaly(
            key=name,
            level=level,
            proof=Proof.of(
                "transaction {read} read {value} in {name}, which was never appended",
                operations={"read": read},
                values={"value": int(value[number])},
                name=name,
            ),
        )

    return spelled_out(
        "garbage-element",
        [Isolation.READ_UNCOMMITTED] * len(reader),
        spell,
        cases=lists.element_count(),
        forbidden_by=Isolation.READ_UNCOMMITTED,
    )


def _duplicates(lists: Lists) -> TransactionAnomalies:
    steps, versions = lists.steps, lists.versions
    again = versions.again
    found = list(zip(lists.reader(again).tolist(), versions.value[again].tolist(), strict=True))
    for row in versions.differing.tolist():
        values, counts = np.unique(steps.list_of(row), return_counts=True)
        found += [(row, int(value)) for value in values[counts > 1]]

    def spell(number: int, level: Isolation) -> TransactionAnomaly:
        row, value = found[number]
        return TransactionAnomaly(
            key=lists.name(row),
            level=level,
            proof=Proof.of(
                "transaction {transaction} read {name} as {list}: {value} comes twice, "
                "and was appended once",
                operations={"transaction": lists.transaction(row)},
                values={"value": value},
                name=lists.name(row),
                list=list_text(steps.list_of(row)),
            ),
        )

    return spelled_out(
        "duplicate-element",
        [Isolation.READ_UNCOMMITTED] * len(found),
        spell,
        cases=lists.element_count(),
        forbidden_by=Isolation.READ_UNCOMMITTED,
    )


def _orders(lists: Lists) -> TransactionAnomalies:
    steps, versions = lists.steps, lists.versions
    rows, places = versions.differing, versions.differs_at
    key = steps.key[rows]
    ours = versions.writers_of(key, steps.elements[steps.start[rows] + places])
    theirs = versions.writer[versions.bounds[key] + places]
    committed = (ours >= 0) & (theirs >= 0)
    committed &= (steps.outcome[ours] == OK) & (steps.outcome[theirs] == OK)
    earlier, later = _out_of_own_order(lists)
    levels = [_order_level(known) for known in committed.tolist()]

    def spell(number: int, level: Isolation) -> TransactionAnomaly:
        if number < len(rows):
            return _neither_prefix(lists, int(rows[number]), int(places[number]), level)
        number -= len(rows)
        return _own_order(lists, int(earlier[number]), int(later[number]), level)

    levels += [Isolation.READ_UNCOMMITTED] * len(later)
    return spelled_out(
        "incompatible-order",
        levels,
        spell,
        cases=_compared_count(lists),
        forbidden_by=Isolation.READ_UNCOMMITTED,
    )


def _compared_count(lists: Lists) -> int:
    """Count reads other than the longest of their key, and read pairs of neighbouring appends.

    A pair is of one transaction; it is the later one of the two that was read.
    """
    appends, longest = lists.visits.appends, lists.versions.longest
    one = np.diff(lists.visits.visit[appends]) == 0
    pairs = np.count_nonzero(one & (lists.versions.place[appends[1:]] >= 0))
    return int(np.count_nonzero(lists.steps.known) - np.count_nonzero(longest >= 0) + pairs)


def _order_level(committed: bool) -> Isolation:  # noqa: FBT001  # the one thing it depends on
    return Isolation.READ_UNCOMMITTED if committed else Isolation.READ_COMMITTED


def _out_of_own_order(lists: Lists) -> tuple[Ints, Ints]:
    """Find appends of a visit, one after the other, that the list does not show in this order."""
    steps, appends = lists.steps, lists.visits.appends
    place = lists.versions.place[appends]
    one = np.diff(lists.visits.visit[appends]) == 0
    wrong = one & (place[1:] >= 0) & ((place[:-1] < 0) | (place[:-1] > place[1:]))
    wrong &= steps.outcome[appends[1:]] != FAIL
    return appends[:-1][wrong], appends[1:][wrong]


def _neither_prefix(lists: Lists, row: int, place: int, level: Isolation) -> TransactionAnomaly:
    steps = lists.steps
    other = int(lists.versions.longest[steps.key[row]])
    ours, theirs = steps.list_of(row), steps.list_of(other)
    return TransactionAnomaly(
        key=lists.name(row),
        level=level,
        proof=Proof.of(
            "transaction {transaction} read {name} as {list} and transaction "
            "{lists_transaction} as {other_list}: neither is a prefix of the other, "
            "they differ at place {place} ({ours} and {theirs})",
            operations={
                "transaction": lists.transaction(row),
                "lists_transaction": lists.transaction(other),
            },
            values={"ours": int(ours[place]), "theirs": int(theirs[place])},
            name=lists.name(row),
            list=list_text(ours),
            other_list=list_text(theirs),
            place=place,
        ),
    )


def _own_order(lists: Lists, earlier: int, later: int, level: Isolation) -> TransactionAnomaly:
    steps, name = lists.steps, lists.name(later)
    first, second = int(steps.value[earlier]), int(steps.value[later])
    reader = int(lists.versions.longest[steps.key[later]])
    return TransactionAnomaly(
        key=name,
        level=level,
        proof=Proof.of(
            "transaction {transaction} appended {first} to {name} and then {second}; "
            "transaction {lists_transaction} read {list}, where {first} is not "
            "before {second}",
            operations={
                "transaction": lists.transaction(later),
                "lists_transaction": lists.transaction(reader),
            },
            values={"first": first, "second": second},
            name=name,
            list=list_text(steps.list_of(reader)),
        ),
    )


def _intermediate(lists: Lists) -> TransactionAnomalies:
    steps, visits = lists.steps, lists.visits
    reads = visits.external[visits.external >= 0]
    reads = reads[steps.length[reads] > 0]
    last = steps.elements[steps.end[reads] - 1]
    writer = lists.versions.writers_of(steps.key[reads], last)
    cases = _of_several(lists, reads, writer)
    followed = (writer >= 0) & (visits.last_append[visits.visit[writer]] != writer)
    followed &= (steps.outcome[writer] != FAIL) & (visits.visit[writer] != visits.visit[reads])
    reads, writer = reads[followed], writer[followed]

    def spell(number: int, level: Isolation) -> TransactionAnomaly:
        row, wrote = int(reads[number]), int(writer[number])
        final = int(visits.last_append[visits.visit[wrote]])
        seen, later = int(steps.value[wrote]), int(steps.value[final])
        return TransactionAnomaly(
            key=lists.name(row),
            level=level,
            proof=Proof.of(
                "transaction {lists_transaction} read {name} up to {seen}, after which "
                "transaction {transaction} still appended {later}: it saw the middle of that "
                "transaction",
                operations={
                    "transaction": lists.transaction(wrote),
                    "lists_transaction": lists.transaction(row),
                },
                values={"seen": seen, "later": later},
                name=lists.name(row),
            ),
        )

    return spelled_out(
        "intermediate-read",
        [Isolation.READ_COMMITTED] * len(reads),
        spell,
        cases=cases,
        forbidden_by=Isolation.READ_COMMITTED,
    )


def _of_several(lists: Lists, reads: Ints, writer: Ints) -> int:
    """Return how many of these reads end with another transaction's element, one of several."""
    visit = lists.visits.visit
    appended = np.bincount(visit[lists.visits.appends], minlength=len(lists.visits.first))
    known = np.flatnonzero(writer >= 0)
    reads, writer = reads[known], writer[known]
    other = (visit[writer] != visit[reads]) & (lists.steps.outcome[writer] != FAIL)
    return int(np.count_nonzero(other & (appended[visit[writer]] > 1)))


def _dirty(lists: Lists) -> TransactionAnomalies:
    steps, versions = lists.steps, lists.versions
    committed = np.flatnonzero((versions.writer >= 0) & (steps.outcome[versions.writer] == OK))
    failed = np.flatnonzero(is_failed(steps, versions.writer))
    following = np.searchsorted(committed, failed)
    end = versions.bounds[np.searchsorted(versions.bounds, failed, side="right")]
    inside = following < len(committed)
    inside[inside] = committed[following[inside]] < end[inside]
    failed, after = failed[inside], committed[following[inside]]

    def spell(number: int, level: Isolation) -> TransactionAnomaly:
        gone, update = int(versions.writer[failed[number]]), int(versions.writer[after[number]])
        first, second = int(steps.value[gone]), int(steps.value[update])
        return TransactionAnomaly(
            key=lists.name(gone),
            level=level,
            proof=Proof.of(
                "{name} holds {first} of transaction {transaction}, which failed, and after "
                "it {second} of transaction {lists_transaction}, which was committed on top "
                "of it",
                operations={
                    "transaction": lists.transaction(gone),
                    "lists_transaction": lists.transaction(update),
                },
                values={"first": first, "second": second},
                name=lists.name(gone),
            ),
        )

    return spelled_out(
        "dirty-update",
        [Isolation.READ_COMMITTED] * len(failed),
        spell,
        cases=lists.undone_count(),
        forbidden_by=Isolation.READ_COMMITTED,
    )
