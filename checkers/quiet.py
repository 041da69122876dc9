"""The times without a fault, by the journal of faults.

A fault lasts from before it was begun until its heal was seen to work, or to the end of the run.
The beginning of the run counts as the end of one: the cluster has just been started. A fault whose
effect was never seen may have had one, and counts like the others.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from checkers.rows import OPEN_NS

__all__ = ["Quiet", "quiet"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """The faults of a run, by their beginnings."""

    begin_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    """The end of the last to end among a fault and those that began before it."""

    def since_ns(self, until_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return since when nothing was broken, at each of these times; OPEN_NS if something is."""
        begun = np.searchsorted(self.begin_ns, until_ns, side="right")
        ended_ns = np.concatenate([np.zeros(1, dtype=np.int64), self.end_ns])[begun]
        since_ns: NDArray[np.int64] = np.where(ended_ns <= until_ns, ended_ns, OPEN_NS)
        return since_ns


def quiet(faults: pa.Table) -> Quiet:
    """Return the quiet times out of FAULTS."""
    ordered = faults.sort_by("begin_ns")
    ends = [OPEN_NS if end_ns is None else end_ns for end_ns in ordered["end_ns"].to_pylist()]
    return Quiet(
        begin_ns=ordered["begin_ns"].to_numpy().astype(np.int64),
        end_ns=np.maximum.accumulate(np.array(ends, dtype=np.int64)),
    )
