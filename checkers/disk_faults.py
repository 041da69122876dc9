"""Faults of a node's disk: which change what lies on it, and which it may only die of.

After a change from outside a record may be missing that no replica has cut off.
"""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

DISK_FAULTS: Final = frozenset(
    {"wipe", "rollback", "cut_power", "flip_bit", "lock_disk", "fail_disk"}
)
"""The faults by their names in the table `faults`. All others leave what was written."""

DISK_REFUSALS: Final = frozenset({"fill_disk", "stall_disk", "slow_disk"})
"""They keep what was written, and refuse or delay what comes: a node may end because of them."""


def last_disk_fault_ns(faults: pa.Table, node: str) -> int:
    """Return when the last fault began that changed this node's disk (ns); -1 if none did."""
    return max(
        (
            row["begin_ns"]
            for row in faults.select(["fault", "targets", "begin_ns"]).to_pylist()
            if node in row["targets"] and row["fault"] in DISK_FAULTS
        ),
        default=-1,
    )


def first_disk_faults_ns(faults: pa.Table) -> Mapping[str, int]:
    """Return when the first fault began that changed a node's disk (ns), by node."""
    found: dict[str, int] = {}
    for row in faults.select(["fault", "targets", "begin_ns"]).to_pylist():
        for node in row["targets"] if row["fault"] in DISK_FAULTS else ():
            found[node] = min(row["begin_ns"], found.get(node, row["begin_ns"]))
    return found
