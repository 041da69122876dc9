"""The data plane's pass: every check, over every key, with one reading of each file.

A kernel that crashes on a key leaves that key unknown for its check, and every other answer stands.
A file that cannot be read leaves the keys in it unknown for all checks. So each file answers with
one row a key and check, and one for itself, without which it counts as not answered.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from time import perf_counter
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame

from checkers.anomaly import ANOMALIES, Found
from checkers.catalogue import entry_of
from checkers.data_plane.checks import KEY_ASSUMPTIONS, Kernel
from checkers.kernels.key_log import KeyLog, Setting, key_log
from checkers.kernels.rows import COLUMNS
from checkers.tables import SealedFile, keys_in, scanned
from history.failure import HarnessError

__all__ = ["FINDINGS", "findings", "findings_in"]

_PROOF: Final = pa.struct([field for field in ANOMALIES if field.name not in ("check", "key")])

FINDINGS: Final = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        # Both null in the row of the file itself.
        pa.field("check", pa.string()),
        pa.field("key", pa.string()),
        # Of the file: its rows.
        pa.field("record_count", pa.int64()),
        # Of a key and check: anomalies, those that are not spelled out included.
        pa.field("never_count", pa.int64()),
        pa.field("allowed_count", pa.int64()),
        # Why the key, or all that is in the file, cannot be called valid; null if it can.
        pa.field("unknown", pa.string()),
        # Of the file: in all, with reading and what the checks share.
        pa.field("seconds", pa.float64(), nullable=False),
        # At most `checkers.anomaly.PROOFS_MAX`, those that are never allowed first.
        pa.field("anomalies", pa.list_(pa.field("element", _PROOF))),
    ]
)


def findings(files: DataFrame, *, setting: Setting, checks: Mapping[str, Kernel]) -> DataFrame:
    """FINDINGS of all files of `records`; `files` has one partition a file (path, digest).

    A task holds one key at a time, which fits in memory as `kernels.key_log` says.
    """
    kernel = partial(findings_in, setting=setting, checks=dict(checks))
    return scanned(files, kernel, schema=FINDINGS)


def findings_in(
    file: SealedFile, *, setting: Setting, checks: Mapping[str, Kernel]
) -> Iterator[pa.Table]:
    """FINDINGS of one file: a table a key, and at the end one for the file."""
    started, record_count, unknown = perf_counter(), 0, None
    try:
        for key, records in keys_in(file, COLUMNS):
            record_count += records.num_rows
            yield _of_key(file, key, records, setting=setting, checks=checks)
    except HarnessError as error:
        unknown = str(error)
    row = {"path": file.path, "record_count": record_count, "unknown": unknown}
    yield _table([row | {"seconds": perf_counter() - started}])


def _of_key(
    file: SealedFile,
    key: str,
    records: pa.Table,
    *,
    setting: Setting,
    checks: Mapping[str, Kernel],
) -> pa.Table:
    names = (*KEY_ASSUMPTIONS, *checks)
    try:
        log = key_log(key, records, setting)
    except Exception as error:  # noqa: BLE001  # whatever it is, this key alone is unknown
        rows = [_unknown(name, _crash(key, error), seconds=0.0) for name in names]
    else:
        rows = list(_rows(log, checks))
    return _table([row | {"path": file.path, "key": key} for row in rows])


def _rows(log: KeyLog, checks: Mapping[str, Kernel]) -> Iterator[dict[str, Any]]:
    """The assumptions first; a check that rests on one that this key breaks does not judge it."""
    broken: set[str] = set()
    for name, kernel in KEY_ASSUMPTIONS.items():
        row = _row(log, name, kernel)
        if row["unknown"] or row["never_count"]:
            broken.add(name)
        yield row
    for name, kernel in checks.items():
        missing = sorted(broken.intersection(entry_of(name).rests_on))
        if missing:
            yield _unknown(name, f"{log.key} breaks {' and '.join(missing)}", seconds=0.0)
        else:
            yield _row(log, name, kernel)


def _row(log: KeyLog, name: str, kernel: Kernel) -> dict[str, Any]:
    started = perf_counter()
    try:
        found = kernel(log)
        return _found(name, found) | {"seconds": perf_counter() - started}
    except Exception as error:  # noqa: BLE001  # one check's crash must not silence the others
        return _unknown(name, _crash(log.key, error), seconds=perf_counter() - started)


def _found(name: str, found: Found) -> dict[str, Any]:
    return {
        "check": name,
        "never_count": found.never_count,
        "allowed_count": found.allowed_count,
        "unknown": found.doubt or None,
        "anomalies": found.table.select([field.name for field in _PROOF]).to_pylist(),
    }


def _unknown(name: str, reason: str, *, seconds: float) -> dict[str, Any]:
    none = {"never_count": 0, "allowed_count": 0, "anomalies": []}
    return none | {"check": name, "unknown": reason, "seconds": seconds}


def _crash(key: str, error: Exception) -> str:
    return f"the check crashed on {key}: {type(error).__name__}: {error}"


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=FINDINGS)
