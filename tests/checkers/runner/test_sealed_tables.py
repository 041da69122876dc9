"""What a task reads of a sealed file, and what it refuses."""

import hashlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fencepost.checkers.catalogue import KEY_CHECKS
from fencepost.checkers.data_plane.findings import findings_in
from fencepost.checkers.data_plane.key_log import key_log
from fencepost.checkers.rows import COLUMNS
from fencepost.checkers.runner.tables import SealedFile, keys_in, operations_in, rows_in
from fencepost.checkers.setting import Setting
from fencepost.generators.draft import HistoryRecipe
from fencepost.generators.kafka import synthetic_history
from fencepost.history.failure import HarnessError
from fencepost.history.schema import LATER_COLUMNS, TABLES

MADE = synthetic_history(HistoryRecipe(sends=400, keys=3))


def _file(path: Path, table: pa.Table, *, row_group_size: int = 1 << 20) -> SealedFile:
    pq.write_table(table, path, row_group_size=row_group_size, store_schema=False)
    return SealedFile(path=str(path), digest=hashlib.sha256(path.read_bytes()).hexdigest())


@pytest.mark.parametrize("row_group_size", [1 << 20, 100, 7])
def test_a_key_comes_whole_however_row_groups_cut_it(tmp_path: Path, row_group_size: int) -> None:
    file = _file(tmp_path / "bucket", MADE.records, row_group_size=row_group_size)
    keys = dict(keys_in(file, COLUMNS))
    assert list(keys) == ["t-0", "t-1", "t-2"]
    assert sum(rows.num_rows for rows in keys.values()) == MADE.records.num_rows
    log = key_log("t-1", keys["t-1"], Setting())
    whole = MADE.records.filter(pa.compute.equal(MADE.records["key"], "t-1"))
    assert log.sends.value.tolist() == key_log("t-1", whole, Setting()).sends.value.tolist()


def test_an_empty_bucket_has_no_keys(tmp_path: Path) -> None:
    file = _file(tmp_path / "bucket", MADE.records.slice(0, 0))
    assert not list(keys_in(file, COLUMNS))


def test_rows_in_another_order_make_the_same_key_log(tmp_path: Path) -> None:
    shuffled = MADE.records.sort_by([("key", "ascending"), ("value", "descending")])
    logs = [
        key_log("t-0", dict(keys_in(_file(tmp_path / name, table), COLUMNS))["t-0"], Setting())
        for name, table in (("sorted", MADE.records), ("shuffled", shuffled))
    ]
    assert logs[0].reads.operation.tolist() == logs[1].reads.operation.tolist()
    assert logs[0].log.value.tolist() == logs[1].log.value.tolist()


def test_a_file_that_is_not_sorted_by_key_is_refused(tmp_path: Path) -> None:
    twice = pa.concat_tables([MADE.records, MADE.records.slice(0, 1)])
    with pytest.raises(HarnessError, match="not sorted by key: t-0 comes twice"):
        list(keys_in(_file(tmp_path / "bucket", twice), COLUMNS))


def test_a_file_with_another_schema_is_refused(tmp_path: Path) -> None:
    file = _file(tmp_path / "bucket", MADE.records.drop_columns(["session"]))
    with pytest.raises(HarnessError, match="does not have the schema of records"):
        list(keys_in(file, COLUMNS))


@pytest.mark.parametrize("name", sorted(LATER_COLUMNS))
def test_columns_that_a_run_is_too_old_for_are_null(tmp_path: Path, name: str) -> None:
    whole = pa.Table.from_pylist([], schema=TABLES[name])
    old = whole.drop_columns(list(LATER_COLUMNS[name]))
    assert rows_in(_file(tmp_path / "old", old), name).schema == TABLES[name]
    torn = old.drop_columns([old.column_names[0]])
    with pytest.raises(HarnessError, match=f"does not have the schema of {name}"):
        rows_in(_file(tmp_path / "torn", torn), name)


def test_a_file_that_changed_since_it_was_sealed_is_refused(tmp_path: Path) -> None:
    sealed = _file(tmp_path / "part", MADE.operations)
    _file(tmp_path / "part", MADE.operations.slice(1))
    with pytest.raises(HarnessError, match="part is not what was sealed"):
        operations_in(sealed, ["index"])


def test_a_file_that_is_missing_or_torn_is_refused_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "bucket"
    for content in (None, b"", b"PAR1"):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(HarnessError, match=str(path)):
            list(keys_in(SealedFile(path=str(path), digest=""), COLUMNS))


def test_a_file_that_cannot_be_read_answers_that_it_cannot(tmp_path: Path) -> None:
    missing = SealedFile(path=str(tmp_path / "bucket"), digest="")
    table = findings_in(missing, setting=Setting(), checks=KEY_CHECKS)
    (row,) = table.to_pylist()
    assert row["check"] is None
    assert missing.path in row["unknown"]


def test_a_word_that_is_no_outcome_leaves_its_key_unknown(tmp_path: Path) -> None:
    place = MADE.records.column_names.index("outcome")
    odd = MADE.records.set_column(
        place, MADE.records.schema.field("outcome"), pa.array(["odd"] * MADE.records.num_rows)
    )
    table = findings_in(_file(tmp_path / "bucket", odd), setting=Setting(), checks=KEY_CHECKS)
    rows = [row for row in table.to_pylist() if row["check"]]
    assert all("crashed on t-" in row["unknown"] for row in rows)
