"""The faults inside one transaction, or among those that updated one version (`list_anomalies`)."""

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.cycles.transaction_anomaly import (
    SHOWN,
    Lists,
    TransactionAnomalies,
    TransactionAnomaly,
    list_text,
    spelled_out,
)
from fencepost.checkers.proof import Proof
from fencepost.history.models import Isolation

Ints = NDArray[np.int64]


def internal_inconsistencies(lists: Lists) -> TransactionAnomalies:
    """Find transactions that contradict themselves."""
    steps = lists.steps
    rows = _unlike_before(lists)
    found = [(row, _lost_own(lists, row)) for row in rows.tolist()]
    future = _future_reads(lists)

    def spell(number: int, level: Isolation) -> TransactionAnomaly:
        if number < len(found):
            return _unlike(lists, found[number][0], level)
        row, append = (int(column[number - len(found)]) for column in future)
        value, who = int(steps.value[append]), lists.transaction(row)
        return TransactionAnomaly(
            key=lists.name(row),
            level=level,
            proof=Proof.of(
                "transaction {transaction} read {name} as {list}, and appended {value} only "
                "afterwards",
                operations={"transaction": who},
                values={"value": value},
                sources={"value": "transaction", "list": "transaction"},
                name=lists.name(row),
                list=list_text(steps.list_of(row)),
            ),
        )

    levels = [Isolation.READ_UNCOMMITTED if own else Isolation.SNAPSHOT for _, own in found]
    levels += [Isolation.READ_UNCOMMITTED] * len(future[0])
    return spelled_out(
        "internal-inconsistency",
        levels,
        spell,
        cases=_reads_beside_own_steps(lists),
        forbidden_by=Isolation.READ_UNCOMMITTED,
    )


def _reads_beside_own_steps(lists: Lists) -> int:
    """Count reads of lists that their transactions read before, or append to before or later."""
    visits, rows = lists.visits, np.flatnonzero(lists.steps.known)
    visit = visits.visit[rows]
    again = (visits.before[rows] >= 0) | (
        visits.appended[rows] > visits.appended[visits.first[visit]]
    )
    again |= visits.last_append[visit] > rows
    return int(np.count_nonzero(again))


def _unlike_before(lists: Lists) -> Ints:
    """Find reads that do not show what their visit knew: its last read, and its appends since."""
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


def _as_before(lists: Lists, row: int) -> bool:
    steps, before = lists.steps, int(lists.visits.before[row])
    own = steps.value[lists.visits.own_appends(row)]
    shown = steps.list_of(row)
    if before >= 0:
        return np.array_equal(shown, np.concatenate([steps.list_of(before), own]))
    return len(shown) >= len(own) and np.array_equal(shown[len(shown) - len(own) :], own)


def _lost_own(lists: Lists, row: int) -> bool:
    """Return whether the read lacks something that the visit appended before."""
    visits = lists.visits
    first = visits.appended[visits.first[visits.visit[row]]]
    own = visits.appends[first : visits.appended[row]]
    return bool(np.setdiff1d(lists.steps.value[own], lists.steps.list_of(row)).size)


def _unlike(lists: Lists, row: int, level: Isolation) -> TransactionAnomaly:
    steps, before = lists.steps, int(lists.visits.before[row])
    own = steps.value[lists.visits.own_appends(row)]
    who, name = lists.transaction(row), lists.name(row)
    knew = Proof.of("knew nothing")
    if before >= 0:
        knew = Proof.of("read {first_list}", first_list=list_text(steps.list_of(before)))
    return TransactionAnomaly(
        key=name,
        level=level,
        proof=Proof.of(
            "transaction {transaction} {knew} of {name}, appended {list}, and then read "
            "{other_list}",
            operations={"transaction": who},
            values=tuple(own.tolist()),
            knew=knew,
            name=name,
            list=list_text(own),
            other_list=list_text(steps.list_of(row)),
        ),
    )


def _future_reads(lists: Lists) -> tuple[Ints, Ints]:
    """Find external reads that show what their visit appends later: the read, and the append."""
    steps, versions, visits = lists.steps, lists.versions, lists.visits
    appends = visits.appends[versions.place[visits.appends] >= 0]
    read = visits.external[visits.visit[appends]]
    place = versions.place[appends] - versions.bounds[steps.key[appends]]
    seen = (read >= 0) & (place < steps.length[read]) & ~np.isin(read, versions.differing)
    return read[seen], appends[seen]


def lost_updates(lists: Lists) -> TransactionAnomalies:
    """Find committed transactions that read the same version and appended to it, unread."""
    steps, versions, visits = lists.steps, lists.versions, lists.visits
    read, last = visits.external, visits.last_append
    cases = int(np.count_nonzero((read >= 0) & (last >= 0)))
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

    def spell(number: int, level: Isolation) -> TransactionAnomaly:
        rows, appends = found[number][:SHOWN], wrote[number][:SHOWN]
        who = tuple(lists.transaction(row) for row in rows.tolist())
        name = lists.name(int(rows[0]))
        return TransactionAnomaly(
            key=name,
            level=level,
            proof=Proof.of(
                "transactions {transactions} all read {name} as {list} and then appended to "
                "it: one came first, and the others did not see it",
                values=tuple(steps.value[appends].tolist()),
                transactions=Proof.joined(
                    ", ",
                    (Proof.of("{transaction}", operations={"transaction": one}) for one in who),
                ),
                name=name,
                list=list_text(steps.list_of(int(rows[0]))),
            ),
        )

    return spelled_out(
        "lost-update",
        [Isolation.SNAPSHOT] * len(found),
        spell,
        cases=cases,
        forbidden_by=Isolation.SNAPSHOT,
    )
