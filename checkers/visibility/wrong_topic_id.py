"""V9 wrong-topic-id: A read of metadata shows a topic id that its topic had not, or had no more.

A read shows a partition of a topic with a topic id that, by the log of record, nobody made, or
another topic has, or that was made after the read had returned; or with an older id than the same
incarnation of its broker had shown for that name before the read was called. Nothing is judged
where the log begins with a snapshot, in a migration, or of topics that were made without an id.

A topic id is made once, with a name, by a TopicRecord that the quorum has committed (or by the
znode of the topic), and is never given again. A broker shows what it has applied, and applies what
is committed, in order.

At no time is an id under two names. An incarnation is known as for isr-read-went-back; one that
restarts, or is behind, may show a topic that is gone.

Not judged: logs that begin with a snapshot, which has only the topics that were left; migrations,
where topics of ZooKeeper's are copied; topics that had no id when they were made (in ZooKeeper,
below release 2.8), and the id of zeros by which a broker says that.

Meaning: A client writes to, or reads from, a topic that is not the one it named.
Case: a partition in a read, with a topic id
Source: KIP-516, "Topic Identifiers"; KIP-631, TopicRecord
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.in_force import UNSURE
from fencepost.checkers.metadata.partition_states import key_of
from fencepost.checkers.metadata.records import MetadataRecord
from fencepost.checkers.metadata.view import MetadataView, doubtful, spelled
from fencepost.checkers.proof import Proof
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import Source, streamed
from fencepost.checkers.table_check import TableCheck
from fencepost.checkers.visibility.broker_intervals import BrokerIntervals, broker_intervals
from fencepost.checkers.visibility.newer import NONE, first_known_above

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.VIEW,
    needs=("metadata_log", "describes"),
)
NAME: Final = ENTRY.name

_ZEROS: Final = "A" * 22
"""The id of a topic without one."""
_COLUMNS: Final = (
    *("read", "node", "call_ns", "return_ns", "topic", "topic_id", "partition", "error"),
)
_PLACE: Final = ("topic", "partition")

_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """The making of a topic id."""

    topic: str
    place: int
    """How many ids were made before it."""
    timestamp_ms: int
    metadata_offset: int


def wrong_topic_ids(tables: Tables, seen: MetadataView) -> Judged:
    """Judge every partition in every read. Reads `metadata_log` and `describes`."""
    if seen.facts.migrating:
        return
    if seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    if seen.log.begins_with_snapshot:
        return
    made = _made(seen.log.records)
    # In ZooKeeper a topic without an id goes by the zxid of its znode.
    nameless = frozenset(one.topic for topic_id, one in made.items() if topic_id.startswith("0x"))
    shown = _shown(streamed(tables, "describes"), nameless, until_ns=seen.known_until_ns)
    wanted = {place for place, rows in shown.items() if _is_suspect(place[0], rows, made, seen)}
    suspects = _reads(streamed(tables, "describes"), wanted, until_ns=seen.known_until_ns)
    brokers = broker_intervals(seen)
    for (topic, partition), rows in sorted(shown.items()):
        reads = suspects.get((topic, partition), ())
        proofs = [*_strange(topic, reads, made, seen), *_back(topic, reads, made, brokers)]
        cases = sum(row["read_count"] for row in rows)
        yield key_of(topic, partition), spelled(NAME, key_of(topic, partition), proofs, cases=cases)


def _made(records: Iterable[MetadataRecord]) -> Mapping[str, _Made]:
    """Return the making of each topic id."""
    found: dict[str, _Made] = {}
    for record in records:
        if record.type == "TopicRecord" and record.topic_id and record.topic:
            found.setdefault(
                record.topic_id,
                _Made(
                    topic=record.topic,
                    place=len(found),
                    timestamp_ms=record.timestamp_ms,
                    metadata_offset=record.metadata_offset,
                ),
            )
    return found


def _telling(describes: Source, *, until_ns: int) -> Iterator[pa.Table]:
    """Yield the reads of partitions that show a topic id and are told of by the log."""
    for batch in describes(_COLUMNS):
        topic_id = batch.column("topic_id")
        told = pc.and_(pc.is_valid(batch.column("partition")), pc.not_equal(topic_id, _ZEROS))
        answered = pc.and_(
            pc.equal(batch.column("error"), "NONE"), pc.less(batch.column("return_ns"), until_ns)
        )
        kept = pc.fill_null(pc.and_(told, answered), fill_value=False)
        yield pa.Table.from_batches([batch.filter(kept)])


def _shown(
    describes: Source, nameless: frozenset[str], *, until_ns: int
) -> Mapping[tuple[str, int], Sequence[_Row]]:
    """Return by topic and partition each id that a node showed: when first, and when last."""
    by = [*_PLACE, "topic_id", "node"]
    sums = [("return_ns", "min"), ("call_ns", "max")]
    parts = [
        part.group_by(by).aggregate([*sums, ("read", "count")])
        for part in _telling(describes, until_ns=until_ns)
    ]
    whole = pa.concat_tables(parts).rename_columns([*by, "return_ns", "call_ns", "read_count"])
    found: dict[tuple[str, int], list[_Row]] = defaultdict(list)
    for row in whole.group_by(by).aggregate([*sums, ("read_count", "sum")]).to_pylist():
        if row["topic"] not in nameless:
            found[row["topic"], row["partition"]].append(
                {name.rpartition("_")[0] if name not in by else name: row[name] for name in row}
            )
    return found


def _is_suspect(
    topic: str, rows: Sequence[_Row], made: Mapping[str, _Made], seen: MetadataView
) -> bool:
    """Return whether reads with these sums may have to be accused."""
    first_ns: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in rows:
        one = made.get(row["topic_id"])
        if one is None or _contradiction(topic, row, one, seen) is not None:
            return True
        first_ns[row["node"]].append((one.place, row["return_ns"]))
    return any(
        place > made[row["topic_id"]].place and return_ns < row["call_ns"]
        for row in rows
        for place, return_ns in first_ns[row["node"]]
    )


def _reads(
    describes: Source, wanted: set[tuple[str, int]], *, until_ns: int
) -> Mapping[tuple[str, int], Sequence[_Row]]:
    """Return the reads of some partitions, in the order of their table."""
    found: dict[tuple[str, int], list[_Row]] = defaultdict(list)
    topics = pa.array(sorted({topic for topic, _ in wanted}), pa.string())
    for part in _telling(describes, until_ns=until_ns) if wanted else ():
        for row in part.filter(pc.is_in(part["topic"], topics)).to_pylist():
            if (row["topic"], row["partition"]) in wanted:
                found[row["topic"], row["partition"]].append(row)
    return found


def _contradiction(topic: str, row: _Row, made: _Made, seen: MetadataView) -> Proof | None:
    """Return how the making of an id contradicts that this topic was shown with it, if it does."""
    at = {"metadata_offset": made.metadata_offset}
    if made.topic != topic:
        return Proof.of(
            "which metadata offset {metadata_offset} gave to {other_topic}",
            metadata_offsets=at,
            sources={"other_topic": "metadata_offset"},
            other_topic=made.topic,
        )
    earliest_ns = seen.facts.earliest_ns(made.timestamp_ms)
    if row["return_ns"] < earliest_ns:
        return Proof.of(
            "and it returned at {returned}; metadata offset {metadata_offset}, which made that id, "
            "was appended no earlier than {earliest}",
            metadata_offsets=at,
            times={"returned": row["return_ns"], "earliest": earliest_ns},
            sources={"earliest": "metadata_offset"},
        )
    return None


def _strange(
    topic: str, reads: Iterable[_Row], made: Mapping[str, _Made], seen: MetadataView
) -> Iterator[Proof]:
    for row in reads:
        one = made.get(row["topic_id"])
        if one is None:
            yield _proof(row).further(
                ", and the metadata log, which goes on until {until}, has no topic of that id",
                times={"until": seen.known_until_ns},
            )
        elif (wrong := _contradiction(topic, row, one, seen)) is not None:
            yield _proof(row).further(", {wrong}", wrong=wrong)


def _back(
    topic: str, reads: Sequence[_Row], made: Mapping[str, _Made], brokers: BrokerIntervals
) -> Iterator[Proof]:
    """Yield the reads that lack a newer id, which the same incarnation had shown before."""
    mine = [
        row for row in reads if row["topic_id"] in made and made[row["topic_id"]].topic == topic
    ]
    node = np.array([row["node"] for row in mine], dtype=object)
    call_ns, return_ns = (
        np.array([row[name] for row in mine], dtype=np.int64) for name in ("call_ns", "return_ns")
    )
    place = np.array([made[row["topic_id"]].place for row in mine], dtype=np.int64)
    for name in np.unique(node):
        here = np.flatnonzero(node == name)
        incarnation = brokers.incarnation(name, call_ns[here], return_ns[here])
        for number in np.unique(incarnation[incarnation != UNSURE]):
            its = here[incarnation == number]
            newer = first_known_above(
                place[its], return_ns[its], asked=place[its], before_ns=call_ns[its]
            )
            for stale in np.flatnonzero(newer != NONE).tolist():
                other = mine[int(its[newer[stale]])]
                yield _proof(mine[int(its[stale])]).further(
                    "; it had shown the later topic id {newer_id} to read {newer_read}, which "
                    "returned at {returned}",
                    values={"newer_read": other["read"]},
                    times={"returned": other["return_ns"]},
                    newer_id=other["topic_id"],
                )


def _proof(row: _Row) -> Proof:
    return Proof.of(
        "{node} showed {key} with topic id {topic_id} to read {read}, called at {call}",
        values={"read": row["read"]},
        times={"call": row["call_ns"]},
        node=row["node"],
        key=key_of(row["topic"], row["partition"]),
        topic_id=row["topic_id"],
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=wrong_topic_ids,
        split=Split.PARTITIONS,
    ),
)
