"""C9: ISRs and ELRs that no version of a partition may have.

- empty-isr: without eligible leader replicas (KIP-966) an ISR keeps its last member whatever
  happens to it. With them it may be empty, while nobody leads and until one of the ELR, or the last
  known leader, is back. Whether a cluster has them is told by its feature level, or by any ELR in
  its log.
- isr-not-in-replicas: every member of the ISR is one of the partition's replicas.
- elr-overlaps-isr: a replica is in the ISR or in the ELR.

Source: KIP-631, KIP-966.
"""

from collections.abc import Iterator
from typing import Final

from checkers.anomaly import Proof
from checkers.control_plane.view import View, by_partition, view
from checkers.kernels.facts import Facts, Judged, Tables
from checkers.kernels.partition_states import NO_LEADER, PartitionHistory, PartitionVersion

__all__ = ["ELR_OVERLAPS", "EMPTY", "NOT_IN_REPLICAS", "elr_overlaps", "empty_isrs", "strange_isrs"]

EMPTY: Final = "empty-isr"
NOT_IN_REPLICAS: Final = "isr-not-in-replicas"
ELR_OVERLAPS: Final = "elr-overlaps-isr"

_ELR_FEATURE: Final = "eligible.leader.replicas.version"


def empty_isrs(tables: Tables, facts: Facts) -> Judged:
    """Versions without an ISR, by partition. Reads `metadata_log`."""
    seen = view(tables, facts)
    elr = _has_elr(seen)

    def proofs(history: PartitionHistory) -> Iterator[Proof]:
        for version in history.versions:
            if not version.isr and (version.leader != NO_LEADER or not elr):
                yield _proof(history, version, f"and its leader is {version.leader}")

    return by_partition(EMPTY, seen, proofs)


def strange_isrs(tables: Tables, facts: Facts) -> Judged:
    """Members of ISRs that are no replicas, by partition. Reads `metadata_log`."""

    def proofs(history: PartitionHistory) -> Iterator[Proof]:
        for version in history.versions:
            if strange := sorted(set(version.isr) - set(version.replicas)):
                yield _proof(
                    history,
                    version,
                    f"and {strange} are not among its replicas {list(version.replicas)}",
                )

    return by_partition(NOT_IN_REPLICAS, view(tables, facts), proofs)


def elr_overlaps(tables: Tables, facts: Facts) -> Judged:
    """Replicas in both, by partition. Reads `metadata_log`."""

    def proofs(history: PartitionHistory) -> Iterator[Proof]:
        for version in history.versions:
            if both := sorted(set(version.isr) & set(version.elr)):
                yield _proof(
                    history, version, f"and {both} are in its ELR {list(version.elr)}, too"
                )

    return by_partition(ELR_OVERLAPS, view(tables, facts), proofs)


def _has_elr(seen: View) -> bool:
    levels = [one.value for one in seen.log.records if one.name == _ELR_FEATURE]
    return any(level not in (None, "0") for level in levels) or any(
        version.elr or version.last_known_elr
        for history in seen.histories()
        for version in history.versions
    )


def _proof(history: PartitionHistory, version: PartitionVersion, what: str) -> Proof:
    return Proof(
        operations=(),
        offsets=(version.metadata_offset,),
        values=(version.partition_epoch,),
        detail=f"at metadata offset {version.metadata_offset} (partition epoch "
        f"{version.partition_epoch}) the ISR of {history.key} is {version.isr_text}, {what}",
    )
