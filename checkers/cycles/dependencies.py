"""The dependencies of transactions: ww, wr and rw edges from the order of each list.

Let e1, e2, … be the elements of a key's longest read that transactions appended which did not fail.
- ww: the transaction of an element precedes that of the next one.
- wr: the transaction of the last element of a read precedes its reader (so do those of the
  elements before, by ww).
- rw: a reader precedes the transaction of the first element that it did not see (and those of the
  elements after, by ww).
- What ok transactions appended and the longest read does not hold, comes after all that it holds:
  for the list is only appended to. So the transaction of the last element precedes theirs (ww), and
  so does every reader of the list up to there (rw). Among themselves nothing is known.

These are all: an order of the transactions that keeps every edge explains every external read,
however the unread elements are put at the end. Hence, where no list has an anomaly of its own
(`list_anomalies`), transactions are serializable exactly if the graph has no cycle.

Only external reads make edges: what a transaction reads after an append of its own is told by ww.
An info transaction takes part if one of its elements was read anywhere (`graph.observed`); then it
was committed, and its appends elsewhere count as those of ok ones do.

A key whose order is in doubt (`list_anomalies`: incompatible-order, duplicate-element) makes no
edges.

Source: Kingsbury and Alvaro 2020, section 4; Adya 1999, section 3.1.
"""

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.cycles.edges import EDGE, EdgeKind, Edges, edges_of, merged
from fencepost.checkers.cycles.steps import NONE, TransactionSteps
from fencepost.checkers.cycles.versions import KeyVersions
from fencepost.checkers.cycles.visits import Visits
from fencepost.checkers.rows import FAIL, INFO

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


def observed(steps: TransactionSteps, versions: KeyVersions) -> Ints:
    """Return the info transactions that were committed, for an ok transaction read of them."""
    writer = versions.writer[versions.writer >= 0]
    read = [steps.elements[steps.start[row] : steps.end[row]] for row in versions.differing]
    keys = [
        np.full(len(one), steps.key[row]) for one, row in zip(read, versions.differing, strict=True)
    ]
    if read:
        more = versions.writers_of(np.concatenate(keys), np.concatenate(read))
        writer = np.concatenate([writer, more[more >= 0]])
    return np.unique(steps.transaction[writer[steps.outcome[writer] == INFO]])


def dependencies(
    steps: TransactionSteps, versions: KeyVersions, visits: Visits
) -> tuple[Edges, Ints]:
    """Return all edges of these keys, and what fans of them span backwards (`edges.merged`)."""
    order = _Order(steps, versions)
    reads = visits.external[visits.external >= 0]
    reads = reads[order.certain[steps.key[reads]]]
    passed = order.passed(reads)
    fans, spans = _unread(steps, order, reads[passed == order.end[steps.key[reads]]])
    edges = (order.neighbours(), *order.around(reads, passed), *fans)
    return np.concatenate([np.empty(0, EDGE), *edges]), spans


class _Order:
    """The elements of all keys that have a transaction, key after key."""

    def __init__(self, steps: TransactionSteps, versions: KeyVersions) -> None:
        self._steps = steps
        self.certain = np.ones(len(steps.names), np.bool_)
        self.certain[steps.key[versions.differing]] = False
        key = np.searchsorted(versions.bounds, versions.again, side="right") - 1
        self.certain[key] = False
        writer = versions.writer
        counts = (writer >= 0) & (steps.outcome[writer] != FAIL)
        self._bounds = versions.bounds
        self._before = np.concatenate([[0], np.cumsum(counts)])
        self.row = writer[counts]
        """The rows that appended them."""
        self.transaction = steps.transaction[self.row]
        self.start = self._before[versions.bounds[:-1]]
        """Of each key, its first one …"""
        self.end = self._before[versions.bounds[1:]]
        """… and the one after its last."""
        self.placed = versions.place

    def passed(self, reads: Ints) -> Ints:
        """Return, for each read, the element after those that it saw."""
        steps = self._steps
        passed: Ints = self._before[self._bounds[steps.key[reads]] + steps.length[reads]]
        return passed

    def neighbours(self) -> Edges:
        key = self._steps.key[self.row]
        pair = np.flatnonzero((np.diff(key) == 0) & self.certain[key[1:]])
        value = self._steps.value[self.row]
        return edges_of(
            self.transaction[pair],
            self.transaction[pair + 1],
            EdgeKind.WW,
            key=key[pair],
            before=value[pair],
            element=value[pair + 1],
        )

    def around(self, reads: Ints, passed: Ints) -> tuple[Edges, Edges]:
        """Return edges from the last element seen to each read, and on to the first not seen."""
        steps = self._steps
        key, value = steps.key[reads], steps.value[self.row]
        saw, missed = passed > self.start[key], passed < self.end[key]
        last = self._last(key, passed)
        written = edges_of(
            self.transaction[passed[saw] - 1],
            steps.transaction[reads[saw]],
            EdgeKind.WR,
            key=key[saw],
            before=np.full(int(saw.sum()), NONE),
            element=last[saw],
        )
        overwritten = edges_of(
            steps.transaction[reads[missed]],
            self.transaction[passed[missed]],
            EdgeKind.RW,
            key=key[missed],
            before=last[missed],
            element=value[passed[missed]],
        )
        return written, overwritten

    def _last(self, key: Ints, passed: Ints) -> Ints:
        """Return the value of the element before each of these; `NONE` at the start of a list."""
        last = np.full(len(key), NONE)
        saw = passed > self.start[key]
        last[saw] = self._steps.value[self.row[passed[saw] - 1]]
        return last

    def ends(self, keys: Ints) -> tuple[Ints, Ints]:
        """Return the row of each list's last element, or -1, and its value, or `NONE`."""
        row = np.full(len(keys), -1)
        some = self.end[keys] > self.start[keys]
        row[some] = self.row[self.end[keys[some]] - 1]
        return row, np.where(some, self._steps.value[row] if len(self._steps) else NONE, NONE)


def _unread(steps: TransactionSteps, order: _Order, readers: Ints) -> tuple[list[Edges], Ints]:
    """Return edges to the appends that no longest read has; `readers`: of whole longest lists."""
    appends = steps.appends & (order.placed < 0) & (steps.outcome != FAIL)
    rows = np.flatnonzero(appends & order.certain[steps.key])
    fresh = np.ones(len(rows), np.bool_)
    fresh[1:] = (np.diff(steps.key[rows]) != 0) | (np.diff(steps.transaction[rows]) != 0)
    rows = rows[fresh]
    key = steps.key[rows]
    last, before = order.ends(key)
    written = np.flatnonzero(last >= 0)
    after = edges_of(
        steps.transaction[last[written]],
        steps.transaction[rows[written]],
        EdgeKind.WW,
        key=key[written],
        before=before[written],
        element=steps.value[rows[written]],
    )
    fan = _Fans(steps, rows, readers, order.ends(steps.key[readers])[1])
    return [after, *fan.edges()], fan.spans()


class _Fans:
    """The edges from each reader of a list's end to the other transactions that append later.

    Of a key with writers w1, w2, … (by transaction), node S_i leads to w_i and S_i+1, node P_i to
    w_i and P_i-1. A reader that is not a writer leads to S_1; one that is w_i itself leads to P_i-1
    and S_i+1, so that no way leads from it back to itself.
    """

    def __init__(self, steps: TransactionSteps, writers: Ints, readers: Ints, before: Ints) -> None:
        self._steps = steps
        self._writers = writers
        key = steps.key[writers]
        low = np.searchsorted(key, steps.key[readers])
        high = np.searchsorted(key, steps.key[readers], side="right")
        kept = low < high
        self._readers, self._before = readers[kept], before[kept]
        self._low, self._high = low[kept], high[kept]
        self._own = self._found()

    def _found(self) -> Ints:
        """The place of each reader among the writers; -1 if it is not a writer."""
        steps = self._steps
        code = steps.key[self._writers] * _span(steps) + steps.transaction[self._writers]
        wanted = steps.key[self._readers] * _span(steps) + steps.transaction[self._readers]
        place = np.searchsorted(code, wanted)
        place[place == len(code)] = 0
        return np.where(code[place] == wanted, place, -1) if len(code) else place

    def edges(self) -> list[Edges]:
        outside, own = self._own < 0, self._own
        back = np.flatnonzero((own >= 0) & (own > self._low))
        on = np.flatnonzero((own >= 0) & (own + 1 < self._high))
        return [
            self._into(np.flatnonzero(outside), self._suffix(self._low[outside])),
            self._into(back, self._prefix(own[back] - 1)),
            self._into(on, self._suffix(own[on] + 1)),
            *self._inside(),
        ]

    def spans(self) -> Ints:
        """Return the spans from a writer to a later reader that is another transaction."""
        transaction = self._steps.transaction[self._writers]
        first = self._low + (self._own == self._low)
        some = np.flatnonzero(first < self._high)
        target, source = transaction[first[some]], self._steps.transaction[self._readers[some]]
        back = target < source
        return merged([np.stack([target[back], source[back]], axis=1)])

    def _suffix(self, place: Ints) -> Ints:
        return -1 - 2 * place

    def _prefix(self, place: Ints) -> Ints:
        return -2 - 2 * place

    def _into(self, which: Ints, nodes: Ints) -> Edges:
        rows = self._readers[which]
        return edges_of(
            self._steps.transaction[rows],
            nodes,
            EdgeKind.RW,
            key=self._steps.key[rows],
            before=self._before[which],
            element=np.full(len(rows), NONE),
        )

    def _inside(self) -> list[Edges]:
        steps = self._steps
        used = np.zeros(len(self._writers) + 1, np.int64)
        np.add.at(used, self._low, 1)
        np.add.at(used, self._high, -1)
        place = np.flatnonzero(np.cumsum(used[:-1]))
        key = steps.key[self._writers]
        value = steps.value[self._writers]
        none = np.full(len(place), NONE)
        on = place[1:][(np.diff(place) == 1) & (np.diff(key[place]) == 0)]
        made = []
        for node in (self._suffix, self._prefix):
            target = steps.transaction[self._writers[place]]
            made.append(
                edges_of(
                    node(place),
                    target,
                    EdgeKind.FREE,
                    key=key[place],
                    before=none,
                    element=value[place],
                )
            )
        for source, target in (
            (self._suffix(on - 1), self._suffix(on)),
            (self._prefix(on), self._prefix(on - 1)),
        ):
            made.append(
                edges_of(
                    source,
                    target,
                    EdgeKind.FREE,
                    key=key[on],
                    before=none[: len(on)],
                    element=none[: len(on)],
                )
            )
        return made


def _span(steps: TransactionSteps) -> int:
    return int(steps.transaction.max(initial=0)) + 1
