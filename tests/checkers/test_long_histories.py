"""A long history is a good one, of rounds that go on where the last one ended."""

from pathlib import Path

import pyarrow.compute as pc
import pytest
from histories import History
from judging import doubts, never, summary

from fencepost.generators.draft import HistoryRecipe
from fencepost.generators.long_histories import write_long_synthetic_run
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import read_manifest
from fencepost.history.reader import load_table
from fencepost.history.run_directory import RunDirectory

_RECIPE = HistoryRecipe(sends=1000, keys=3, crash_rate=0.05, batch=10)


def _written(tmp_path: Path) -> tuple[RunDirectory, int]:
    run = RunDirectory(tmp_path / "run")
    return run, write_long_synthetic_run(run, _RECIPE, round_sends=300)


def test_a_long_history_is_good_and_whole(tmp_path: Path) -> None:
    run, record_count = _written(tmp_path)
    past = History(operations=load_table(run, "operations"), records=load_table(run, "records"))
    assert past.records.num_rows == record_count
    assert pc.sum(past.operations["record_count"]).as_py() == record_count
    assert pc.sum(pc.equal(past.operations["f"], "send")).as_py() == 4 * 300
    assert not never(past)
    assert not doubts(past)
    sums = summary(past.operations, parts=3)
    assert not sums.gap
    assert not sums.overlap
    assert [read.key for read in sums.final_reads] == list(_RECIPE.key_names)


def test_its_files_are_sealed_with_their_digests_and_in_order(tmp_path: Path) -> None:
    run, _ = _written(tmp_path)
    digests = read_manifest(run.manifest_path).digests
    assert sum("records" in path for path in digests) == 16
    records = load_table(run, "records")
    for key in _RECIPE.key_names:
        mine = records.filter(pc.equal(records["key"], key))
        ordered = mine.sort_by([("operation", "ascending"), ("position", "ascending")])
        assert mine.equals(ordered)


def test_a_history_is_not_written_again(tmp_path: Path) -> None:
    run, _ = _written(tmp_path)
    with pytest.raises(HarnessError, match="is not written again"):
        write_long_synthetic_run(run, _RECIPE)
