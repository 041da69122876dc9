"""Tables written directly, and what the reader refuses."""

import random
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recording_model import KEYS, Model, Producer
from sealed_runs import sealed_files, sealed_table

from fencepost.history.failure import HarnessError
from fencepost.history.operation import Outcome
from fencepost.history.reader import load_table
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import (
    FAULTS,
    LATER_TABLES,
    OPERATIONS,
    RECORD_BUCKET_COUNT,
    RECORDS,
    RUN_TABLES,
    SAMPLES,
)
from fencepost.history.seal import seal
from fencepost.history.writer import bucket_file, bucket_of, write_tables


def sealed(root: Path) -> tuple[RunDirectory, Model]:
    run = RunDirectory(root)
    run.raw.mkdir(parents=True)
    model = Model()
    producer = Producer(run.raw, model, process=1, slot_count=9)
    values = producer.invoke(list(range(len(KEYS))) * 4, 5)
    producer.complete([(value, 9, Outcome.FAIL, -184) for value in values[::3]], 8)
    producer.recorder.close()
    seal(run)
    return run, model


def test_tables_written_directly_are_those_that_a_seal_writes(tmp_path: Path) -> None:
    run, model = sealed(tmp_path / "sealed")
    shuffled = model.record_rows()
    random.Random(0).shuffle(shuffled)
    direct = RunDirectory(tmp_path / "direct")
    write_tables(
        direct,
        operations=pa.Table.from_pylist(model.operation_rows(), schema=OPERATIONS),
        records=pa.Table.from_pylist(shuffled, schema=RECORDS),
        faults=FAULTS.empty_table(),
    )
    for name in ("operations", "records", "faults", "samples"):
        assert sealed_table(direct, name).equals(sealed_table(run, name))
        assert [path.name for path in sealed_files(direct, name)] == [
            path.name for path in sealed_files(run, name)
        ]


def test_a_column_that_came_later_is_null_in_older_runs(tmp_path: Path) -> None:
    run, _ = sealed(tmp_path / "sealed")
    path = run.table_path("faults")
    rows = [{"index": 0, "fault": "kill", "targets": ["broker-1"], "begin_ns": 1}]
    older = pa.Table.from_pylist(rows, schema=FAULTS).drop_columns(["kind"])
    pq.write_table(older, path)
    assert sealed_table(run, "faults").to_pylist()[0]["kind"] is None
    pq.write_table(older.drop_columns(["evidence"]), path)
    with pytest.raises(HarnessError, match="does not have the schema of faults"):
        sealed_table(run, "faults")


def test_a_history_is_never_written_over(tmp_path: Path) -> None:
    run, _ = sealed(tmp_path / "sealed")
    with pytest.raises(HarnessError, match="a sealed history is not written again"):
        write_tables(run, operations=OPERATIONS.empty_table(), records=RECORDS.empty_table())


def test_a_table_of_another_schema_is_a_broken_assumption(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="records"):
        write_tables(
            RunDirectory(tmp_path),
            operations=OPERATIONS.empty_table(),
            records=SAMPLES.empty_table(),
        )


def test_a_key_has_one_bucket_for_ever() -> None:
    assert [bucket_of(key) for key in ("t-0", "t-1", "orders-17")] == [13, 11, 10]
    assert {bucket_of(f"t-{number}") for number in range(500)} == set(range(RECORD_BUCKET_COUNT))


def test_records_are_one_file_a_bucket(tmp_path: Path) -> None:
    run, _ = sealed(tmp_path / "sealed")
    expected = tuple(bucket_file(run.history, bucket) for bucket in range(RECORD_BUCKET_COUNT))
    assert sealed_files(run, "records") == expected


def test_a_table_that_is_missing_is_named(tmp_path: Path) -> None:
    run, _ = sealed(tmp_path / "sealed")
    (run.history / "faults.parquet").unlink()
    shutil.rmtree(run.history / "operations")
    for name in ("faults", "operations"):
        with pytest.raises(HarnessError, match=f"has no table {name}"):
            sealed_table(run, name)


def test_a_file_that_is_no_table_is_named(tmp_path: Path) -> None:
    run, _ = sealed(tmp_path / "sealed")
    path = run.history / "samples.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(HarnessError, match=r"cannot read .*samples\.parquet"):
        sealed_table(run, "samples")


def test_a_table_of_another_schema_is_named_with_both_sides(tmp_path: Path) -> None:
    run, _ = sealed(tmp_path / "sealed")
    path = run.history / "samples.parquet"
    pq.write_table(pa.table({"time_ns": [1]}), path)
    with pytest.raises(HarnessError, match=r"expected .*metric.*; found .*time_ns: int64$"):
        sealed_table(run, "samples")


@pytest.mark.parametrize("name", LATER_TABLES)
def test_a_table_that_a_run_is_too_old_for_is_empty(tmp_path: Path, name: str) -> None:
    run, _ = sealed(tmp_path)
    run.table_path(name).unlink()
    assert load_table(run, name).equals(RUN_TABLES[name].empty_table())
    run.table_path("faults").unlink()
    with pytest.raises(HarnessError, match="has no table faults"):
        load_table(run, "faults")
