"""The metadata offsets that nodes were known to have, told beside a read that was too old."""

import numpy as np
import pyarrow as pa

from fencepost.checkers.proof import Proof


class KnownOffsets:
    """The metadata offset that each node was known to have, and when: METADATA_OFFSETS."""

    def __init__(self, table: pa.Table) -> None:
        table = table.sort_by("time_ns")
        self._time_ns = table["time_ns"].to_numpy()
        self._offset = table["metadata_offset"].to_numpy()
        self._highest = np.maximum.accumulate(self._offset)
        nodes = np.array(table["node"].to_pylist(), dtype=object)
        self._rows_of = {node: np.flatnonzero(nodes == node) for node in set(nodes.tolist())}

    def clause(self, node: str, time_ns: int) -> Proof:
        """Return the offset of a node then, and of the furthest one; empty if unknown."""
        rows = self._rows_of.get(node, np.empty(0, dtype=np.int64))
        known = int(np.searchsorted(self._time_ns[rows], time_ns, side="right"))
        if not known:
            return Proof.of("")
        latest = rows[known - 1]
        all_known = int(np.searchsorted(self._time_ns, time_ns, side="right"))
        return Proof.of(
            "; {node} was last known to have metadata offset {applied} ({applied_by}), others up "
            "to {highest}",
            metadata_offsets={
                "applied": int(self._offset[latest]),
                "highest": int(self._highest[all_known - 1]),
            },
            times={"applied_by": int(self._time_ns[latest])},
            node=node,
        )
