"""Large keys on Spark: files are verified once, keys judged in segments, crashes are answers."""

import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from histories import History
from judging import setting_of

from fencepost.checkers.anomaly import Found
from fencepost.checkers.catalogue import KEY_CHECKS
from fencepost.checkers.data_plane.key_log import KeyLog
from fencepost.checkers.data_plane.large.files import Limits
from fencepost.checkers.data_plane.large.survey import Grain
from fencepost.checkers.data_plane.passes import RecordsPass, records_pass
from fencepost.checkers.runner.tables import SealedFile
from fencepost.checkers.runner.tasks import TaskSession
from fencepost.generators.draft import LIES, HistoryRecipe
from fencepost.generators.kafka import SyntheticRun, synthetic_history

_LIMITS = Limits(key_rows=1000, grain=Grain(block_offsets=16, segment_rows=1000))


def _files(made: SyntheticRun, directory: Path) -> list[SealedFile]:
    """All keys in one file, and one file without rows."""
    files = []
    for name, table in (("full", made.records), ("empty", made.records.slice(0, 0))):
        path = directory / name
        pq.write_table(table, path, row_group_size=700, store_schema=False)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        files.append(SealedFile(path=str(path), digest=digest))
    return files


def _passed(
    tasks: TaskSession,
    made: SyntheticRun,
    files: list[SealedFile],
    limits: Limits,
    **options: Any,
) -> RecordsPass:
    setting = setting_of(History(operations=made.operations, records=made.records))
    checks = options.get("checks", KEY_CHECKS)
    return records_pass(tasks, files, setting=setting, checks=checks, budget_s=300, limits=limits)


def _rows(found: RecordsPass) -> list[dict[str, Any]]:
    table = found.findings.drop_columns(["seconds"])
    return table.sort_by(
        [("path", "ascending"), ("key", "ascending"), ("check", "ascending")]
    ).to_pylist()


def _unequal(seed: int) -> SyntheticRun:
    """A history of a large key and of small ones, with every lie that leaves keys comparable."""
    lies = tuple(name for name in LIES if name in KEY_CHECKS)
    return synthetic_history(
        HistoryRecipe(sends=2000, keys=3, lies=lies, crash_rate=0.05, seed=seed)
    )


@pytest.mark.spark
def test_segments_on_spark_answer_as_whole_keys_do(tmp_path: Path, tasks: TaskSession) -> None:
    made = _unequal(seed=3)
    files = _files(made, tmp_path)
    found = _passed(tasks, made, files, _LIMITS)
    assert not found.died
    assert _rows(found) == _rows(_passed(tasks, made, files, Limits()))
    most = max(Counter(made.records["key"].to_pylist()).values())
    some = replace(_LIMITS, key_rows=most - 1)
    assert _rows(_passed(tasks, made, files, some)) == _rows(found)


def test_a_large_file_that_is_not_what_was_sealed_has_no_findings(
    tmp_path: Path, tasks: TaskSession
) -> None:
    made = _unequal(seed=3)
    full, empty = _files(made, tmp_path)
    found = _passed(tasks, made, [replace(full, digest="0" * 64), empty], _LIMITS)
    rows = [row for row in _rows(found) if row["path"] == full.path]
    (row,) = rows
    assert "is not what was sealed" in row["unknown"]


def test_a_kernel_that_crashes_in_segments_is_unknown_and_the_others_answer(
    tmp_path: Path, tasks: TaskSession
) -> None:
    def crash(_: KeyLog) -> Found:
        raise ZeroDivisionError("no luck")

    made = _unequal(seed=3)
    full, _ = _files(made, tmp_path)
    found = _rows(
        _passed(
            tasks,
            made,
            [full],
            _LIMITS,
            checks={**KEY_CHECKS, "vanished": replace(KEY_CHECKS["vanished"], kernel=crash)},
        )
    )
    usual = _rows(_passed(tasks, made, [full], _LIMITS))
    crashed = [row for row in found if row["check"] == "vanished"]
    assert len(crashed) == made.recipe.keys
    assert all("ZeroDivisionError: no luck" in row["unknown"] for row in crashed)
    assert [row for row in found if row["check"] != "vanished"] == [
        row for row in usual if row["check"] != "vanished"
    ]
