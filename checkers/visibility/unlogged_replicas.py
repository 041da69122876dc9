"""V10 unlogged-replicas: A read of metadata shows a partition or replicas that its topic never had.

A read shows, under a topic id of the log of record, a partition that the topic never had, or
replicas that the partition never had, in whatever order, or had only after the read had returned.
Where ZooKeeper has the metadata: a replica that the partition never had. Nothing is judged where
the log begins with a snapshot, or in a migration.

A broker shows what it has applied: by the metadata log, or by what the controller on ZooKeeper has
written there before it told the broker.

A controller on ZooKeeper tells brokers of the replicas that a move leaves before it writes them
down, and may never get to that. There each replica that is shown has to have been one at any time:
a move writes its targets down first.

How old they are is not asked: brokers may be behind. Topic ids that no log has are
`wrong-topic-id`'s.

Meaning: A client looks for its records where they are not, or a tool moves replicas by a picture of
them that was never true.
Case: a partition in a read, with its replicas
Source: KIP-631, PartitionRecord and PartitionChangeRecord; KIP-455
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.partition_states import key_of
from fencepost.checkers.metadata.view import MetadataView, doubtful, spelled
from fencepost.checkers.proof import Proof
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import Source, streamed
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.VIEW,
    needs=("metadata_log", "describes"),
)
NAME: Final = ENTRY.name
_COLUMNS: Final = (
    *("read", "node", "return_ns", "topic", "topic_id", "partition", "error", "replicas"),
)
_BY: Final = ("topic", "topic_id", "partition", "replicas")
_First = Mapping[tuple[str, int], Mapping[frozenset[int], int]]
"""(topic id, partition) → replicas → the earliest time when the log can have had them."""


def unlogged_replicas(tables: Tables, seen: MetadataView) -> Judged:
    """Judge every partition in every read. Reads `metadata_log` and `describes`."""
    if seen.facts.migrating or seen.log.begins_with_snapshot:
        return
    if seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    made = {one.topic_id for one in seen.log.records if one.type == "TopicRecord"}
    first_ns = _first_ns(seen)
    judge = _strange if seen.facts.on_zookeeper else _wrong
    for key, rows in _shown(streamed(tables, "describes"), until_ns=seen.known_until_ns).items():
        known = [row for row in rows if row["topic_id"] in made]
        proofs = [proof for row in known for proof in judge(key, row, first_ns)]
        yield key, spelled(NAME, key, proofs, cases=sum(row["read_count"] for row in known))


def _first_ns(seen: MetadataView) -> _First:
    found: dict[tuple[str, int], dict[frozenset[int], int]] = {}
    for history in seen.histories():
        mine = found.setdefault((history.topic_id, history.partition), {})
        for version in history.versions:
            earliest_ns = seen.facts.earliest_ns(version.timestamp_ms)
            replicas = frozenset(version.replicas)
            mine[replicas] = min(earliest_ns, mine.get(replicas, earliest_ns))
    return found


def _shown(describes: Source, *, until_ns: int) -> Mapping[str, list[dict[str, Any]]]:
    """Return the different replicas that reads showed, by key: with the first read of each."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for batch in describes(_COLUMNS):
        told = pc.and_(
            pc.and_(pc.equal(batch.column("error"), "NONE"), pc.is_valid(batch.column("topic_id"))),
            pc.and_(
                pc.and_(
                    pc.is_valid(batch.column("partition")), pc.is_valid(batch.column("replicas"))
                ),
                pc.less(batch.column("return_ns"), until_ns),
            ),
        )
        rows = batch.filter(told)
        listed = rows.column("replicas").cast(pa.list_(pa.string()))
        named = pa.table(
            {
                **{name: rows.column(name) for name in (*_BY[:3], "return_ns", "read", "node")},
                "replicas": pc.binary_join(listed, ","),
            }
        )
        firsts = named.sort_by("return_ns").group_by([*_BY], use_threads=False)
        sums = [("return_ns", "first"), ("read", "first"), ("node", "first"), ("read", "count")]
        for row in firsts.aggregate(sums).to_pylist():
            of = tuple(row[name] for name in _BY)
            before = found.get(of)
            count = row["read_count"] + (0 if before is None else before["read_count"])
            if before is None or row["return_ns_first"] < before["return_ns_first"]:
                found[of] = before = row
            before["read_count"] = count
    by_key: dict[str, list[dict[str, Any]]] = {}
    for row in found.values():
        by_key.setdefault(key_of(row["topic"], row["partition"]), []).append(row)
    return dict(sorted(by_key.items()))


def _wrong(key: str, row: Mapping[str, Any], first_ns: _First) -> Iterator[Proof]:
    replicas = _replicas(row)
    known = first_ns.get((row["topic_id"], row["partition"]))
    if known is None or (replicas and replicas not in known):
        yield from _unknown(key, row, of_partition=known is None)
    elif replicas and row["return_ns_first"] < (earliest := known[replicas]):
        yield _proof(key, row).further(
            ", and it was given these no earlier than {earliest}", times={"earliest": earliest}
        )


def _strange(key: str, row: Mapping[str, Any], first_ns: _First) -> Iterator[Proof]:
    known = first_ns.get((row["topic_id"], row["partition"]))
    if known is None or _replicas(row) - frozenset[int]().union(*known):
        yield from _unknown(key, row, of_partition=known is None)


def _unknown(key: str, row: Mapping[str, Any], *, of_partition: bool) -> Iterator[Proof]:
    if of_partition:
        yield _proof(key, row).further(", and the topic never had that partition")
    else:
        yield _proof(key, row).further(", and the partition never had these")


def _replicas(row: Mapping[str, Any]) -> frozenset[int]:
    return frozenset(int(one) for one in row["replicas"].split(",") if one)


def _proof(key: str, row: Mapping[str, Any]) -> Proof:
    return Proof.of(
        "{node} showed {key} with replicas {replicas} to read {read}, which returned at {returned}",
        values={"read": row["read_first"]},
        times={"returned": row["return_ns_first"]},
        node=row["node_first"],
        key=key,
        replicas=[int(one) for one in row["replicas"].split(",") if one],
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=unlogged_replicas,
        split=Split.PARTITIONS,
    ),
)
