"""A key judged in segments gets the answers of the whole key: counts, proofs, order and doubts."""

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from histories import History
from hypothesis import given, settings
from hypothesis import strategies as st
from judging import setting_of
from segment_judging import HereJobs, rows_in_segments
from small_histories import KEY, histories

from checkers.data_plane.answers import answers_of, judged_rows
from checkers.data_plane.checks import CHECKS, KEY_ASSUMPTIONS
from checkers.kernels.key_log import Setting, key_log
from checkers.kernels.key_survey import Grain
from checkers.synthetic import LIES, Recipe, synthetic_history

Row = dict[str, Any]

_FINE = Grain(block_offsets=1, segment_rows=3)


def _whole(records: pa.Table, setting: Setting) -> list[Row]:
    """FINDINGS of every key, judged as a whole, without seconds."""
    rows: list[Row] = []
    for key in dict.fromkeys(records["key"].to_pylist()):
        mine = records.filter(pa.compute.equal(records["key"], key))
        answers = answers_of(key_log(key, mine, setting), KEY_ASSUMPTIONS | CHECKS)
        rows += [row | {"key": key} for row in judged_rows(key, tuple(CHECKS), answers)]
    return [{name: row[name] for name in row if name != "seconds"} for row in rows]


def _cut(records: pa.Table, setting: Setting, **options: Any) -> list[Row]:
    with tempfile.TemporaryDirectory() as scratch:
        return rows_in_segments(records, setting, Path(scratch) / "bucket", **options)


@settings(max_examples=150)
@given(
    past=histories(),
    idempotent=st.booleans(),
    consume=st.sampled_from(["assign", "subscribe", "both"]),
    piece_rows=st.integers(1, 7),
    block_offsets=st.integers(1, 4),
)
def test_segments_of_three_rows_answer_as_the_whole_key_does(
    past: History,
    idempotent: bool,  # noqa: FBT001 - hypothesis gives it by name
    consume: str,
    piece_rows: int,
    block_offsets: int,
) -> None:
    setting = setting_of(past, idempotent=idempotent, consume=consume)
    records = past.of_key(KEY)
    grain = Grain(block_offsets=block_offsets, segment_rows=3)
    found = _cut(records, setting, piece_rows=piece_rows, grain=grain)
    assert found == _whole(records, setting)


@pytest.mark.parametrize("lie", LIES)
def test_every_lie_is_found_in_segments_as_in_the_whole_key(lie: str) -> None:
    recipe = Recipe(sends=600, keys=2, lies=(lie,), crash_rate=0.1, seed=7)
    made = synthetic_history(recipe)
    past = History(operations=made.operations, records=made.records)
    grain = Grain(block_offsets=8, segment_rows=150)
    setting = setting_of(past)
    found = _cut(made.records, setting, piece_rows=97, grain=grain)
    assert found == _whole(made.records, setting)
    assert {row["check"] for row in found if row["never_count"]} == made.raises


def test_without_shared_values_two_jobs_judge_a_key() -> None:
    made = synthetic_history(Recipe(sends=600, keys=1, crash_rate=0.0))
    jobs = HereJobs()
    past = History(operations=made.operations, records=made.records)
    _cut(
        made.records,
        setting_of(past),
        piece_rows=100,
        grain=Grain(block_offsets=8, segment_rows=150),
        jobs=jobs,
    )
    assert (jobs.exchange_count, jobs.job_count) == (0, 2)
