"""C7 metadata-divergence: nodes that hold different metadata, and metadata that is gone.

Copies of the metadata log differ legally where they were never committed: a node may have been cut
off with records that only it and its followers had. So a difference is accused only with proof:

1. two nodes hold different records at one offset *and* one controller epoch. An epoch has one
   leader, and a leader writes an offset once: no election explains that;
2. a broker had applied an offset (its heartbeat says so, and a broker applies committed records
   alone), and the record that the quorum has there was appended later than that heartbeat arrived,
   or the quorum's log ends below it though it goes on to a later time. The applied records are
   gone;
3. a broker had applied an offset, and its own copy holds another record there than the quorum's. A
   copy may be of a later life of the broker: only heartbeats since its last registration count, and
   a record younger than the heartbeat proves nothing;
4. the creation of a topic was acknowledged to a client, and the log of record, though it goes on
   beyond that moment, does not have it.

The times are those of the proxy on one side and of the controller's clock on the other, widened by
what the clocks may differ.

Source: KIP-595, KIP-631 (a node refuses to truncate below its high watermark); KAFKA-14094, KIP-853
and KIP-856 for controllers whose disks are lost.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.entry import CatalogueEntry
from checkers.facts import Facts, Judged, Tables
from checkers.metadata.log_of_record import BatchTimes, LogOfRecord
from checkers.metadata.rpcs import rpcs
from checkers.metadata.view import METADATA, MetadataView, spelled
from checkers.proof import Proof
from checkers.sources import rows_of
from checkers.table_check import TableCheck

__all__ = ["CHECKS", "NAME", "metadata_divergences"]

NAME: Final = "metadata-divergence"

_Row = Mapping[str, Any]


def metadata_divergences(tables: Tables, seen: MetadataView) -> Judged:
    """Judge the run's nodes, all in one.

    Reads `metadata_log`, `metadata_offsets`, `wire` and `metadata_writes`.
    """
    metadata_log, log = tables["metadata_log"], seen.log
    proofs = list(_two_in_one_epoch(metadata_log, seen))
    told: list[Proof | None] = []
    if not log.doubt:
        told += [*_gone(log, tables, seen.facts), *_creations(log, tables, seen.facts)]
        proofs += _other_than_applied(log, tables, seen.facts)
    cases = _shared_count(metadata_log) + len(told)
    found = [*proofs, *filter(None, told)]
    yield METADATA, spelled(NAME, METADATA, found, cases=cases, doubt=log.doubt)


def _shared_count(metadata_log: pa.Table) -> int:
    """Return the number of metadata offsets at which two or more nodes have a record."""
    logged = metadata_log.select(["node", "metadata_offset", "snapshot"])
    logged = logged.filter(pc.invert(logged["snapshot"]))
    node = logged["node"].combine_chunks().dictionary_encode()
    count = len(node.dictionary) or 1
    holders = np.unique(logged["metadata_offset"].to_numpy() * count + node.indices.to_numpy())
    _, holder_count = np.unique(holders // count, return_counts=True)
    return int(np.count_nonzero(holder_count > 1))


def _two_in_one_epoch(metadata_log: pa.Table, seen: MetadataView) -> Iterator[Proof]:
    logged = metadata_log.filter(pc.invert(metadata_log["snapshot"]))
    place = ["metadata_offset", "controller_epoch"]
    several = (
        logged.group_by(place)
        .aggregate([("digest", "count_distinct")])
        .filter(pc.greater(pc.field("digest_count_distinct"), 1))
    )
    told = logged.select([*place, "node", "digest", "type"])
    rows = told.join(several.select(place), place, join_type="left semi").to_pylist()
    rows.sort(key=lambda row: (row["metadata_offset"], row["controller_epoch"], row["node"]))
    for (offset, epoch), of_nodes in groupby(rows, key=itemgetter(*place)):
        one, *others = of_nodes
        other = next(row for row in others if row["digest"] != one["digest"])
        yield Proof.of(
            "at metadata offset {offset} of controller epoch {epoch}, {node} has "
            "{record}, and {other_node} has {other_record}",
            metadata_offsets={"offset": offset},
            values={"epoch": epoch},
            sources={"epoch": "offset"},
            node=one["node"],
            record=_record(one, seen),
            other_node=other["node"],
            other_record=_record(other, seen),
        )


def _record(row: _Row, seen: MetadataView) -> Proof:
    told = seen.detail(row["node"], row["metadata_offset"])
    detail: dict[str, Any] = {"detail": told} if told else {}
    return Proof.of("a {type}" + (" ({detail})" if detail else ""), type=row["type"], **detail)


def _applied(tables: Tables, facts: Facts) -> Iterator[_Row]:
    """Yield the offsets that brokers said in heartbeats they had applied.

    None of a cluster that migrates: its brokers add a count of batches to an offset there
    (`kafka.server.metadata.OffsetTrackingListener` of 3.9.2).
    """
    if facts.migrating:
        return
    offsets = tables["metadata_offsets"]
    kept = offsets.filter(
        pc.and_(
            pc.equal(offsets["source"], "heartbeat"),
            pc.greater_equal(offsets["metadata_offset"], 0),
        )
    )
    yield from rows_of(kept)


def _gone(log: LogOfRecord, tables: Tables, facts: Facts) -> Iterator[Proof | None]:
    """Judge each heartbeat by rule 2; no more of a broker after its first proof."""
    offsets = log.rows["metadata_offset"].to_numpy()
    timestamps = log.rows["timestamp_ms"].to_numpy()
    told: set[str] = set()
    for row in _applied(tables, facts):
        place = int(np.searchsorted(offsets, row["metadata_offset"], side="right")) - 1
        if place < 0 or row["node"] in told or log.rows["snapshot"][place].as_py():
            continue
        appended_ns = facts.earliest_ns(int(timestamps[place]))
        if appended_ns <= row["time_ns"]:
            yield None
            continue
        told.add(row["node"])
        yield Proof.of(
            "{node} had applied metadata offset {applied} when its heartbeat "
            "arrived at {time}, and the record that the quorum has at offset {decided} "
            "was appended no earlier than {appended}",
            metadata_offsets={
                "applied": row["metadata_offset"],
                "decided": int(offsets[place]),
            },
            times={"time": row["time_ns"], "appended": appended_ns},
            sources={"appended": "decided"},
            node=row["node"],
        )


def _other_than_applied(log: LogOfRecord, tables: Tables, facts: Facts) -> Iterator[Proof]:
    """Judge by rule 3; one proof per broker, its first."""
    decided = log.rows.filter(pc.invert(log.rows["snapshot"])).select(
        ["metadata_offset", "digest", "controller_epoch", "type"]
    )
    registered = {rpc.source: rpc.asked_ns for rpc in rpcs(tables["wire"], "BrokerRegistration")}
    applied: dict[str, tuple[int, int]] = {}
    for row in _applied(tables, facts):
        since = registered.get(row["node"])
        if since is not None and row["time_ns"] > since:
            mine = (row["metadata_offset"], row["time_ns"])
            applied[row["node"]] = max(applied.get(row["node"], mine), mine)
    for node, (applied_offset, time_ns) in sorted(applied.items()):
        table = tables["metadata_log"]
        own = table.filter(
            pc.and_(pc.equal(table["node"], node), pc.invert(table["snapshot"]))
        ).select(["metadata_offset", "digest", "controller_epoch", "type", "timestamp_ms"])
        batches = BatchTimes.of(own["timestamp_ms"].to_numpy())
        of_copy = replace(facts, followings_ms=batches.followings_ms)
        copy = own.filter(pc.less_equal(own["metadata_offset"], applied_offset))
        both = copy.join(decided, "metadata_offset", join_type="inner", right_suffix="_decided")
        differs = both.filter(
            pc.or_(
                pc.not_equal(both["digest"], both["digest_decided"]),
                pc.not_equal(both["controller_epoch"], both["controller_epoch_decided"]),
            )
        ).sort_by("metadata_offset")
        for found in differs.slice(0, 1).to_pylist():
            if of_copy.latest_ns(found["timestamp_ms"]) < time_ns:
                yield _other(node, found, applied_offset, time_ns)


def _other(node: str, found: _Row, applied_offset: int, time_ns: int) -> Proof:
    return Proof.of(
        "{node} had applied metadata offset {applied_offset} at {time}; at offset "
        "{metadata_offset} it has a {type} of controller epoch {controller_epoch}, and the quorum "
        "a {type_decided} of controller epoch {controller_epoch_decided}",
        metadata_offsets={
            "metadata_offset": found["metadata_offset"],
            "applied_offset": applied_offset,
        },
        values={
            "controller_epoch": found["controller_epoch"],
            "controller_epoch_decided": found["controller_epoch_decided"],
        },
        times={"time": time_ns},
        sources=dict.fromkeys(
            ("controller_epoch", "controller_epoch_decided", "type", "type_decided"),
            "metadata_offset",
        ),
        node=node,
        type=found["type"],
        type_decided=found["type_decided"],
    )


def _creations(log: LogOfRecord, tables: Tables, facts: Facts) -> Iterator[Proof | None]:
    """Judge by rule 4."""
    if log.begins_with_snapshot:
        return
    created = {record.topic_id for record in log.records if record.type == "TopicRecord"}
    until_ns = facts.earliest_ns(log.end_timestamp_ms)
    for row in tables["metadata_writes"].to_pylist():
        acknowledged = row["f"] == "create-topic" and row["outcome"] == "ok" and row["topic_id"]
        if not acknowledged or row["return_ns"] is None or row["return_ns"] >= until_ns:
            continue
        if row["topic_id"] in created:
            yield None
            continue
        yield Proof.of(
            "the creation of topic {topic} ({topic_id}) was acknowledged by {node} at "
            "{return_} (write {write}), and the metadata log, which goes on until "
            "{until}, does not have it",
            values={"write": row["index"]},
            times={"return_": row["return_ns"], "until": until_ns},
            topic=row["topic"],
            topic_id=row["topic_id"],
            node=row["node"],
        )


CHECKS: Final = (
    TableCheck(
        entry=CatalogueEntry(
            id="C7",
            name=NAME,
            title="Nodes hold different metadata, or committed metadata is gone",
            rule="Two nodes hold different records at one metadata offset of one controller "
            "epoch; or the record that a majority of the controllers has at an offset that a "
            "broker had applied was appended after the broker's heartbeat said so; or such a "
            "broker's own copy holds another record there; or an acknowledged creation of a topic "
            "is not in the log.",
            meaning="Topics, configurations or ISRs that were decided are undone, or decided "
            "twice.",
            case="a metadata offset that two nodes hold, a heartbeat that says what a broker had "
            "applied, or an acknowledged creation of a topic",
            source="KIP-595, KIP-631; KAFKA-14094, KIP-853, KIP-856",
            needs=("metadata_log",),
        ),
        kernel=metadata_divergences,
        apis=("BrokerRegistration",),
        tables=("metadata_log", "wire", "metadata_offsets", "metadata_writes"),
    ),
)
