"""Open histories as they are sealed: where the rows of a key lie, and what stands beside them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from manifests import MANIFEST
from sealed_runs import sealed_files, sealed_table

from fencepost.history import model_tables
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Manifest, Promises, read_manifest
from fencepost.history.model_tables import by_bucket, model_bucket_file
from fencepost.history.model_writer import write_model_history
from fencepost.history.models import Model
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import MODEL_OPERATIONS, RECORD_BUCKET_COUNT
from fencepost.history.seal import seal
from fencepost.history.table_file import TableFile
from fencepost.history.writer import bucket_of


def manifest(model: Model = Model.REGISTER) -> Manifest:
    return replace(
        MANIFEST, model=model.value, promises=Promises(idempotent=False, acks="", consume="assign")
    )


def rows(key: str, count: int, *, first: int = 0) -> pa.Table:
    index = np.arange(first, first + count)
    words = {"key": key, "f": "write", "outcome": "ok"}
    columns = {
        "index": pa.array(index),
        "process": pa.array(index % 7),
        "call_ns": pa.array(index * 10),
        "return_ns": pa.array(index * 10 + 9),
        "value": pa.array(index),
        **{name: pa.array([word] * count).dictionary_encode() for name, word in words.items()},
    }
    arrays = [columns.get(field.name, pa.nulls(count, field.type)) for field in MODEL_OPERATIONS]
    fields = [
        field.with_type(array.type) for field, array in zip(MODEL_OPERATIONS, arrays, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def groups(run: RunDirectory) -> list[list[tuple[str, int]]]:
    """Of each row group of each file, in order: its keys, each with its rows."""
    found = []
    for path in sealed_files(run, "model_operations"):
        file = pq.ParquetFile(path)
        for number in range(file.num_row_groups):
            keys = file.read_row_group(number, columns=["key"])["key"].to_pylist()
            found.append([(key, keys.count(key)) for key in dict.fromkeys(keys)])
    return found


def test_every_key_is_whole_in_the_file_of_its_bucket_and_by_index(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    keys = [f"k{number}" for number in range(40)]
    write_model_history(
        run, manifest(), ((key, [rows(key, 3), rows(key, 4, first=3)]) for key in keys)
    )
    assert len(sealed_files(run, "model_operations")) == RECORD_BUCKET_COUNT
    for bucket in range(RECORD_BUCKET_COUNT):
        table = pq.read_table(model_bucket_file(run.history, Model.REGISTER, bucket))
        expected = [key for key in keys if bucket_of(key) == bucket]
        assert table["key"].to_pylist() == [key for key in expected for _ in range(7)]
        assert table["index"].to_pylist() == list(range(7)) * len(expected)


def test_a_row_group_holds_one_key_or_several_whole_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_tables, "_GROUP_ROWS", 100)
    monkeypatch.setattr("fencepost.history.table_file._ROW_GROUP_ROWS", 100)
    keys = [key for key in (f"k{number}" for number in range(200)) if bucket_of(key) == 3][:5]
    sizes = dict(zip(keys, (40, 250, 60, 30, 11), strict=True))
    run = RunDirectory(tmp_path / "run")
    write_model_history(
        run,
        manifest(),
        (
            (key, [rows(key, min(25, size - at), first=at) for at in range(0, size, 25)])
            for key, size in sizes.items()
        ),
    )
    first, large, third, fourth, fifth = keys
    assert groups(run) == [
        [(first, 40)],
        [(large, 100)],
        [(large, 100)],
        [(large, 50)],
        [(third, 60), (fourth, 30)],
        [(fifth, 11)],
    ]


def test_what_waits_in_memory_is_bounded_over_all_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_tables, "_WAITING_ROWS_MAX", 20)
    files = []
    original = TableFile.add

    def watched(self: TableFile, table: pa.Table) -> None:
        files.append(self)
        original(self, table)
        assert sum({id(file): file.waiting_rows for file in files}.values()) <= 20 + 7

    monkeypatch.setattr(TableFile, "add", watched)
    run = RunDirectory(tmp_path / "run")
    keys = [f"k{number}" for number in range(40)]
    write_model_history(run, manifest(), ((key, [rows(key, 7)]) for key in keys))
    assert sealed_table(run, "model_operations").num_rows == 280


def test_keys_that_come_bucket_by_bucket_wait_in_one_file_only() -> None:
    buckets = [bucket_of(key) for key in by_bucket(f"k{number}" for number in range(100))]
    assert buckets == sorted(buckets)


def test_the_manifest_has_the_end_and_the_digests_and_sealing_again_does_nothing(
    tmp_path: Path,
) -> None:
    run = RunDirectory(tmp_path / "run")
    write_model_history(run, manifest(), [("k", [rows("k", 5)])])
    written = read_manifest(run.manifest_path)
    assert written.end_ns == 49
    assert "history/faults.parquet" in written.digests
    assert written.tables == {"model_operations"}
    assert len(sealed_table(run, "samples")) == len(sealed_table(run, "faults")) == 0
    seal(run)
    assert read_manifest(run.manifest_path) == written


def test_what_its_source_raises_leaves_no_history(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")

    def keys() -> Iterator[tuple[str, list[pa.Table]]]:
        yield "k", [rows("k", 5)]
        raise HarnessError("line 6 is no operation")

    with pytest.raises(HarnessError, match="line 6"):
        write_model_history(run, manifest(), keys())
    assert list(run.root.iterdir()) == []


def test_a_history_of_a_model_is_never_written_over(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    write_model_history(run, manifest(), [])
    with pytest.raises(HarnessError, match="a sealed history is not written again"):
        write_model_history(run, manifest(), [])
