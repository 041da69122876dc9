"""The checks of replicas: entries, kernels and the tables that each is given."""

from typing import Final

from checkers.cluster_checks import ClusterCheck, cluster_group
from checkers.replicas import (
    below_min_isr,
    divergent,
    read_below_min_isr,
    truncated,
    unsafe_candidate,
)
from checkers.replicas.entries import REPLICA_ENTRIES

__all__ = ["REPLICAS"]

_ENTRIES: Final = {entry.name: entry for entry in REPLICA_ENTRIES}

REPLICAS: Final = cluster_group(
    "replicas",
    [
        ClusterCheck(
            entry=_ENTRIES[divergent.NAME],
            kernel=divergent.divergent_replicas,
            tables=("replicas", "replica_records", "metadata_log"),
            by_bucket=True,
        ),
        ClusterCheck(
            entry=_ENTRIES[truncated.NAME],
            kernel=truncated.truncated_replicas,
            tables=("replicas", "replica_records", "records", "metadata_log", "wire", "faults"),
            by_bucket=True,
        ),
        ClusterCheck(
            entry=_ENTRIES[below_min_isr.NAME],
            kernel=below_min_isr.acknowledged_below_min_isr,
            tables=("records", "metadata_log", "metadata_offsets", "node_settings"),
            by_bucket=True,
        ),
        ClusterCheck(
            entry=_ENTRIES[read_below_min_isr.READ],
            kernel=read_below_min_isr.reads_below_min_isr,
            tables=("records", "metadata_log", "node_settings"),
            by_bucket=True,
        ),
        ClusterCheck(
            entry=_ENTRIES[read_below_min_isr.COMMITTED],
            kernel=read_below_min_isr.commits_below_min_isr,
            tables=("records", "metadata_log", "metadata_offsets", "node_settings"),
            by_bucket=True,
        ),
        ClusterCheck(
            entry=_ENTRIES[unsafe_candidate.NAME],
            kernel=unsafe_candidate.unsafe_candidates,
            tables=("records", "metadata_log", "replicas", "wire"),
            by_bucket=True,
        ),
    ],
)
