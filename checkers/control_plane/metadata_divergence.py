"""C7 metadata-divergence: Nodes hold different metadata, or committed metadata is gone.

Two nodes hold different records at one metadata offset of one controller epoch; or the record that
a majority of the controllers has at an offset that a broker had applied was appended after the
broker's heartbeat said so; or such a broker's own copy holds another record there; or an
acknowledged creation of a topic is not in the log.

Copies of the metadata log differ legally where they were never committed: a node may have been cut
off with records that only it and its followers had.

An epoch has one leader, and a leader writes an offset once: no election explains two records there.
A broker applies committed records alone, so that what it had applied and the quorum has not is
gone; that holds as well where the quorum's log ends below it though it goes on to a later time. A
copy may be of a later life of the broker: only heartbeats since its last registration count, and a
record younger than the heartbeat proves nothing. The log of record has to go on beyond the moment
at which a creation was acknowledged.

The times are those of the proxy on one side and of the controller's clock on the other, widened by
what the clocks may differ.

Meaning: Topics, configurations or ISRs that were decided are undone, or decided twice.
Case: a metadata offset that two nodes hold, a heartbeat that says what a broker had applied, or an
acknowledged creation of a topic
Source: KIP-595, KIP-631 (a node refuses to truncate below its high watermark); KAFKA-14094, KIP-853
and KIP-856 for controllers whose disks are lost
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Facts, Judged, Tables
from fencepost.checkers.membership import distinct
from fencepost.checkers.metadata.log_of_record import BatchTimes, LogOfRecord
from fencepost.checkers.metadata.rpcs import rpcs
from fencepost.checkers.metadata.view import METADATA, MetadataView, spelled
from fencepost.checkers.proof import Proof
from fencepost.checkers.sources import Source, rows_of, streamed
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.QUORUM,
    variants={
        "at metadata offset {offset} of": "two-records-in-one-epoch",
        "{metadata_offset} it has a": "other-than-applied",
        "and the record that the quorum has": "applied-record-gone",
        "the creation of topic": "acknowledged-creation-gone",
    },
    needs=("metadata_log",),
)
NAME: Final = ENTRY.name

_COLUMNS: Final = ("node", "metadata_offset", "controller_epoch", "digest", "type", "timestamp_ms")

_Row = Mapping[str, Any]


def metadata_divergences(tables: Tables, seen: MetadataView) -> Judged:
    """Judge the run's nodes, all in one.

    Reads `metadata_log`, `metadata_offsets`, `wire` and `metadata_writes`.
    """
    logged, log = _logged(streamed(tables, "metadata_log")), seen.log
    proofs = list(_two_in_one_epoch(logged, seen))
    told: list[Proof | None] = []
    if not log.doubt:
        told += [*_gone(log, tables, seen.facts), *_creations(log, tables, seen.facts)]
        proofs += _other_than_applied(log, logged, tables, seen.facts)
    cases = _shared_count(logged) + len(told)
    found = [*proofs, *filter(None, told)]
    yield METADATA, spelled(NAME, METADATA, found, cases=cases, doubt=log.doubt)


def _logged(metadata_log: Source) -> pa.Table:
    """Return the records of all nodes' logs, without snapshots; words are numbers."""
    kept = []
    for batch in metadata_log((*_COLUMNS, "snapshot")):
        mine = batch.filter(pc.invert(batch.column("snapshot"))).select(list(_COLUMNS))
        columns = [
            column.dictionary_encode() if pa.types.is_string(column.type) else column
            for column in mine.columns
        ]
        kept.append(pa.table(columns, names=list(_COLUMNS)))
    return pa.concat_tables(kept).unify_dictionaries().combine_chunks()


def _shared_count(logged: pa.Table) -> int:
    """Return the number of metadata offsets at which two or more nodes have a record."""
    node = logged["node"].combine_chunks()
    count = len(node.dictionary) or 1
    offsets = distinct(logged["metadata_offset"].to_numpy() * count + node.indices.to_numpy())
    offsets //= count
    # Each node's is here once: one that follows itself is another's, and counts at its first time.
    again = offsets[1:] == offsets[:-1]
    return int(np.count_nonzero(again) - np.count_nonzero(again[1:] & again[:-1]))


def _two_in_one_epoch(logged: pa.Table, seen: MetadataView) -> Iterator[Proof]:
    place = ("metadata_offset", "controller_epoch")
    offset, epoch, digest = (logged[name].to_numpy() for name in (*place, "digest"))
    order = np.lexsort((digest, epoch, offset))
    one, other = order[:-1], order[1:]
    differs = (offset[one] == offset[other]) & (epoch[one] == epoch[other])
    differs &= digest[one] != digest[other]
    several = pa.array(distinct(offset[one[differs]]))
    rows = logged.filter(pc.is_in(logged["metadata_offset"], several)).to_pylist()
    rows.sort(key=lambda row: (row["metadata_offset"], row["controller_epoch"], row["node"]))
    for (at, of_epoch), of_nodes in groupby(rows, key=itemgetter(*place)):
        first, *others = of_nodes
        another = next((row for row in others if row["digest"] != first["digest"]), None)
        if another is not None:
            yield Proof.of(
                "at metadata offset {offset} of controller epoch {epoch}, {node} has "
                "{record}, and {other_node} has {other_record}",
                metadata_offsets={"offset": at},
                values={"epoch": of_epoch},
                sources={"epoch": "offset"},
                node=first["node"],
                record=_record(first, seen),
                other_node=another["node"],
                other_record=_record(another, seen),
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


def _other_than_applied(
    log: LogOfRecord, logged: pa.Table, tables: Tables, facts: Facts
) -> Iterator[Proof]:
    """Judge by rule 3; one proof per broker, its first."""
    decided = log.rows.filter(pc.invert(log.rows["snapshot"]))
    registered = {
        rpc.source: rpc.asked_ns for rpc in rpcs(streamed(tables, "wire"), "BrokerRegistration")
    }
    applied: dict[str, tuple[int, int]] = {}
    for row in _applied(tables, facts):
        since = registered.get(row["node"])
        if since is not None and row["time_ns"] > since:
            mine = (row["metadata_offset"], row["time_ns"])
            applied[row["node"]] = max(applied.get(row["node"], mine), mine)
    for node, (applied_offset, time_ns) in sorted(applied.items()):
        copy = logged.filter(pc.equal(logged["node"], node))
        batches = BatchTimes.of(copy["timestamp_ms"].to_numpy())
        of_copy = replace(facts, followings_ms=batches.followings_ms)
        found = _first_other(copy, decided, until=applied_offset)
        if found is not None and of_copy.latest_ns(found["timestamp_ms"]) < time_ns:
            yield _other(node, found, applied_offset, time_ns)


def _first_other(copy: pa.Table, decided: pa.Table, *, until: int) -> _Row | None:
    """Return the first record up to an offset that is another one than was decided there."""
    offset, there = (rows["metadata_offset"].to_numpy() for rows in (copy, decided))
    if not len(there):
        return None
    place = np.minimum(np.searchsorted(there, offset), len(there) - 1)
    both = (there[place] == offset) & (offset <= until)
    differs = np.zeros(len(offset), dtype=np.bool_)
    for name in ("digest", "controller_epoch"):
        differs |= copy[name].to_numpy() != decided[name].to_numpy()[place]
    others = np.flatnonzero(both & differs)
    if not len(others):
        return None
    first = int(others[np.argmin(offset[others])])
    (own,), (other,) = (
        rows.slice(at, 1).to_pylist() for rows, at in ((copy, first), (decided, int(place[first])))
    )
    return {**own, **{f"{name}_decided": other[name] for name in ("controller_epoch", "type")}}


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
        entry=ENTRY,
        kernel=metadata_divergences,
        apis=("BrokerRegistration",),
        tables=("metadata_log", "wire", "metadata_offsets", "metadata_writes"),
    ),
)
