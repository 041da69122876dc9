"""Reads that lack something, as columns; proofs only for the worst of them.

A broker that is cut off for an hour is read stale a hundred thousand times. Every one of them is
counted with its age, and only as many as a reader will look at are spelled out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.anomaly import ANOMALIES, PROOFS_MAX
from fencepost.checkers.proof import Proof

_CLAUSE: Final = pa.struct([ANOMALIES.field("rule"), ANOMALIES.field("facts")])

STALE_READS: Final = pa.schema(
    [
        # The topic, or topic-partition where a leader epoch went back.
        pa.field("key", pa.string(), nullable=False),
        pa.field("read", pa.int64(), nullable=False),
        pa.field("process", pa.int64(), nullable=False),
        pa.field("node", pa.string(), nullable=False),
        pa.field("call_ns", pa.int64(), nullable=False),
        # Since when what it lacks was known.
        pa.field("known_ns", pa.int64(), nullable=False),
        # Clauses of a proof, of the PROOFS_MAX oldest: what it showed, and what it lacks, which is
        # a write or what another read showed. Null in the others.
        pa.field("seen", _CLAUSE),
        pa.field("lacks", _CLAUSE),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """The reads of one key that lack something, as parallel arrays."""

    key: str
    read: NDArray[np.int64]
    process: NDArray[np.int64]
    node: NDArray[np.object_]
    call_ns: NDArray[np.int64]
    known_ns: NDArray[np.int64]
    clauses: Callable[[int], tuple[Proof, Proof]]
    """The clauses for the read in this place: what it showed, what it lacks."""


def stale_table(parts: Sequence[Lacking], *, proofs_max: int = PROOFS_MAX) -> pa.Table:
    """Return STALE_READS of all of them, in order."""
    if not parts:
        return STALE_READS.empty_table()
    lengths = [len(part.read) for part in parts]
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("read", "process", "node", "call_ns", "known_ns")
    }
    columns["key"] = np.repeat(np.array([part.key for part in parts], dtype=object), lengths)
    ages_ns = columns["call_ns"] - columns["known_ns"]
    seen, lacks = (np.full(len(ages_ns), None, dtype=object) for _ in range(2))
    starts = np.cumsum([0, *lengths])
    for row in np.argsort(-ages_ns, kind="stable")[:proofs_max].tolist():
        part = int(np.searchsorted(starts, row, side="right")) - 1
        clauses = parts[part].clauses(row - int(starts[part]))
        seen[row], lacks[row] = (clause.columns() for clause in clauses)
    columns |= {"seen": seen, "lacks": lacks}
    return pa.table({name: columns[name] for name in STALE_READS.names}, schema=STALE_READS)
