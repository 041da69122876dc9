"""C5 epoch-went-back: An epoch or a metadata offset went back, or one was skipped.

These never fall: controller epoch and offset along every metadata log; leader epoch and partition
epoch of a partition; broker epoch from registration to registration, and another incarnation has a
higher one; the metadata offset in the heartbeats of one incarnation and connection. An
AlterPartition is answered with the partition epoch that it expected or the next one; where
ZooKeeper has the metadata, with no earlier one.

A change makes the next leader epoch and partition epoch implicitly, so only a partition that is
stated whole a second time can go back. On ZooKeeper a partition epoch that the log leaves out is a
doubt. A controller there grants what is so already, whatever epoch is expected: a request that was
held may skip some.

Meaning: What fences old leaders and old brokers off does not any more.
Case: a step from an epoch or a metadata offset to the next one
Source: KIP-101, KIP-497, KIP-631
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Facts, Judged, Tables
from fencepost.checkers.metadata.broker_states import BrokerHistory
from fencepost.checkers.metadata.partition_states import PartitionHistory
from fencepost.checkers.metadata.rpcs import Rpc, rpcs
from fencepost.checkers.metadata.view import METADATA, MetadataView, counted, spelled
from fencepost.checkers.proof import Proof
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import Source, streamed
from fencepost.checkers.table_check import SlicedKernel, TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.METADATA,
    needs=("metadata_log",),
)
NAME: Final = ENTRY.name


def epochs_that_went_back(tables: Tables, seen: MetadataView) -> Judged:
    """Judge nodes' logs, partitions and brokers. Reads `metadata_log` and `wire`."""
    yield from logs_that_went_back(tables, seen)
    yield from partitions_that_went_back(tables, seen)
    yield from brokers_that_went_back(tables, seen)


def logs_that_went_back(tables: Tables, seen: MetadataView) -> Judged:
    """Judge nodes' logs. Reads `metadata_log`."""
    proofs = list(_logs(tables["metadata_log"], seen.facts))
    cases = _step_count(tables["metadata_log"])
    yield METADATA, spelled(NAME, METADATA, proofs, cases=cases, doubt=seen.log.doubt)


def partitions_that_went_back(tables: Tables, seen: MetadataView) -> Judged:
    """Judge partitions. Reads `metadata_log` and `wire`."""
    answers: dict[str, list[Proof | None]] = {}
    for key, answer in _answers(streamed(tables, "wire"), seen):
        answers.setdefault(key, []).append(answer)
    for history in seen.histories():
        told = [*_partition(history), *answers.pop(history.key, ())]
        yield history.key, counted(NAME, history.key, told, doubt=_gap(history, seen.facts))
    for key, of_another in answers.items():
        yield key, counted(NAME, key, of_another)


def brokers_that_went_back(tables: Tables, seen: MetadataView) -> Judged:
    """Judge brokers. Reads `metadata_log` and `wire`."""
    told: dict[str, list[Proof | None]] = {}
    for broker in seen.brokers.values():
        told[_broker_key(broker.broker_id)] = list(_registrations(broker))
    for broker_id, answer in _heartbeats(streamed(tables, "wire")):
        told.setdefault(_broker_key(broker_id), []).append(answer)
    for key, answers in told.items():
        yield key, counted(NAME, key, answers)


def _broker_key(broker_id: int) -> str:
    return f"broker {broker_id}"


def _step_count(metadata_log: pa.Table) -> int:
    """Return how many steps the logs of all nodes make from offset to offset."""
    logged = metadata_log.filter(pc.invert(metadata_log["snapshot"]))
    return len(logged) - len(pc.unique(logged["node"]))


def _logs(metadata_log: pa.Table, facts: Facts) -> Iterator[Proof]:
    # A transaction of ZooKeeper's may be several records, all with its zxid.
    step_min = 0 if facts.on_zookeeper else 1
    for node in sorted(pc.unique(metadata_log["node"]).to_pylist()):
        rows = metadata_log.filter(
            pc.and_(pc.equal(metadata_log["node"], node), pc.invert(metadata_log["snapshot"]))
        )
        offset = rows["metadata_offset"].to_numpy()
        epoch = rows["controller_epoch"].to_numpy()
        for place in np.flatnonzero((np.diff(epoch) < 0) | (np.diff(offset) < step_min)).tolist():
            yield Proof.of(
                "in the metadata log of {node}, offset {offset} of controller epoch {epoch} "
                "is followed by offset {next_offset} of controller epoch {next_epoch}",
                metadata_offsets={
                    "offset": int(offset[place]),
                    "next_offset": int(offset[place + 1]),
                },
                values={"epoch": int(epoch[place]), "next_epoch": int(epoch[place + 1])},
                sources={"epoch": "offset", "next_epoch": "next_offset"},
                node=node,
            )


def _partition(history: PartitionHistory) -> Iterator[Proof | None]:
    for before, version in history.steps():
        one = (before.leader_epoch, before.partition_epoch)
        other = (version.leader_epoch, version.partition_epoch)
        if other[0] >= one[0] and other[1] >= one[1]:
            yield None
            continue
        yield Proof.of(
            "{key} had leader epoch {leader_epoch} and partition epoch {partition_epoch} at "
            "metadata offset {metadata_offset}, and has {new_leader_epoch} and "
            "{new_partition_epoch} at metadata offset {version_metadata_offset}",
            metadata_offsets={
                "metadata_offset": before.metadata_offset,
                "version_metadata_offset": version.metadata_offset,
            },
            values={
                "leader_epoch": one[0],
                "partition_epoch": one[1],
                "new_leader_epoch": other[0],
                "new_partition_epoch": other[1],
            },
            sources=dict.fromkeys(("leader_epoch", "partition_epoch"), "metadata_offset")
            | dict.fromkeys(("new_leader_epoch", "new_partition_epoch"), "version_metadata_offset"),
            key=history.key,
        )


def _gap(history: PartitionHistory, facts: Facts) -> str:
    """Return where a version is missing; empty where none is.

    ZooKeeper counts the writes of a znode, so that its log tells of every partition epoch. In
    KRaft's a change states none. Which of both it was cannot be told: a count that jumped, or a
    record that was lost.
    """
    for before, version in history.steps() if facts.on_zookeeper and not facts.migrating else ():
        if version.partition_epoch > before.partition_epoch + 1:
            return (
                f"{history.key} had partition epoch {before.partition_epoch} at metadata offset "
                f"{before.metadata_offset}, and the next that the log tells of is "
                f"{version.partition_epoch}, at {version.metadata_offset}"
            )
    return ""


def _registrations(broker: BrokerHistory) -> Iterator[Proof | None]:
    for before, after in pairwise(broker.registrations()):
        is_same = after.incarnation_id == before.incarnation_id
        if after.broker_epoch > before.broker_epoch - is_same:
            yield None
            continue
        another = "" if is_same else "another incarnation of it "
        yield Proof.of(
            "broker {broker_id} registered with broker epoch {broker_epoch} at metadata "
            f"offset {{metadata_offset}}, and {another}with {{after_broker_epoch}} at metadata "
            "offset {after_metadata_offset}",
            metadata_offsets={
                "metadata_offset": before.metadata_offset,
                "after_metadata_offset": after.metadata_offset,
            },
            values={"broker_epoch": before.broker_epoch, "after_broker_epoch": after.broker_epoch},
            sources={
                "broker_epoch": "metadata_offset",
                "after_broker_epoch": "after_metadata_offset",
            },
            broker_id=broker.broker_id,
        )


def _heartbeats(wire: Source) -> Iterator[tuple[int, Proof | None]]:
    last: dict[tuple[int, int], Rpc] = {}
    for rpc in rpcs(wire, "BrokerHeartbeat"):
        offset = rpc.of("fetch_offset")
        if offset is None or rpc.of("broker_epoch") is None:
            continue
        before = last.get((rpc.connection, rpc.of("broker_epoch")))
        if before is not None:
            back = offset < before.of("fetch_offset")
            yield rpc.of("broker_id"), _forgotten(before, rpc) if back else None
        last[rpc.connection, rpc.of("broker_epoch")] = rpc


def _forgotten(before: Rpc, rpc: Rpc) -> Proof:
    known, offset = before.of("fetch_offset"), rpc.of("fetch_offset")
    return Proof.of(
        "{source}, with broker epoch {broker_epoch}, had applied metadata offset {known} "
        "at {asked} (frame {frame}), and {offset} at {rpc_asked} (frame {rpc_frame})",
        metadata_offsets={"known": known, "offset": offset},
        values={"broker_epoch": rpc.of("broker_epoch")},
        frames={"frame": before.frame, "rpc_frame": rpc.frame},
        sources={"known": "frame", "asked": "frame", "offset": "rpc_frame"}
        | {"rpc_asked": "rpc_frame", "broker_epoch": "rpc_frame"},
        times={"asked": before.asked_ns, "rpc_asked": rpc.asked_ns},
        source=rpc.source,
    )


def _answers(wire: Source, seen: MetadataView) -> Iterator[tuple[str, Proof | None]]:
    for rpc in rpcs(wire, "AlterPartition"):
        asked = (rpc.of("leader_epoch"), rpc.of("partition_epoch"))
        told = (rpc.answered("leader_epoch"), rpc.answered("partition_epoch"))
        if not rpc.ok or None in (*asked, *told):
            continue
        key = _key(rpc, seen)
        skips = told[1] - asked[1] > 1 and not seen.facts.on_zookeeper
        if told[0] >= asked[0] and told[1] >= asked[1] and not skips:
            yield key, None
            continue
        proof = Proof.of(
            "{source} sent an AlterPartition of {key} (frame {frame}) with leader epoch "
            "{asked_leader_epoch} and partition epoch {asked_partition_epoch}, and was answered "
            "with {told_leader_epoch} and {told_partition_epoch} by {target} (frame "
            "{answer_frame})",
            values={
                "asked_leader_epoch": asked[0],
                "asked_partition_epoch": asked[1],
                "told_leader_epoch": told[0],
                "told_partition_epoch": told[1],
            },
            frames={"frame": rpc.frame, "answer_frame": rpc.answer_frame},
            sources=dict.fromkeys(("asked_leader_epoch", "asked_partition_epoch"), "frame")
            | dict.fromkeys(("told_leader_epoch", "told_partition_epoch"), "answer_frame"),
            source=rpc.source,
            key=key,
            target=rpc.target,
        )
        yield key, proof


def _key(rpc: Rpc, seen: MetadataView) -> str:
    known = seen.partitions.get((rpc.of("topic_id"), rpc.of("partition")))
    if known is not None:
        return known.key
    # A topic whose record was not decided is in no history, and yet has a name.
    topic = rpc.of("topic") or rpc.answered("topic") or rpc.of("topic_id")
    return f"{topic}-{rpc.of('partition')}"


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=epochs_that_went_back,
        parts=(
            SlicedKernel(kernel=logs_that_went_back),
            SlicedKernel(kernel=partitions_that_went_back, split=Split.PARTITIONS),
            SlicedKernel(
                kernel=brokers_that_went_back, split=Split.BROKERS, apis=("BrokerHeartbeat",)
            ),
        ),
        tables=("metadata_log", "wire"),
    ),
)
