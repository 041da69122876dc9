"""Files with large keys: their keys are judged in segments, and what is beside them as ever.

A file is verified once, by a task of its own, while others survey its keys; until it is, nothing
that was found in it counts. Its other keys, which are small, share one more task.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from time import perf_counter
from typing import Any, Final

import pyarrow as pa

from checkers.data_plane.findings import key_findings
from checkers.data_plane.key_check import KeyCheck
from checkers.data_plane.key_log import Setting
from checkers.data_plane.large.jobs import Jobs
from checkers.data_plane.large.keys import LargeKey, large_key_rows, surveys_wanted
from checkers.data_plane.large.survey import Grain
from checkers.data_plane.large.tasks import Failure, Piece
from checkers.finding_rows import FINDINGS, findings_table
from checkers.rows import COLUMNS
from checkers.runner.table_pieces import Stretch, outline, some_keys_in, verify
from checkers.runner.tables import SealedFile
from history.failure import HarnessError

__all__ = ["KEY_ROWS_MAX", "Limits", "large_file_findings", "large_keys_of"]

KEY_ROWS_MAX: Final = 1 << 23
"""Rows of a key that is judged as a whole: some 100 bytes each in a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a task may hold."""

    key_rows: int = KEY_ROWS_MAX
    grain: Grain = field(default_factory=Grain)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outline:
    """Where the rows of each key lie in a file."""

    file: SealedFile

    def __call__(self) -> tuple[Stretch, ...] | Failure:
        """See the class."""
        try:
            return outline(self.file)
        except HarnessError as error:
            return Failure(reason=str(error))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verified:
    """How many seconds it took to see that a file is the one that was sealed."""

    file: SealedFile

    def __call__(self) -> float | Failure:
        """See the class."""
        started = perf_counter()
        try:
            verify(self.file)
        except HarnessError as error:
            return Failure(reason=str(error))
        return perf_counter() - started


@dataclass(frozen=True, slots=True, kw_only=True)
class _SmallKeys:
    """FINDINGS of keys that are judged as a whole."""

    file: SealedFile
    stretches: tuple[Stretch, ...]
    setting: Setting
    checks: Mapping[str, KeyCheck]

    def __call__(self) -> pa.Table | Failure:
        """See the class."""
        tables = [FINDINGS.empty_table()]
        try:
            for key, records in some_keys_in(self.file, self.stretches, COLUMNS):
                tables.append(
                    key_findings(self.file, key, records, setting=self.setting, checks=self.checks)
                )
        except HarnessError as error:
            return Failure(reason=str(error))
        return pa.concat_tables(tables)


def large_file_findings(
    files: Sequence[SealedFile],
    *,
    setting: Setting,
    checks: Mapping[str, KeyCheck],
    jobs: Jobs,
    limits: Limits,
) -> pa.Table:
    """FINDINGS of these files of `records`: a row a key and check, and one a file."""
    outlines = dict(zip(files, jobs.results([_Outline(file=file) for file in files]), strict=True))
    told = {file: found for file, found in outlines.items() if not isinstance(found, Failure)}
    keys = [key for file, found in told.items() for key in large_keys_of(file, found, limits)]
    large = {key.name for key in keys}
    small = [
        _SmallKeys(file=file, stretches=rest, setting=setting, checks=checks)
        for file, found in told.items()
        if (rest := tuple(stretch for stretch in found if stretch.key not in large))
    ]
    verified = [_Verified(file=file) for file in told]
    surveys = surveys_wanted(keys, setting, limits.grain)
    tasks: list[Callable[[], Any]] = [*verified, *small, *surveys]
    results = jobs.results(tasks)
    of_small = results[len(verified) : len(results) - len(surveys)]
    rows = large_key_rows(
        keys,
        results[len(results) - len(surveys) :],
        setting=setting,
        checks=checks,
        jobs=jobs,
        grain=limits.grain,
    )
    tables = [table for table in of_small if not isinstance(table, Failure)]
    found_rows = [row for table in tables for row in table.to_pylist()] + list(rows)
    failures = {file.path: found for file, found in outlines.items()}
    failures |= {task.file.path: found for task, found in zip(verified, results, strict=False)}
    failures |= {
        task.file.path: found
        for task, found in zip(small, of_small, strict=True)
        if isinstance(found, Failure)
    }
    return _table(outlines, failures, found_rows)


def large_keys_of(file: SealedFile, stretches: Sequence[Stretch], limits: Limits) -> list[LargeKey]:
    """The keys of a file that are too large to be judged as a whole."""
    return [
        LargeKey(name=key, pieces=_pieces(file, mine))
        for key, mine in _by_key(stretches).items()
        if sum(stretch.count for stretch in mine) > limits.key_rows
    ]


def _by_key(stretches: Sequence[Stretch]) -> Mapping[str, tuple[Stretch, ...]]:
    """The stretches of each key, which follow each other."""
    return {key: tuple(mine) for key, mine in groupby(stretches, key=lambda stretch: stretch.key)}


def _pieces(file: SealedFile, stretches: Sequence[Stretch]) -> tuple[Piece, ...]:
    first_rows = accumulate((stretch.count for stretch in stretches), initial=0)
    return tuple(
        Piece(file=file, stretch=stretch, first_row=first)
        for stretch, first in zip(stretches, first_rows, strict=False)
    )


def _table(
    outlines: Mapping[SealedFile, tuple[Stretch, ...] | Failure],
    failures: Mapping[str, object],
    found_rows: Sequence[dict[str, Any]],
) -> pa.Table:
    """All rows of the files that could be read and are what was sealed, and one row a file."""
    rows: list[dict[str, Any]] = []
    for file, stretches in outlines.items():
        failure = failures[file.path]
        reason = failure.reason if isinstance(failure, Failure) else None
        mine = [] if reason else [row for row in found_rows if row["path"] == file.path]
        count = 0 if isinstance(stretches, Failure) else sum(one.count for one in stretches)
        seconds = sum(row["seconds"] for row in mine)
        rows += mine
        rows.append(
            {"path": file.path, "record_count": count, "unknown": reason, "seconds": seconds}
        )
    return findings_table(rows)
