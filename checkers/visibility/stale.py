"""V1 to V3: reads of metadata that lack what was acknowledged, or shown, before they were called.

A *claim* is something newer than a rank (`sightings`), known from a moment on. A read is stale if a
claim above the rank of what it shows was known before it was called (`newer.first_known_above`).
The claims are

- V1: the acknowledged writes, newer than anything made before they were called, and known from
  their acknowledgements on; a growth of a topic as the number of partitions that it gave;
- V2 and V3: the sightings themselves, of what a single recorded write made, or of what has an order
  of its own; known from the return of their read on. Through another broker (V2), or the same (V3).

A creation outdates all that is older; a change of settings the settings, and the absence, since
there was a topic to change; a deletion the ids and the settings. Leader epochs and numbers of
partitions need no write to be known, so the topics of records, which the harness watches, are
covered, too.

Sound because a rank is the latest moment at which what was seen can have been made, and a claim's
the earliest at which the newer thing can have been (the call of its write): only where the one lies
before the other is anything compared. Writes that overlap, and those without a clear end, therefore
never make a reader guilty. A growth is a claim on the ids whose creation was acknowledged before it
was called: an id is never given twice, so it was the topic of that name when the growth took
effect, and had as many partitions from then on.

They do not see: a read that shows no topic as the *newer* one (was it not yet created, or deleted
already?); ids of creations without a clear end. A write that a broker passed on twice, and that was
carried out a second time after a later one, looks like a stale setting.

Source: KIP-1243; Kafka's own promise is that brokers catch up in the end.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import taken
from fencepost.checkers.visibility.lacking import Lacking, stale_table
from fencepost.checkers.visibility.newer import NONE, first_known_above
from fencepost.checkers.visibility.sightings import (
    EVER,
    GROW,
    ID,
    NUMBER,
    OUTDATES,
    MetadataClaims,
    Numbers,
    Sightings,
    Writes,
    acknowledged,
    creations_ns,
    makers_of,
    numbers,
    pieces_of,
    ranks_of,
    sightings_of,
    sightings_of_topics,
    words,
    writes_by_topic,
)
from fencepost.checkers.visibility.topic_reads import TopicReads

_OF_EPOCHS: Final = ("topic", "topic_id", "partition")
_OF_COUNTS: Final = ("topic", "topic_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleReads:
    """The findings of a check."""

    table: pa.Table
    """`lacking.STALE_READS`."""
    judged_count: int
    """Sightings that a claim was known before: what a read showed of a topic, or of a partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """Sightings of one thing, and the claims that they are held against."""

    key: str
    seen: Sightings
    rank: Numbers
    shown: Callable[[Sightings, int], Proof]
    """The clause for a sighting."""
    claims: MetadataClaims
    clause: Callable[[int], Proof]
    """The clause for a claim, by its origin."""

    def lacking(self) -> tuple[Lacking | None, int]:
        """Return the reads that lack a claim, if any, and how many sightings were judged."""
        return self._lacking(np.arange(len(self.rank)), np.arange(len(self.claims.rank)))

    def went_back(self, node: str, *, across: bool) -> tuple[Lacking | None, int]:
        """Return the same of what this node showed, by the claims of others, or of itself."""
        made = self.claims.node == node
        return self._lacking(
            np.flatnonzero(self.seen.node == node), np.flatnonzero(~made if across else made)
        )

    def _lacking(self, seen: Numbers, claims: Numbers) -> tuple[Lacking | None, int]:
        lacked, count = np.full(len(self.rank), NONE), 0
        kinds, fs = self.seen.kind[seen], self.claims.f[claims]
        for kind, outdates in enumerate(OUTDATES):
            asking, able = seen[kinds == kind], claims[outdates[fs]]
            if not len(asking) or not len(able):
                continue
            rank, call_ns = self.rank[asking], self.seen.call_ns[asking]
            above, known_ns = self.claims.rank[able], self.claims.known_ns[able]
            count += int(np.count_nonzero((call_ns > known_ns.min()) & (rank != EVER)))
            if above.max() <= rank.min():
                continue  # as of a partition whose epoch never changed
            first = first_known_above(above, known_ns, asked=rank, before_ns=call_ns)
            lacks = first != NONE
            lacked[asking[lacks]] = able[first[lacks]]
        rows = np.flatnonzero(lacked != NONE)
        return (self._told(rows, lacked[rows]) if len(rows) else None), count

    def _told(self, rows: Numbers, claims: Numbers) -> Lacking:
        stale, lacked = taken(self.seen, rows), taken(self.claims, claims)
        return Lacking(
            key=self.key,
            read=stale.read,
            process=stale.process,
            node=stale.node,
            call_ns=stale.call_ns,
            known_ns=lacked.known_ns,
            clauses=lambda row: (self.shown(stale, row), self.clause(int(lacked.origin[row]))),
        )


def stale_reads(told: TopicReads) -> StaleReads:
    """Judge V1."""
    compared = chain(_against_writes(told), _against_growths(told))
    return _found(one.lacking() for one in compared)


def nonrepeatable_reads(told: TopicReads) -> StaleReads:
    """Judge V2: from writes it takes what has no order of its own."""
    return _backward(told, across=True)


def backward_sessions(told: TopicReads) -> StaleReads:
    """Judge V3, as V2."""
    return _backward(told, across=False)


def _backward(told: TopicReads, *, across: bool) -> StaleReads:
    things = chain(
        (one for one, _ in _topics(told)),
        _numbered(told.epochs, _OF_EPOCHS, "leader_epoch", _epoch),
        _numbered(told.counts, _OF_COUNTS, "count", _count),
    )
    return _found(
        one.went_back(node, across=across)
        for one in things
        for node in sorted(set(one.seen.node.tolist()))
    )


def _found(answers: Iterable[tuple[Lacking | None, int]]) -> StaleReads:
    parts = list(answers)
    return StaleReads(
        table=stale_table([stale for stale, _ in parts if stale is not None]),
        judged_count=sum(count for _, count in parts),
    )


def _against_writes(told: TopicReads) -> Iterator[_Compared]:
    for one, writes in _topics(told):
        claims = writes.claims(np.arange(len(writes.f)), writes.return_ns, writes.node)
        yield replace(one, claims=claims, clause=writes.clause)


def _topics(told: TopicReads) -> Iterator[tuple[_Compared, Writes]]:
    """Yield the topics that were written to, with what their sightings claim."""
    writes_of = writes_by_topic(told.topic_writes)
    every, pieces = sightings_of_topics(told.topics)
    for topic, piece in pieces.items():
        if topic not in writes_of:
            continue
        seen, writes = taken(every, piece), writes_of[topic]
        makers = makers_of(seen, writes)
        claims = writes.claims(makers, seen.return_ns, seen.node)
        yield _thing(topic, seen, ranks_of(seen, writes, makers), claims, _of_topic), writes


def _thing(
    key: str,
    seen: Sightings,
    rank: Numbers,
    claims: MetadataClaims,
    shown: Callable[[Sightings, int], Proof],
) -> _Compared:
    """Return the sightings of a thing with the claims that they make."""

    def clause(row: int) -> Proof:
        return shown(seen, row).further(
            ", as read {read} through {node} had shown (process {process})",
            read=seen.read[row],
            node=seen.node[row],
            process=seen.process[row],
        )

    return _Compared(key=key, seen=seen, rank=rank, shown=shown, claims=claims, clause=clause)


def _numbered(
    table: pa.Table, names: tuple[str, ...], number: str, shown: Callable[[Sightings, int], Proof]
) -> Iterator[_Compared]:
    """Yield what has an order of its own, by these columns, with what its sightings claim."""
    table, pieces = pieces_of(table, names, then="read")
    number_of = numbers(table, number)
    every = sightings_of(table, kind=np.full(len(table), NUMBER), number=number_of)
    for piece in pieces:
        seen = taken(every, piece)
        claims = _grown(seen.number, seen.return_ns, seen.node)
        topic, _, *partition = (table[name][piece.start].as_py() for name in names)
        yield _thing("-".join(map(str, (topic, *partition))), seen, seen.number, claims, shown)


def _grown(number: Numbers, known_ns: Numbers, node: NDArray[np.object_]) -> MetadataClaims:
    origin = np.arange(len(number))
    f = np.full(len(number), GROW)
    return MetadataClaims(f=f, rank=number, known_ns=known_ns, node=node, origin=origin)


def _against_growths(told: TopicReads) -> Iterator[_Compared]:
    grown = acknowledged(told.partition_writes, "create-partitions")
    growths, pieces = pieces_of(grown, ("topic",), then="index")
    of_topic = {growths["topic"][piece.start].as_py(): piece for piece in pieces}
    created_ns = creations_ns(told.topic_writes)
    counts = told.counts.filter(pc.is_in(told.counts["topic"], growths["topic"].combine_chunks()))
    for one in _numbered(counts, _OF_COUNTS, "count", _count):
        topic_id = one.seen.topic_id[0]
        if topic_id in created_ns:
            rows = growths[of_topic[one.key]]
            since = pc.greater_equal(rows["call_ns"], created_ns[topic_id])
            yield _against(one, rows.filter(since))


def _against(one: _Compared, growths: pa.Table) -> _Compared:
    given = numbers(growths, "partition_count")

    def clause(growth: int) -> Proof:
        return Proof.of(
            "the growth to {grown} (partition write {write}, through {node})",
            grown=_partitions(int(given[growth])),
            write=growths["index"][growth].as_py(),
            node=growths["node"][growth].as_py(),
        )

    claims = _grown(given, numbers(growths, "return_ns"), words(growths, "node"))
    return replace(one, claims=claims, clause=clause)


def _of_topic(seen: Sightings, row: int) -> Proof:
    if seen.kind[row] == ID:
        return Proof.of("topic id {topic_id}", topic_id=seen.topic_id[row])
    if seen.kind[row] == NUMBER:
        return Proof.of("setting {setting}", setting=seen.number[row])
    return Proof.of("no such topic")


def _epoch(seen: Sightings, row: int) -> Proof:
    return Proof.of("leader epoch {leader_epoch}", leader_epoch=int(seen.number[row]))


def _count(seen: Sightings, row: int) -> Proof:
    return _partitions(int(seen.number[row]))


def _partitions(count: int) -> Proof:
    noun = "partition" if count == 1 else "partitions"
    return Proof.of(f"{{partition_count}} {noun}", partition_count=count)
