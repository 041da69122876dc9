"""C9: ISRs and ELRs that no version of a partition may have."""

from collections.abc import Iterator
from typing import Any, Final

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.partition_states import (
    NO_LEADER,
    PartitionHistory,
    PartitionVersion,
)
from fencepost.checkers.metadata.view import MetadataView, by_partition
from fencepost.checkers.proof import Proof
from fencepost.checkers.slices import Split
from fencepost.checkers.table_check import TableCheck

EMPTY_ENTRY: Final = CatalogueEntry.of(
    """C9a empty-isr: A partition has no ISR.

    An ISR is empty while somebody leads, or on a cluster without eligible leader replicas. With
    them (KIP-966) it may be empty while there is no leader.

    Without eligible leader replicas an ISR keeps its last member whatever happens to it. With them
    it may be empty until one of the ELR, or the last known leader, is back. From when on a cluster
    has them is told by its feature level, or by the first ELR in its log. A cluster that gives them
    up again may still have an ISR that was emptied while it had them: nothing is accused after
    that.

    Meaning: No replica is known to have the committed records.
    Case: a version of a partition's ISR
    Source: KIP-631, KIP-966; KAFKA-15353
    """,
    nearness=Nearness.METADATA,
    needs=("metadata_log",),
)
EMPTY: Final = EMPTY_ENTRY.name
NOT_IN_REPLICAS_ENTRY: Final = CatalogueEntry.of(
    """C9b isr-not-in-replicas: An ISR has a member that is no replica.

    Each member of an ISR is among the partition's replicas.

    Meaning: A broker that holds no copy counts as having one.
    Case: a version of a partition's ISR
    Source: KIP-631
    """,
    nearness=Nearness.METADATA,
    needs=("metadata_log",),
)
NOT_IN_REPLICAS: Final = NOT_IN_REPLICAS_ENTRY.name
ELR_OVERLAPS_ENTRY: Final = CatalogueEntry.of(
    """C9c elr-overlaps-isr: A replica is in the ISR and among the eligible leaders outside it.

    ISR and ELR of a partition have no member in common.

    Meaning: The controller's records of who has what contradict themselves.
    Case: a version of a partition with an ELR
    Source: KIP-966
    """,
    nearness=Nearness.METADATA,
    needs=("metadata_log",),
)
ELR_OVERLAPS: Final = ELR_OVERLAPS_ENTRY.name

_ELR_FEATURE: Final = "eligible.leader.replicas.version"


def empty_isrs(_: Tables, seen: MetadataView) -> Judged:
    """Find versions without an ISR, by partition. Reads `metadata_log`."""
    since = _elr_since(seen)

    def judged(history: PartitionHistory) -> Iterator[Proof | None]:
        for version in history.versions:
            early = since is None or version.metadata_offset < since
            wrong = not version.isr and (version.leader != NO_LEADER or early)
            rule = "and its leader is {leader}"
            yield _proof(history, version, rule, leader=version.leader) if wrong else None

    return by_partition(EMPTY, seen, judged)


def strange_isrs(_: Tables, seen: MetadataView) -> Judged:
    """Find members of ISRs that are no replicas, by partition. Reads `metadata_log`."""

    def judged(history: PartitionHistory) -> Iterator[Proof | None]:
        for version in history.versions:
            strange = sorted(set(version.isr) - set(version.replicas))
            named = {"strange": strange, "replicas": list(version.replicas)}
            rule = "and {strange} are not among its replicas {replicas}"
            yield _proof(history, version, rule, **named) if strange else None

    return by_partition(NOT_IN_REPLICAS, seen, judged)


def elr_overlaps(_: Tables, seen: MetadataView) -> Judged:
    """Find replicas in both, by partition. Reads `metadata_log`."""

    def judged(history: PartitionHistory) -> Iterator[Proof | None]:
        for version in (one for one in history.versions if one.elr):
            both = sorted(set(version.isr) & set(version.elr))
            named = {"both": both, "elr": list(version.elr)}
            rule = "and {both} are in its ELR {elr}, too"
            yield _proof(history, version, rule, **named) if both else None

    return by_partition(ELR_OVERLAPS, seen, judged)


def _elr_since(seen: MetadataView) -> int | None:
    """Return the metadata offset from which on there may be an ELR; None: there never is one."""
    stated = (
        one.metadata_offset
        for one in seen.log.records
        if one.name == _ELR_FEATURE and one.value not in (None, "0")
    )
    found = (
        version.metadata_offset
        for history in seen.histories()
        for version in history.versions
        if version.elr or version.last_known_elr
    )
    return min((*stated, *found), default=None)


def _proof(history: PartitionHistory, version: PartitionVersion, rule: str, **named: Any) -> Proof:
    return Proof.of(
        "at metadata offset {metadata_offset} (partition epoch {partition_epoch}) "
        "the ISR of {key} is {isr}, " + rule,
        metadata_offsets={"metadata_offset": version.metadata_offset},
        values={"partition_epoch": version.partition_epoch},
        sources=dict.fromkeys(("partition_epoch", "isr", *named), "metadata_offset"),
        key=history.key,
        isr=version.isr_text,
        **named,
    )


CHECKS: Final = (
    TableCheck(
        entry=EMPTY_ENTRY,
        kernel=empty_isrs,
    ),
    TableCheck(
        entry=NOT_IN_REPLICAS_ENTRY,
        kernel=strange_isrs,
        split=Split.PARTITIONS,
    ),
    TableCheck(
        entry=ELR_OVERLAPS_ENTRY,
        kernel=elr_overlaps,
        split=Split.PARTITIONS,
    ),
)
