"""C4 two-leaders: Two leaders in one epoch, or a leader who may not lead.

By the metadata logs, AlterPartition requests, quorum RPCs, describes and the controllers' own
claims, an epoch of a partition or of the quorum has one leader. A leader of a partition is one of
its replicas, and a member of its ISR unless its election is recorded as unclean.

Several sources say who leads a partition in a leader epoch: the metadata log, the leader itself in
every AlterPartition that it sends, and describes. These say who leads the quorum: its
LeaderChangeMessage records on any node's disk, its leader's BeginQuorumEpoch requests, answers that
name the leader, and the controllers' own claims. Two sources that name different leaders in one
epoch are two leaders; a source that names none says nothing.

Meaning: Two nodes take writes, or decide, at a time; what one of them took will be cut.
Case: an epoch whose leader two sources name, or a version of a partition with a leader
Source: KIP-101 (leader epochs), KIP-595 (a vote is given once an epoch), KIP-631
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Facts, Judged, Tables
from fencepost.checkers.metadata.isr_changes import NO_REQUESTS, requests_by_partition
from fencepost.checkers.metadata.partition_reads import NO_READS, PartitionReads, partition_reads
from fencepost.checkers.metadata.partition_states import (
    NO_LEADER,
    PartitionHistory,
    PartitionVersion,
)
from fencepost.checkers.metadata.records import LEADER_CHANGE
from fencepost.checkers.metadata.rpcs import Rpc
from fencepost.checkers.metadata.view import METADATA, MetadataView, counted
from fencepost.checkers.proof import Proof
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import Source, streamed
from fencepost.checkers.table_check import SlicedKernel, TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.QUORUM,
    variants={
        "{other_leader} does (": "two-in-one-epoch",
        "is not among its ": "not-eligible",
    },
    needs=("metadata_log",),
)
NAME: Final = ENTRY.name
_METADATA_TOPIC: Final = "__cluster_metadata"
_LEADERS_WORD: Final = "BeginQuorumEpoch"
_WORD: Final = ("source", "target", "direction", "leader_id", "leader_epoch")
_ELECTED: Final = ("type", "control", "leader", "snapshot", "controller_epoch")
_ELECTIONS: Final = (*_ELECTED, "node", "metadata_offset")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """A source's statement that a node leads in an epoch."""

    epoch: int
    leader: int
    source: str
    """The source of the statement: two statements of one source do not confirm each other."""
    clause: Callable[[], Proof]
    """The statement as a clause of a proof; few of them are ever asked for."""


def two_leaders(tables: Tables, seen: MetadataView) -> Judged:
    """Judge every partition, and the quorum.

    Reads `metadata_log`, `wire`, `describes` and `quorum_claims`.
    """
    yield from two_controllers(tables, seen)
    yield from two_leaders_of_partitions(tables, seen)


def two_controllers(tables: Tables, seen: MetadataView) -> Judged:
    """Judge the quorum. Reads `metadata_log`, `wire` and `quorum_claims`."""
    quorum = _compared(_quorum_claims(tables, seen.facts), METADATA, "controller epoch")
    yield METADATA, counted(NAME, METADATA, quorum, doubt=seen.log.doubt)


def two_leaders_of_partitions(tables: Tables, seen: MetadataView) -> Judged:
    """Judge every partition. Reads `metadata_log`, `wire` and `describes`."""
    requests = requests_by_partition(streamed(tables, "wire"), seen.partitions)
    shown = partition_reads(tables["describes"])
    for place, history in seen.partitions.items():
        claims = [
            *_logged(history),
            *_asked(requests.get(place, NO_REQUESTS)),
            *_shown(shown.get(place, NO_READS)),
        ]
        compared = _compared(claims, history.key, "leader epoch")
        yield history.key, counted(NAME, history.key, [*compared, *_places(history)])


@dataclass(slots=True, kw_only=True)
class _Epoch:
    """The leader in an epoch, as far as it is told."""

    first: _Claim
    sources: set[str]
    other: _Claim | None = None
    """The first that names another leader."""


def _compared(claims: Iterable[_Claim], key: str, epoch_name: str) -> Iterator[Proof | None]:
    """Judge each epoch on which several sources speak, or one contradicts itself."""
    epochs: dict[int, _Epoch] = {}
    for claim in claims:
        known = epochs.setdefault(claim.epoch, _Epoch(first=claim, sources=set()))
        known.sources.add(claim.source)
        if known.other is None and claim.leader != known.first.leader:
            known.other = claim
    for known in epochs.values():
        if known.other is not None:
            yield _two(known.first, known.other, key, epoch_name)
        elif len(known.sources) > 1:
            yield None


def _two(one: _Claim, other: _Claim, key: str, epoch_name: str) -> Proof:
    return Proof.of(
        f"in {epoch_name} {{epoch}} of {{key}}, {{leader}} leads ({{one}}), and "
        "{other_leader} does ({other})",
        values={"epoch": one.epoch, "leader": one.leader, "other_leader": other.leader},
        key=key,
        one=one.clause(),
        other=other.clause(),
    )


def _logged(history: PartitionHistory) -> Iterator[_Claim]:
    for version in history.versions:
        if version.leader != NO_LEADER:
            yield _Claim(
                epoch=version.leader_epoch,
                leader=version.leader,
                source="the metadata log",
                clause=partial(
                    Proof.of,
                    "metadata offset {metadata_offset}",
                    metadata_offsets={"metadata_offset": version.metadata_offset},
                ),
            )


def _asked(requests: Iterable[Rpc]) -> Iterator[_Claim]:
    for rpc in requests:
        if rpc.of("leader_epoch") is not None and rpc.of("broker_id") is not None:
            yield _Claim(
                epoch=rpc.of("leader_epoch"),
                leader=rpc.of("broker_id"),
                source=rpc.source,
                clause=partial(
                    Proof.of,
                    "it sent an AlterPartition at {asked}, frame {frame}",
                    frames={"frame": rpc.frame},
                    times={"asked": rpc.asked_ns},
                    sources={"asked": "frame"},
                ),
            )


def _shown(reads: PartitionReads) -> Iterator[_Claim]:
    """Yield what each node showed, by its first read of it."""
    first = sorted(
        int(row)
        for shown, rows in reads.by_state()
        if shown.leader is not None and shown.leader >= 0 and shown.leader_epoch is not None
        for row in rows[np.unique(reads.node[rows], return_index=True)[1]]
    )
    for row in first:
        shown = reads.shown(row)
        assert shown.leader is not None
        assert shown.leader_epoch is not None
        yield _Claim(
            epoch=shown.leader_epoch,
            leader=shown.leader,
            source=f"what {reads.node[row]} shows",
            clause=partial(
                Proof.of,
                "{node} showed it at {returned}, read {read}",
                times={"returned": int(reads.return_ns[row])},
                node=reads.node[row],
                read=int(reads.read[row]),
            ),
        )


def _places(history: PartitionHistory) -> Iterator[Proof | None]:
    """Yield for each leader a proof that it may not lead, or None if it may."""
    for version in history.versions:
        stranger = version.leader not in version.replicas
        behind = version.leader not in version.isr and not version.recovering
        if version.leader != NO_LEADER:
            yield _outside(history, version, stranger=stranger) if stranger or behind else None


def _outside(history: PartitionHistory, version: PartitionVersion, *, stranger: bool) -> Proof:
    among, ids = ("replicas", version.replicas) if stranger else ("ISR", version.isr)
    return Proof.of(
        "at metadata offset {metadata_offset} the leader of {key} is {leader}, which "
        f"is not among its {among} {{ids}}",
        metadata_offsets={"metadata_offset": version.metadata_offset},
        values={"leader": version.leader},
        sources={"leader": "metadata_offset", "ids": "metadata_offset"},
        key=history.key,
        ids=list(ids),
    )


def _quorum_claims(tables: Tables, facts: Facts) -> Iterator[_Claim]:
    yield from _elected(streamed(tables, "metadata_log"))
    yield from _named(streamed(tables, "wire"))
    for row in tables["quorum_claims"].to_pylist():
        yield _Claim(
            epoch=row["controller_epoch"],
            leader=facts.node_ids.get(row["node"], -1),
            source=f"what {row['node']} claims",
            clause=partial(
                Proof.of,
                "{node} called itself the leader at {time}",
                times={"time": row["time_ns"]},
                node=row["node"],
            ),
        )


def _elected(metadata_log: Source) -> Iterator[_Claim]:
    elections = (
        row
        for batch in metadata_log(_ELECTIONS)
        for row in batch.filter(
            pc.and_(pc.equal(batch.column("type"), LEADER_CHANGE), batch.column("control"))
        ).to_pylist()
    )
    for row in elections:
        if row["leader"] is not None and not row["snapshot"]:
            yield _Claim(
                epoch=row["controller_epoch"],
                leader=row["leader"],
                source=f"the disk of {row['node']}",
                clause=partial(
                    Proof.of,
                    "metadata offset {metadata_offset} on {node}",
                    metadata_offsets={"metadata_offset": row["metadata_offset"]},
                    node=row["node"],
                ),
            )


def _named(wire: Source) -> Iterator[_Claim]:
    """Yield the leader's own words, and answers that name one. A candidate's Vote names none."""
    kept = ["frame", "time_ns", "source", "target", "direction", "api", "leader_id", "leader_epoch"]
    of_quorum = (
        row
        for batch in wire((*kept, "action", "topic"))
        for row in _of_quorum(batch).select(kept).to_pylist()
    )
    for row in of_quorum:
        if _names_a_leader(row):
            teller = row["source"] if row["direction"] == "request" else row["target"]
            yield _Claim(
                epoch=row["leader_epoch"],
                leader=row["leader_id"],
                source=f"what {teller} sends",
                clause=partial(
                    Proof.of,
                    "{api} {direction} of {node} at {time}, frame {frame}",
                    frames={"frame": row["frame"]},
                    times={"time": row["time_ns"]},
                    sources=dict.fromkeys(("api", "direction", "node", "time"), "frame"),
                    api=row["api"],
                    direction=row["direction"],
                    node=teller,
                ),
            )


def _of_quorum(wire: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows that may name the quorum's leader, each telling of the same once a batch."""
    direction = wire.column("direction")
    said = pc.or_(
        pc.and_(pc.equal(direction, "request"), pc.equal(wire.column("api"), _LEADERS_WORD)),
        pc.and_(pc.equal(direction, "response"), pc.not_equal(wire.column("action"), "answered")),
    )
    told = wire.filter(pc.and_(pc.equal(wire.column("topic"), _METADATA_TOPIC), said))
    numbered = pa.Table.from_batches([told]).append_column(
        "row", pa.array(range(len(told)), pa.int64())
    )
    firsts = numbered.group_by(list(_WORD)).aggregate([("row", "min")])
    return told.take(firsts["row_min"].combine_chunks().sort())


def _names_a_leader(row: Mapping[str, Any]) -> bool:
    leader, epoch = row["leader_id"], row["leader_epoch"]
    return leader is not None and epoch is not None and leader >= 0 and epoch >= 0


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=two_leaders,
        parts=(
            SlicedKernel(kernel=two_controllers, pick=_of_quorum),
            SlicedKernel(kernel=two_leaders_of_partitions, split=Split.PARTITIONS),
        ),
        tables=("metadata_log", "wire", "describes", "quorum_claims"),
    ),
)
