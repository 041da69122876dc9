"""The data plane's pass: every check, over every key, with one reading of each file.

A kernel that crashes on a key leaves that key unknown for its check, and every other answer stands.
A file that cannot be read leaves the keys in it unknown for all checks. So each file answers with
one row a key and check, and one for itself, without which it counts as not answered.
"""

from collections.abc import Iterable, Iterator, Mapping
from time import perf_counter
from typing import Any

import pyarrow as pa

from fencepost.checkers.data_plane.answers import answers_of, crash, judged_rows
from fencepost.checkers.data_plane.key_assumptions import KEY_ASSUMPTIONS
from fencepost.checkers.data_plane.key_check import KeyCheck
from fencepost.checkers.data_plane.key_log import key_log
from fencepost.checkers.finding_rows import findings_table, unknown_row
from fencepost.checkers.rows import COLUMNS
from fencepost.checkers.runner.tables import SealedFile, keys_in
from fencepost.checkers.setting import Setting
from fencepost.history.failure import HarnessError


def findings_in(file: SealedFile, *, setting: Setting, checks: Mapping[str, KeyCheck]) -> pa.Table:
    """Return FINDINGS of a file of `records`: the rows of each key, and last one for the file.

    A task holds one key at a time, which fits in memory as `data_plane.key_log` says.
    """
    tables = []
    started, record_count, unknown = perf_counter(), 0, None
    try:
        for key, records in keys_in(file, COLUMNS):
            record_count += records.num_rows
            tables.append(key_findings(file, key, records, setting=setting, checks=checks))
    except HarnessError as error:
        unknown = str(error)
    row = {"path": file.path, "record_count": record_count, "unknown": unknown}
    tables.append(findings_table([row | {"seconds": perf_counter() - started}]))
    return pa.concat_tables(tables)


def key_findings(
    file: SealedFile,
    key: str,
    records: pa.Table,
    *,
    setting: Setting,
    checks: Mapping[str, KeyCheck],
) -> pa.Table:
    """Return FINDINGS of one key that is judged as a whole."""
    try:
        log = key_log(key, records, setting)
    except Exception as error:  # noqa: BLE001  # whatever it is, this key alone is unknown
        rows = list(unknown_rows(key, checks, crash(key, error)))
    else:
        answers = answers_of(log, {**KEY_ASSUMPTIONS, **checks})
        rows = list(judged_rows(key, checks, answers))
    return findings_table([row | {"path": file.path, "key": key} for row in rows])


def unknown_rows(key: str, checks: Iterable[str], reason: str) -> Iterator[dict[str, Any]]:
    """Yield rows of FINDINGS of a key that nothing can judge; path is the caller's."""
    for name in (*KEY_ASSUMPTIONS, *checks):
        yield unknown_row(name, reason, seconds=0.0) | {"key": key}
