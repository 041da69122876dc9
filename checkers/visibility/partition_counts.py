"""The number of partitions that metadata reads show: within one topic id it only grows.

Against what reads showed (`growing`) no write has to be known. Against an acknowledged write that
gave a topic more partitions it takes the topic id that the write was for, which no answer tells.

Sound: let the creation of id T have been acknowledged before the write was called, and the write
before the read was called, and let the read show T with fewer partitions. In a cluster where each
of these takes effect at one moment, T is there from its creation on and until after the read: an id
is never given twice. So T was the topic of that name when the write took effect, and had as many
partitions from then on. The read shows a state from before that.

It does not see a topic whose creation has no clear end, nor writes without a clear end, which may
have given a topic partitions or not.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from checkers.proof import Proof
from checkers.visibility.growing import compared_count, stretches, went_back
from checkers.visibility.lacking import Lacking
from checkers.visibility.newer import NONE, first_known_above
from checkers.visibility.topic_reads import TopicReads

__all__ = ["counts_that_lack_a_write", "counts_that_went_back"]

_GROWTH: Final = "create-partitions"


def counts_that_lack_a_write(told: TopicReads) -> tuple[list[Lacking], int]:
    """Find reads with fewer partitions than a write had given; return how many were compared."""
    growths = _acknowledged(told.partition_writes, _GROWTH)
    if not len(growths):
        return [], 0
    growths_of = {rows["topic"][0].as_py(): rows for rows in _by_topic(growths)}
    created_ns = _created_ns(told.topic_writes)
    found: list[Lacking] = []
    judged_count = 0
    for reads in _of_one_id(told.counts):
        topic, topic_id = reads["topic"][0].as_py(), reads["topic_id"][0].as_py()
        if topic not in growths_of or topic_id not in created_ns:
            continue
        of_topic = growths_of[topic]
        of_id = of_topic.filter(pc.greater_equal(of_topic["call_ns"], created_ns[topic_id]))
        known_ns = pc.min(of_id["return_ns"])
        judged_count += pc.sum(pc.greater(reads["call_ns"], known_ns)).as_py() or 0
        found.append(_lacking(topic, reads, of_id))
    return found, judged_count


def counts_that_went_back(told: TopicReads, *, across: bool) -> tuple[list[Lacking], int]:
    """Find reads that went back; return how many were compared. `across`: as of leader epochs."""
    topics = list(_of_one_id(told.counts))
    found = [
        lacking
        for reads in topics
        for lacking in went_back(
            reads["topic"][0].as_py(), reads, number="count", across=across, clause=_clause
        )
    ]
    return found, sum(compared_count(reads, across=across) for reads in topics)


def _lacking(topic: str, reads: pa.Table, growths: pa.Table) -> Lacking:
    columns = {name: _numbers(reads, name) for name in ("read", "process", "call_ns", "count")}
    given, known_ns = _numbers(growths, "partition_count"), _numbers(growths, "return_ns")
    claim = first_known_above(given, known_ns, asked=columns["count"], before_ns=columns["call_ns"])
    stale = np.flatnonzero(claim != NONE)
    lacked = claim[stale]

    def clauses(place: int) -> tuple[Proof, Proof]:
        write, seen = int(lacked[place]), int(columns["count"][stale[place]])
        growth = Proof.of(
            "the growth to {grown} (partition write {write}, through {node})",
            grown=_clause(int(given[write])),
            write=growths["index"][write].as_py(),
            node=growths["node"][write].as_py(),
        )
        return _clause(seen), growth

    return Lacking(
        key=topic,
        read=columns["read"][stale],
        process=columns["process"][stale],
        node=np.array(reads["node"].to_pylist(), dtype=object)[stale],
        call_ns=columns["call_ns"][stale],
        known_ns=known_ns[lacked],
        clauses=clauses,
    )


def _created_ns(topic_writes: pa.Table) -> Mapping[str, int]:
    """Return when each topic id was created (acknowledged), for ids of a single creation."""
    created = _acknowledged(topic_writes, "create-topic")
    ids, times = created["topic_id"].to_pylist(), created["return_ns"].to_pylist()
    creations = Counter(ids)
    return {
        topic_id: return_ns
        for topic_id, return_ns in zip(ids, times, strict=True)
        if topic_id is not None and creations[topic_id] == 1
    }


def _acknowledged(writes: pa.Table, f: str) -> pa.Table:
    return writes.filter(pc.and_(pc.equal(writes["outcome"], "ok"), pc.equal(writes["f"], f)))


def _by_topic(growths: pa.Table) -> Iterator[pa.Table]:
    return stretches(growths, ("topic",), then="index")


def _of_one_id(counts: pa.Table) -> Iterator[pa.Table]:
    return stretches(counts, ("topic", "topic_id"), then="read")


def _numbers(table: pa.Table, name: str) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = table[name].to_numpy().astype(np.int64)
    return numbers


def _clause(count: int) -> Proof:
    noun = "partition" if count == 1 else "partitions"
    return Proof.of(f"{{partition_count}} {noun}", partition_count=count)
