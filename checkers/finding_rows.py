"""The rows that tasks answer: one row per key and check, and one row for the task itself.

A task that does not send its own row counts as not answered, so nothing is valid by silence.
"""

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from fencepost.checkers.anomaly import ANOMALIES, Found

_PROOF: Final = pa.struct([field for field in ANOMALIES if field.name not in ("check", "key")])

FINDINGS: Final = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        # Both null in the row of the file, or whatever the task was, itself.
        pa.field("check", pa.string()),
        pa.field("key", pa.string()),
        # Of the file: its rows.
        pa.field("record_count", pa.int64()),
        # Of a key and check: anomalies, those that are not spelled out included.
        pa.field("never_count", pa.int64()),
        pa.field("allowed_count", pa.int64()),
        # Cases that were judged, those that hold included.
        pa.field("case_count", pa.int64()),
        # The doubt about the key, or about the whole file; null without a doubt.
        pa.field("unknown", pa.string()),
        # Of the file: in all, with reading and what the checks share.
        pa.field("seconds", pa.float64(), nullable=False),
        # At most `checkers.anomaly.PROOFS_MAX`, those that are never allowed first.
        pa.field("anomalies", pa.list_(pa.field("element", _PROOF))),
    ]
)


def found_row(name: str, found: Found) -> dict[str, Any]:
    """Return the row of a check's findings on a key; the caller adds path, key and seconds."""
    return {
        "check": name,
        "never_count": found.never_count,
        "allowed_count": found.allowed_count,
        "case_count": found.case_count,
        "unknown": found.doubt or None,
        "anomalies": _proofs(found.table) if len(found.table) else [],
    }


def _proofs(anomalies: pa.Table) -> list[dict[str, Any]]:
    return list(anomalies.select([field.name for field in _PROOF]).to_pylist())


def unknown_row(name: str, reason: str, *, seconds: float) -> dict[str, Any]:
    """Return the row of a check that cannot judge a key; the caller adds path and key."""
    none = {"never_count": 0, "allowed_count": 0, "case_count": 0, "anomalies": []}
    return none | {"check": name, "unknown": reason, "seconds": seconds}


def findings_table(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Return FINDINGS of these rows."""
    return pa.Table.from_pylist(list(rows), schema=FINDINGS)
