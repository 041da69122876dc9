"""The data plane's pass: every check, over every key, with one reading of each file.

A kernel that crashes on a key leaves that key unknown for its check, and every other answer stands.
A file that cannot be read leaves the keys in it unknown for all checks. So each file answers with
one row a key and check, and one for itself, without which it counts as not answered.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from time import perf_counter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from checkers.catalogue import entry_of
from checkers.data_plane.checks import KEY_ASSUMPTIONS, Kernel
from checkers.finding_rows import FINDINGS, findings_table, found_row, unknown_row
from checkers.kernels.key_log import KeyLog, Setting, key_log
from checkers.kernels.rows import COLUMNS
from checkers.tables import SealedFile, keys_in, scanned
from history.failure import HarnessError

__all__ = ["findings", "findings_in"]


def findings(files: DataFrame, *, setting: Setting, checks: Mapping[str, Kernel]) -> DataFrame:
    """FINDINGS of all files of `records`; `files` has one row a file (path, digest).

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
    yield findings_table([row | {"seconds": perf_counter() - started}])


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
        rows = [unknown_row(name, _crash(key, error), seconds=0.0) for name in names]
    else:
        rows = list(_rows(log, checks))
    return findings_table([row | {"path": file.path, "key": key} for row in rows])


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
            yield unknown_row(name, f"{log.key} breaks {' and '.join(missing)}", seconds=0.0)
        else:
            yield _row(log, name, kernel)


def _row(log: KeyLog, name: str, kernel: Kernel) -> dict[str, Any]:
    started = perf_counter()
    try:
        found = kernel(log)
        return found_row(name, found) | {"seconds": perf_counter() - started}
    except Exception as error:  # noqa: BLE001  # one check's crash must not silence the others
        return unknown_row(name, _crash(log.key, error), seconds=perf_counter() - started)


def _crash(key: str, error: Exception) -> str:
    return f"the check crashed on {key}: {type(error).__name__}: {error}"
