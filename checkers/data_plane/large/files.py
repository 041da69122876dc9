"""Files with large keys: these keys are judged in segments, the other keys as usual.

A file is verified once, by a task of its own, while others survey its keys; until it is, nothing
that was found in it counts. Its other keys, which are small, share one more task.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from typing import Any, Final

import pyarrow as pa

from fencepost.checkers.data_plane.findings import key_findings
from fencepost.checkers.data_plane.key_check import KeyCheck
from fencepost.checkers.data_plane.large.jobs import Jobs
from fencepost.checkers.data_plane.large.keys import LargeKey, large_key_rows, surveys_wanted
from fencepost.checkers.data_plane.large.survey import Grain
from fencepost.checkers.data_plane.large.tasks import KeyPiece, SurveyPiece
from fencepost.checkers.finding_rows import findings_table
from fencepost.checkers.rows import COLUMNS
from fencepost.checkers.runner.table_pieces import Stretch, outline, some_keys_in, verify
from fencepost.checkers.runner.tables import SealedFile
from fencepost.checkers.setting import Setting

KEY_ROWS_MAX: Final = 1 << 20
"""Rows of a key that is judged as a whole: some 135 bytes each in a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most that a task may hold."""

    key_rows: int = KEY_ROWS_MAX
    grain: Grain = field(default_factory=Grain)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outline:
    """The task that finds where the rows of each key lie in a file."""

    file: SealedFile

    def __call__(self) -> tuple[Stretch, ...]:
        """See the class."""
        return outline(self.file)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verified:
    """The task that verifies that a file is the one that was sealed."""

    file: SealedFile

    def __call__(self) -> None:
        """See the class."""
        verify(self.file)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SmallKeys:
    """FINDINGS of keys that are judged as a whole."""

    file: SealedFile
    stretches: tuple[Stretch, ...]
    setting: Setting
    checks: Mapping[str, KeyCheck]

    def __call__(self) -> pa.Table:
        """See the class."""
        return pa.concat_tables(
            key_findings(self.file, key, records, setting=self.setting, checks=self.checks)
            for key, records in some_keys_in(self.file, self.stretches, COLUMNS)
        )


def large_file_findings(
    files: Sequence[SealedFile],
    *,
    setting: Setting,
    checks: Mapping[str, KeyCheck],
    jobs: Jobs,
    limits: Limits,
) -> pa.Table:
    """Return FINDINGS of these files of `records`: a row a key and check, and one a file."""
    outlines = jobs.answers([_Outline(file=file) for file in files])
    told = {one.task.file: one.content for one in outlines if one.content is not None}
    keys = [key for file, found in told.items() for key in large_keys_of(file, found, limits)]
    large = {key.name for key in keys}
    small = [
        _SmallKeys(file=file, stretches=rest, setting=setting, checks=checks)
        for file, found in told.items()
        if (rest := tuple(stretch for stretch in found if stretch.key not in large))
    ]
    tasks: list[Callable[[], Any]] = [_Verified(file=file) for file in told]
    answers = jobs.answers([*tasks, *small, *surveys_wanted(keys, setting, limits.grain)])
    surveys = [one for one in answers if isinstance(one.task, SurveyPiece)]
    rows = [
        row
        for one in answers
        if isinstance(one.task, _SmallKeys) and one.content is not None
        for row in one.content.to_pylist()
    ]
    rows += large_key_rows(
        keys, surveys, setting=setting, checks=checks, jobs=jobs, grain=limits.grain
    )
    failures = {
        one.task.file.path: one.failure
        for one in (*outlines, *answers)
        if one.failure and not isinstance(one.task, SurveyPiece)
    }
    return _table(files, told, failures, rows)


def large_keys_of(file: SealedFile, stretches: Sequence[Stretch], limits: Limits) -> list[LargeKey]:
    """Return the keys of a file that are too large to be judged as a whole."""
    return [
        LargeKey(name=key, pieces=_pieces(file, mine))
        for key, mine in _by_key(stretches).items()
        if sum(stretch.count for stretch in mine) > limits.key_rows
    ]


def _by_key(stretches: Sequence[Stretch]) -> Mapping[str, tuple[Stretch, ...]]:
    """Return the stretches of each key, which follow each other."""
    return {key: tuple(mine) for key, mine in groupby(stretches, key=lambda stretch: stretch.key)}


def _pieces(file: SealedFile, stretches: Sequence[Stretch]) -> tuple[KeyPiece, ...]:
    first_rows = accumulate((stretch.count for stretch in stretches), initial=0)
    return tuple(
        KeyPiece(file=file, stretch=stretch, first_row=first)
        for stretch, first in zip(stretches, first_rows, strict=False)
    )


def _table(
    files: Iterable[SealedFile],
    outlines: Mapping[SealedFile, tuple[Stretch, ...]],
    failures: Mapping[str, str],
    found_rows: Sequence[dict[str, Any]],
) -> pa.Table:
    """Return all rows of the files that could be read and verified, and one row a file."""
    rows: list[dict[str, Any]] = []
    for file in files:
        reason = failures.get(file.path)
        mine = [] if reason else [row for row in found_rows if row["path"] == file.path]
        own = {"path": file.path, "unknown": reason, "seconds": sum(one["seconds"] for one in mine)}
        count = sum(stretch.count for stretch in outlines.get(file, ()))
        rows += [*mine, own | {"record_count": count}]
    return findings_table(rows)
