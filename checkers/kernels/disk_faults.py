"""Faults that change a node's disk from outside: what is missing afterwards, no replica cut off."""

from typing import Final

import pyarrow as pa

__all__ = ["DISK_FAULTS", "last_disk_fault_ns"]

DISK_FAULTS: Final = frozenset({"wipe", "rollback", "cut_power"})
"""By their names in the table `faults`. All others leave what was written."""


def last_disk_fault_ns(faults: pa.Table, node: str) -> int:
    """When the last fault began that changed this node's disk; -1 if none did."""
    return max(
        (
            row["begin_ns"]
            for row in faults.select(["fault", "targets", "begin_ns"]).to_pylist()
            if node in row["targets"] and row["fault"] in DISK_FAULTS
        ),
        default=-1,
    )
