"""Runs that are named by a URI: read where they lie, and judged here."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fencepost.checkers.runner.mirror import mirrored
from fencepost.checkers.runner.storage import file_size, is_uri, local_path, sha256
from fencepost.checkers.runner.tables import byte_count, record_files, row_count, rows_in
from fencepost.generators.draft import HistoryRecipe
from fencepost.generators.kafka import write_synthetic_run
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import read_manifest
from fencepost.history.reader import load_table
from fencepost.history.run_directory import RunDirectory

_RECIPE = HistoryRecipe(sends=200, keys=3)


def _no_session() -> SparkSession:
    raise AssertionError("pyarrow knows this file system: no session is needed")


def _made(root: Path) -> RunDirectory:
    run = RunDirectory(root)
    write_synthetic_run(run, _RECIPE)
    (root / "nodes" / "broker-1").mkdir(parents=True)
    (root / "nodes" / "broker-1" / "server.log").write_text("much")
    return run


def test_a_file_uri_is_a_path_and_others_are_not() -> None:
    assert local_path("file:///a%20b/c") == "/a b/c"
    assert local_path("file://localhost/a") == "/a"
    assert local_path("file://elsewhere/a") is None
    assert local_path("hdfs://name/a") is None
    assert is_uri("s3a://bucket/run")
    assert not is_uri("results/smoke")


def test_a_copy_has_the_sealed_history_and_no_more_than_is_needed(tmp_path: Path) -> None:
    run = _made(tmp_path / "far" / "20260101T000000Z")
    copy = mirrored(
        run.root.as_uri(), results=tmp_path / "results", session=_no_session, elsewhere=False
    )
    assert copy.root == tmp_path / "results" / "synthetic" / run.root.name
    assert copy.source == ""
    for name in ("operations", "records", "faults"):
        assert load_table(copy, name).equals(load_table(run, name))
    assert not copy.nodes.exists()


def test_tasks_elsewhere_read_the_run_where_it_lies(tmp_path: Path) -> None:
    run = _made(tmp_path / "far" / "one")
    copy = mirrored(
        f"{run.root.as_uri()}/", results=tmp_path / "results", session=_no_session, elsewhere=True
    )
    files = record_files(copy, read_manifest(copy.manifest_path))
    assert {file.path for file in files} == {
        path.as_uri() for path in (run.history / "records").iterdir()
    }
    read = sum(rows_in(file, "records").num_rows for file in files)
    assert (
        read == load_table(run, "records").num_rows == sum(row_count(file) or 0 for file in files)
    )
    path = files[0].path
    assert byte_count(files[0]) == file_size(path) == len(Path(local_path(path) or "").read_bytes())
    assert sha256(path) == sha256(local_path(path) or "")


def test_a_run_by_a_relative_path_is_read_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = _made(tmp_path / "results" / "one")
    monkeypatch.chdir(tmp_path)
    run = RunDirectory(Path("results/one"))
    files = record_files(run, read_manifest(run.manifest_path))
    for file in files:
        assert byte_count(file) == (tmp_path / file.path).stat().st_size
        assert sha256(file.path) == sha256(str(tmp_path / file.path))
    read = sum(rows_in(file, "records").num_rows for file in files)
    assert read == load_table(made, "records").num_rows


def test_a_second_copy_takes_the_place_of_the_same_run_only(tmp_path: Path) -> None:
    first = _made(tmp_path / "far" / "one")
    results = tmp_path / "results"
    copy = mirrored(first.root.as_uri(), results=results, session=_no_session, elsewhere=False)
    again = mirrored(first.root.as_uri(), results=results, session=_no_session, elsewhere=False)
    assert copy == again
    other = RunDirectory(tmp_path / "farther" / "one")
    write_synthetic_run(other, HistoryRecipe(sends=200, seed=7))
    with pytest.raises(HarnessError, match="is not a copy of file://"):
        mirrored(other.root.as_uri(), results=results, session=_no_session, elsewhere=False)
    assert load_table(copy, "records").equals(load_table(first, "records"))


def test_a_run_that_is_not_sealed_is_refused(tmp_path: Path) -> None:
    run = _made(tmp_path / "one")
    run.history.rename(tmp_path / "gone")
    with pytest.raises(HarnessError, match="it is not sealed"):
        mirrored(run.root.as_uri(), results=tmp_path / "x", session=_no_session, elsewhere=False)


def test_a_run_that_is_not_there_is_named(tmp_path: Path) -> None:
    uri = (tmp_path / "nothing").as_uri()
    with pytest.raises(HarnessError, match=f"cannot read the run {uri}: "):
        mirrored(uri, results=tmp_path / "x", session=_no_session, elsewhere=False)
    assert not list((tmp_path / "x").iterdir())
