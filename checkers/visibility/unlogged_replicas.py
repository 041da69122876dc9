"""V10 unlogged-replicas: a read of metadata shows a partition, or replicas, that no log has.

A broker shows what it has applied: by the metadata log, or by what the controller on ZooKeeper has
written there before it told the broker. So a read that shows a topic id of the log of record, which
goes on beyond the read's return, is accused if

- the topic of that id never had the partition;
- the partition never had these replicas, in whatever order;
- or the read had returned before the record that gave it these can have been appended.

How old they are is not asked: brokers may be behind. Not judged: logs that begin with a snapshot,
migrations, and topic ids that no log has, which `wrong-topic-id` judges.

Source: KIP-631, PartitionRecord and PartitionChangeRecord; KIP-455.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from checkers.anomaly import Found
from checkers.entry import CatalogueEntry, Nearness
from checkers.facts import Judged, Tables
from checkers.metadata.partition_states import key_of
from checkers.metadata.view import MetadataView, doubtful, spelled
from checkers.proof import Proof
from checkers.slices import Split
from checkers.sources import Source, streamed
from checkers.table_check import TableCheck

__all__ = ["CHECKS", "NAME", "unlogged_replicas"]

NAME: Final = "unlogged-replicas"
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
    for key, rows in _shown(streamed(tables, "describes"), until_ns=seen.known_until_ns).items():
        yield key, _judged(key, [one for one in rows if one["topic_id"] in made], first_ns)


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


def _judged(key: str, rows: list[dict[str, Any]], first_ns: _First) -> Found:
    proofs = [proof for row in rows for proof in _wrong(key, row, first_ns)]
    return spelled(NAME, key, proofs, cases=sum(row["read_count"] for row in rows))


def _wrong(key: str, row: Mapping[str, Any], first_ns: _First) -> Iterator[Proof]:
    replicas = [int(one) for one in row["replicas"].split(",") if one]
    known = first_ns.get((row["topic_id"], row["partition"]))
    shown = Proof.of(
        "{node} showed {key} with replicas {replicas} to read {read}, which returned at {returned}",
        values={"read": row["read_first"]},
        times={"returned": row["return_ns_first"]},
        node=row["node_first"],
        key=key,
        replicas=replicas,
    )
    if known is None:
        yield shown.further(", and the topic never had that partition")
    elif replicas and frozenset(replicas) not in known:
        yield shown.further(", and the partition never had these")
    elif replicas and row["return_ns_first"] < (earliest := known[frozenset(replicas)]):
        yield shown.further(
            ", and it was given these no earlier than {earliest}", times={"earliest": earliest}
        )


CHECKS: Final = (
    TableCheck(
        entry=CatalogueEntry(
            id="V10",
            name=NAME,
            title="A read of metadata shows a partition, or replicas, that its topic never had",
            rule="A read shows, under a topic id of the log of record, a partition that the topic "
            "never had, or replicas that the partition never had, in whatever order, or had only "
            "after the read had returned. Nothing is judged where the log begins with a snapshot, "
            "or in a migration.",
            meaning="A client looks for its records where they are not, or a tool moves replicas "
            "by a picture of them that was never true.",
            nearness=Nearness.VIEW,
            case="a partition in a read, with its replicas",
            source="KIP-631; KIP-455",
            needs=("metadata_log", "describes"),
        ),
        kernel=unlogged_replicas,
        split=Split.PARTITIONS,
    ),
)
