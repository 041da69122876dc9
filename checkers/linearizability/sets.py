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

import numpy as np
import pyarrow as pa

from checkers.anomaly import Found, found
from checkers.linearizability.budget import Budget
from checkers.linearizability.operations import answer_count, columns_of
from checkers.linearizability.searched import CHECK
from checkers.linearizability.set_proofs import Story, of_apart, of_strange
from checkers.linearizability.set_rows import (
    MODEL,
    Elements,
    Numbers,
    Reads,
    Things,
    added_of,
    elements_read,
    reads_of,
    things_of,
    values_read,
)
from checkers.proof import Proof

__all__ = ["grow_only_set"]


def grow_only_set(key: str, rows: pa.Table, _budget: Budget) -> Found:
    """Find what is wrong with the operations of one set: `KeyKernel`. It needs no budget."""
    columns = columns_of(rows, MODEL)
    reads_of_values, values = values_read(columns)
    added = added_of(columns)
    number = np.minimum(np.searchsorted(added.value, values), max(len(added.value) - 1, 0))
    known = added.value[number] == values if len(added.value) else np.zeros(len(values), dtype=bool)
    reads = reads_of(columns, reads_of_values[known], number[known], len(added.value))
    elements = elements_read(added, reads)
    strange = np.flatnonzero(~known)
    apart = _apart(elements, reads)
    # Where the sets are no chain, the groups have no order.
    things = things_of(columns, elements, reads)
    late, awaited = _late(things) if not len(apart) else (apart[:0], apart[:0])

    def proof(anomaly: int) -> Proof:
        if anomaly < len(strange):
            place = int(reads.place[reads_of_values[strange[anomaly]]])
            return of_strange(columns, place, int(values[strange[anomaly]]))
        if anomaly < len(strange) + len(apart):
            return of_apart(columns, elements, reads, int(apart[anomaly - len(strange)]))
        pair = anomaly - len(strange) - len(apart)
        story = Story(columns=columns, elements=elements, reads=reads, things=things)
        return story.of(early=int(late[pair]), awaited=int(awaited[pair]))

    count = len(strange) + len(apart) + len(late)
    cases = answer_count(columns, MODEL)
    return found(CHECK, key, cases=cases, never=np.arange(count), proof=proof)


def _apart(elements: Elements, reads: Reads) -> Numbers:
    """Find reads that lack something which a set no larger than theirs had."""
    known = np.searchsorted(np.sort(elements.size), reads.size, side="right")
    return np.flatnonzero(known != reads.size)


def _late(things: Things) -> tuple[Numbers, Numbers]:
    """Find things that were over before one of an earlier group began, and that one."""
    if not len(things.group):
        return things.group, things.group
    reach = np.maximum.accumulate(things.call)
    latest = np.maximum.accumulate(np.where(things.call == reach, np.arange(len(reach)), 0))
    before = np.searchsorted(things.group, things.group, side="left") - 1
    late = np.flatnonzero((before >= 0) & (things.end < reach[before]))
    return late, latest[before[late]]
