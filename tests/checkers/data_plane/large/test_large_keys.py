"""A key judged in segments gets the answers of the whole key: counts, proofs, order and doubts."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from histories import History
from hypothesis import given, settings
from hypothesis import strategies as st
from judging import setting_of
from numpy.typing import NDArray
from segment_judging import HereTasks, rows_in_segments
from small_histories import KEY, histories

from fencepost.checkers.catalogue import KEY_CHECKS
from fencepost.checkers.data_plane.answers import answers_of, judged_rows
from fencepost.checkers.data_plane.key_assumptions import KEY_ASSUMPTIONS
from fencepost.checkers.data_plane.key_log import key_log
from fencepost.checkers.data_plane.large.survey import Grain
from fencepost.checkers.proof import Proof
from fencepost.checkers.setting import Setting
from fencepost.generators.draft import LIES, HistoryRecipe
from fencepost.generators.kafka import manifest_of, synthetic_history
from fencepost.history.manifest import Readers

pytestmark = pytest.mark.slow

Row = dict[str, Any]

_FINE = Grain(block_offsets=1, segment_rows=3)


def _whole(records: pa.Table, setting: Setting) -> list[Row]:
    """FINDINGS of every key, judged as a whole, without seconds."""
    rows: list[Row] = []
    for key in dict.fromkeys(records["key"].to_pylist()):
        mine = records.filter(pc.equal(records["key"], key))
        answers = answers_of(key_log(key, mine, setting), KEY_ASSUMPTIONS | KEY_CHECKS)
        rows += [row | {"key": key} for row in judged_rows(key, KEY_CHECKS, answers)]
    return [{name: row[name] for name in row if name != "seconds"} for row in rows]


READERS = tuple(
    Readers(name=str(processes), processes=processes, stride=4, poll_max=1)
    for processes in ((0, 1), (2,), (3,))
)


def _cut(records: pa.Table, setting: Setting, **options: Any) -> list[Row]:
    with tempfile.TemporaryDirectory() as scratch:
        return rows_in_segments(records, setting, Path(scratch) / "bucket", **options)


@settings(max_examples=3 * settings().max_examples // 2)
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
    setting = setting_of(past, idempotent=idempotent, consume=consume, readers=READERS)
    records = past.of_key(KEY)
    grain = Grain(block_offsets=block_offsets, segment_rows=3)
    found = _cut(records, setting, piece_rows=piece_rows, grain=grain)
    assert found == _whole(records, setting)


@pytest.mark.parametrize("lie", LIES)
def test_every_lie_is_found_in_segments_as_in_the_whole_key(lie: str) -> None:
    recipe = HistoryRecipe(sends=300, keys=2, lies=(lie,), crash_rate=0.1, seed=7)
    made = synthetic_history(recipe)
    past = History(operations=made.operations, records=made.records)
    grain = Grain(block_offsets=8, segment_rows=150)
    promises = manifest_of(recipe, end_ns=0).promises
    assert promises is not None
    setting = setting_of(past, readers=promises.readers)
    found = _cut(made.records, setting, piece_rows=97, grain=grain)
    assert found == _whole(made.records, setting)
    assert {row["check"] for row in found if row["never_count"]} == made.raises


def test_without_shared_values_two_jobs_judge_a_key() -> None:
    made = synthetic_history(HistoryRecipe(sends=600, keys=1, crash_rate=0.0))
    session = HereTasks()
    past = History(operations=made.operations, records=made.records)
    _cut(
        made.records,
        setting_of(past),
        piece_rows=100,
        grain=Grain(block_offsets=8, segment_rows=150),
        session=session,
    )
    assert (session.exchange_count, session.job_count) == (0, 2)


def _made(recipe: HistoryRecipe) -> tuple[pa.Table, Setting]:
    made = synthetic_history(recipe)
    past = History(operations=made.operations, records=made.records)
    return made.records, setting_of(past)


def _with_values(records: pa.Table, values: NDArray[np.int64]) -> pa.Table:
    place = records.column_names.index("value")
    return records.set_column(place, records.schema.field("value"), pa.array(values))


_COARSE = Grain(block_offsets=8, segment_rows=150)


def test_a_value_that_stands_in_two_segments_is_exchanged() -> None:
    records, setting = _made(HistoryRecipe(sends=600, keys=1, crash_rate=0.0, lies=("duplicate",)))
    session = HereTasks()
    found = _cut(records, setting, piece_rows=100, grain=_COARSE, session=session)
    assert session.exchange_count == 1
    assert [row["check"] for row in found if row["never_count"]] == ["duplicate"]


def test_values_without_any_order_are_all_exchanged_and_judged_the_same() -> None:
    lies = ("lost-write", "duplicate", "vanished")
    records, setting = _made(HistoryRecipe(sends=600, keys=1, crash_rate=0.1, lies=lies))
    # Odd multiples of different numbers differ, modulo a power of two.
    mixed = records["value"].to_numpy() * np.int64(0x9E3779B97F4A7C1)
    scrambled = _with_values(records, mixed)
    session = HereTasks()
    found = _cut(scrambled, setting, piece_rows=100, grain=_COARSE, session=session)
    assert session.exchange_count == 1
    assert found == _whole(scrambled, setting)
    assert {row["check"] for row in found if row["never_count"]} >= set(lies)


def test_a_step_between_segments_is_measured_in_the_whole_key() -> None:
    """The reader of this history goes from the first segment to the last, over the others."""
    records, setting = _made(
        HistoryRecipe(sends=600, keys=1, consumers=1, producers=1, crash_rate=0.0)
    )
    polls = pc.equal(records["f"], "poll")
    offset = records["offset"].fill_null(0)
    middle = pc.and_(pc.greater(offset, 50), pc.less(offset, 550))
    skipping = records.filter(pc.invert(pc.and_(polls, middle)))
    found = _cut(skipping, setting, piece_rows=100, grain=_COARSE)
    assert found == _whole(skipping, setting)
    proofs = [Proof.of_columns(one) for row in found for one in row["anomalies"]]
    assert any(400 < int(proof.fact("delta")) < 600 for proof in proofs)


def test_acknowledgements_that_were_taken_back_are_decided_by_the_reads_of_all_segments() -> None:
    """Info sends that know their offset, as those of a transaction of unknown fate do."""
    records, setting = _made(HistoryRecipe(sends=600, keys=1, crash_rate=0.0))
    unsure = pc.and_(
        pc.equal(records["f"], "send"), pc.equal(pc.bit_wise_and(records["value"], 3), 0)
    )
    outcome = pc.if_else(unsure, pa.scalar("info"), records["outcome"])
    place = records.column_names.index("outcome")
    changed = records.set_column(place, records.schema.field("outcome"), outcome)
    session = HereTasks()
    found = _cut(changed, setting, piece_rows=100, grain=_COARSE, session=session)
    assert session.job_count == 3
    assert found == _whole(changed, setting)


def test_rows_in_another_order_than_that_of_the_history_are_not_judged() -> None:
    records, setting = _made(HistoryRecipe(sends=200, keys=1))
    shuffled = records.sort_by([("value", "descending")])
    found = _cut(shuffled, setting, piece_rows=100, grain=_COARSE)
    assert len(found) == len(KEY_ASSUMPTIONS | KEY_CHECKS)
    assert all("t-0: records are not sorted by operation" in row["unknown"] for row in found)
