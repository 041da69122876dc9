"""V1 to V3: reads of metadata that lack what was acknowledged, or shown, before they were called.

Reads of topics and of their settings, through every broker. All three ask the same question
(`newer.first_known_above`) of different claims:

- V1: an acknowledged write is a claim, newer than anything made before it was called, and known
  from its acknowledgement on;
- V2 and V3: a read that shows what a recorded write made is the same claim, known from the return
  of that read on; of another broker (V2) or of the same one (V3);
- V2 and V3 also of every partition: its leader epoch, within one topic id, only grows. No write
  has to be known, so the topics of records, which the harness watches, are covered, too;
- all three also of the number of a topic's partitions (`partition_counts`).

Which writes outdate which sightings: a creation outdates all that is older; a change of settings
the numbers, and the absence, since there was a topic to change; a deletion the ids and the numbers.

Sound because a rank is the latest moment at which what was seen can have been made, and a claim's
the earliest at which the newer thing can have been (the call of its write): only where the one lies
before the other is anything compared. Writes that overlap, and those without a clear end, therefore
never make a reader guilty.

They do not see: a read that shows no topic as the *newer* one (was it not yet created, or deleted
already?); ids of creations without a clear end; what happened to a topic's partitions besides their
number and their leader epochs. A write that a broker passed on twice, and that was carried out a
second time after a later one, looks like a stale setting.

Source: KIP-1243; Kafka's own promise is that brokers catch up in the end.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from checkers.proof import Proof
from checkers.visibility.growing import compared_count, stretches, went_back
from checkers.visibility.lacking import Lacking, stale_table
from checkers.visibility.newer import NONE, first_known_above
from checkers.visibility.partition_counts import (
    counts_that_lack_a_write,
    counts_that_went_back,
)
from checkers.visibility.sightings import (
    ABSENCE,
    ALTER,
    CREATE,
    DELETE,
    EVER,
    ID,
    NUMBER,
    Sightings,
    Writes,
    sightings_by_topic,
    writes_by_topic,
)
from checkers.visibility.topic_reads import TopicReads

__all__ = ["StaleReads", "backward_sessions", "nonrepeatable_reads", "stale_reads"]

_OUTDATED: Final = {
    CREATE: (ABSENCE, ID, NUMBER),
    ALTER: (ABSENCE, NUMBER),
    DELETE: (ID, NUMBER),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleReads:
    """The findings of a check."""

    table: pa.Table
    """`lacking.STALE_READS`."""
    judged_count: int
    """Sightings that a claim was known before: what a read showed of a topic, or of a partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claims:
    """The claims about one topic: what was newer than a rank, and since when that was known."""

    f: NDArray[np.int64]
    """The `f` of the write that made it."""
    rank: NDArray[np.int64]
    known_ns: NDArray[np.int64]
    node: NDArray[np.object_]
    clause: Callable[[int], Proof]


def stale_reads(told: TopicReads) -> StaleReads:
    """Judge V1."""
    writes_of = writes_by_topic(told.topic_writes)
    found: list[Lacking] = []
    judged_count = 0
    for topic, seen in sightings_by_topic(told.topics):
        if (writes := writes_of.get(topic)) is None:
            continue
        ranks = seen.ranks(writes)
        claims = _of_writes(writes)
        judged_count += _judged_count(seen, ranks, claims)
        found.append(_lacking(topic, seen, claims, _outdated(seen, ranks, claims)))
    of_counts, counts_count = counts_that_lack_a_write(told)
    return StaleReads(
        table=stale_table([*found, *of_counts]), judged_count=judged_count + counts_count
    )


def nonrepeatable_reads(told: TopicReads) -> StaleReads:
    """Judge V2: from writes it takes what has no order of its own."""
    return _backward(told, across=True)


def backward_sessions(told: TopicReads) -> StaleReads:
    """Judge V3, as V2."""
    return _backward(told, across=False)


def _backward(told: TopicReads, *, across: bool) -> StaleReads:
    writes_of = writes_by_topic(told.topic_writes)
    found: list[Lacking] = []
    judged_count = 0
    for topic, seen in sightings_by_topic(told.topics):
        if (writes := writes_of.get(topic)) is None:
            continue
        ranks = seen.ranks(writes)
        for node in np.unique(seen.node):
            here = seen.node == node
            claims = _of_sightings(seen.take(~here if across else here), writes)
            mine = seen.take(here)
            judged_count += _judged_count(mine, ranks[here], claims)
            found.append(_lacking(topic, mine, claims, _outdated(mine, ranks[here], claims)))
    of_epochs, epochs_count = _epochs_that_went_back(told, across=across)
    of_counts, counts_count = counts_that_went_back(told, across=across)
    return StaleReads(
        table=stale_table([*found, *of_epochs, *of_counts]),
        judged_count=judged_count + epochs_count + counts_count,
    )


def _of_writes(writes: Writes) -> _Claims:
    kept = np.flatnonzero(writes.acknowledged)

    def clause(claim: int) -> Proof:
        write = kept[claim]
        rule, made = {
            CREATE: ("the creation of topic id {topic_id}", {"topic_id": writes.topic_id[write]}),
            ALTER: ("the change of settings to {setting}", {"setting": writes.number[write]}),
            DELETE: ("the deletion", {}),
        }[int(writes.f[write])]
        by: dict[str, Any] = {"write": writes.index[write], "node": writes.node[write]}
        return Proof.of(rule + " (write {write}, through {node})", **made, **by)

    return _Claims(
        f=writes.f[kept],
        rank=writes.call_ns[kept],
        known_ns=writes.return_ns[kept],
        node=writes.node[kept],
        clause=clause,
    )


def _of_sightings(seen: Sightings, writes: Writes) -> _Claims:
    maker = seen.makers(writes)
    kept = np.flatnonzero(maker >= 0)
    made_by = maker[kept]

    def clause(claim: int) -> Proof:
        row = int(kept[claim])
        return _shown(seen, row).further(
            ", as read {read} through {node} had shown (process {process})",
            read=seen.read[row],
            node=seen.node[row],
            process=seen.process[row],
        )

    return _Claims(
        f=writes.f[made_by],
        rank=writes.call_ns[made_by],
        known_ns=seen.return_ns[kept],
        node=seen.node[kept],
        clause=clause,
    )


def _outdated(seen: Sightings, ranks: NDArray[np.int64], claims: _Claims) -> NDArray[np.int64]:
    """Return for each sighting the claim that it lacks, or NONE."""
    found = np.full(len(seen), NONE, dtype=np.int64)
    for able, asking in _comparable(seen, claims):
        first = first_known_above(
            claims.rank[able],
            claims.known_ns[able],
            asked=ranks[asking],
            before_ns=seen.call_ns[asking],
        )
        lacking = first != NONE
        found[asking[lacking]] = able[first[lacking]]
    return found


def _judged_count(seen: Sightings, ranks: NDArray[np.int64], claims: _Claims) -> int:
    """Return how many sightings of a known rank were called after some claim was known."""
    count = 0
    for able, asking in _comparable(seen, claims):
        if len(able):
            known = seen.call_ns[asking] > claims.known_ns[able].min()
            count += int(np.count_nonzero(known & (ranks[asking] != EVER)))
    return count


def _comparable(
    seen: Sightings, claims: _Claims
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield for each kind the claims that may outdate it, and the sightings of it."""
    for kind in (ABSENCE, ID, NUMBER):
        fs = [f for f, kinds in _OUTDATED.items() if kind in kinds]
        yield np.flatnonzero(np.isin(claims.f, fs)), np.flatnonzero(seen.kind == kind)


def _lacking(key: str, seen: Sightings, claims: _Claims, lacked: NDArray[np.int64]) -> Lacking:
    rows = np.flatnonzero(lacked != NONE)
    stale, claim = seen.take(rows), lacked[rows]

    def clauses(place: int) -> tuple[Proof, Proof]:
        return _shown(stale, place), claims.clause(int(claim[place]))

    return Lacking(
        key=key,
        read=stale.read,
        process=stale.process,
        node=stale.node,
        call_ns=stale.call_ns,
        known_ns=claims.known_ns[claim],
        clauses=clauses,
    )


def _shown(seen: Sightings, row: int) -> Proof:
    if seen.kind[row] == ID:
        return Proof.of("topic id {topic_id}", topic_id=seen.topic_id[row])
    if seen.kind[row] == NUMBER:
        return Proof.of("setting {setting}", setting=seen.number[row])
    return Proof.of("no such topic")


def _epochs_that_went_back(told: TopicReads, *, across: bool) -> tuple[list[Lacking], int]:
    """Find reads that went back, and how many sightings were compared.

    `across`: against reads through other brokers, else through the same one.
    """
    partitions = list(stretches(told.epochs, ("topic", "topic_id", "partition"), then="read"))
    found = [
        lacking
        for partition in partitions
        for lacking in went_back(
            f"{partition['topic'][0]}-{partition['partition'][0]}",
            partition,
            number="leader_epoch",
            across=across,
            clause=lambda epoch: Proof.of("leader epoch {leader_epoch}", leader_epoch=epoch),
        )
    ]
    return found, sum(compared_count(partition, across=across) for partition in partitions)
