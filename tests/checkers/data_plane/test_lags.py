"""D15: how long after a record was known a consumer still had not been given it."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from histories import History, history
from hypothesis import given
from hypothesis import strategies as st
from small_histories import KEY, histories

from fencepost.checkers.data_plane.lag import NO_LAG, Lags, figures_of, lags, lags_in
from fencepost.checkers.runner.tables import SealedFile
from fencepost.history.failure import HarnessError
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import RECORDS
from fencepost.history.writer import bucket_file, bucket_of, write_tables

Row = dict[str, int | str | None]

SENT = """
    p1 send t-0 v1 -> ok @0 in 0..1
    p1 send t-0 v2 -> ok @1 in 0..2
    p1 send t-0 v3 -> ok @2 in 0..30
    c1 poll -> t-0 [v1@0] in 5..6
"""


def in_pieces(*pieces: pa.Table) -> Callable[[Sequence[str]], Iterable[pa.Table]]:
    """No more than is asked for, as files are read."""
    return lambda columns: [piece.select(list(columns)) for piece in pieces]


def measured(pieces: Iterable[pa.Table]) -> Lags:
    found = lags(in_pieces(*pieces))
    assert found is not None
    return found


def greatest(text: str) -> int:
    return measured([history(text).of_key(KEY)]).max_ns


def test_a_poll_returns_what_had_been_known_when_it_was_called() -> None:
    assert greatest(SENT + "c1 poll -> t-0 [v2@1] in 50..51") == 48
    assert greatest(SENT + "c1 poll -> t-0 [v3@2] in 20..51") == 0
    assert greatest(SENT + "c1 poll -> t-0 [v3@2] in 50..51") == 20


def test_any_read_makes_a_record_known_and_those_before_it() -> None:
    read = "c2 poll -> t-0 [v3@2] in 8..9\n"
    assert greatest(SENT + read + "c1 poll -> t-0 [v3@2] in 50..51") == 41
    late = SENT.replace("0..2", "0..40")
    assert greatest(late + read + "c1 poll -> t-0 [v2@1] in 50..51") == 41


def test_a_crashed_send_is_not_known_by_itself() -> None:
    crashed = SENT.replace("v2 -> ok @1 in 0..2", "v2 -> info")
    assert greatest(crashed + "c1 poll -> t-0 [v2@1] in 50..51") == 20  # as record 3 was


def test_where_a_session_begins_and_what_a_crashed_poll_took_are_no_lags() -> None:
    assert greatest(SENT + "c1 poll -> t-0 s1 [v2@1] in 50..51") == 0
    assert greatest(SENT + "c2 poll -> t-0 [v2@1] in 50..51") == 0
    assert greatest(SENT + "c1 poll -> info t-0 [v2@1] in 50..51") == 0
    crashed = "c1 poll -> info t-0 [v2@1] in 31..32\n"
    assert greatest(SENT + crashed + "c1 poll -> t-0 [v3@2] in 50..51") == 20


def test_offsets_that_lie_too_far_apart_are_not_measured() -> None:
    far = history(f"p1 send t-0 v1 -> ok @0\np1 send t-0 v2 -> ok @{1 << 40}")
    assert lags(in_pieces(far.of_key(KEY))) is None
    assert lags(in_pieces(RECORDS.empty_table())) == Lags()


@given(histories(), st.lists(st.integers(0, 40), max_size=4))
def test_the_sweep_agrees_with_a_slow_look_at_every_poll_however_it_is_cut(
    past: History, cuts: list[int]
) -> None:
    rows = past.of_key(KEY)
    bounds = [0, *sorted(min(cut, rows.num_rows) for cut in cuts), rows.num_rows]
    pieces = [rows.slice(a, b - a) for a, b in pairwise(bounds)]
    expected = _slow(rows.to_pylist())
    found = measured(pieces)
    assert found.poll_count == len(expected)
    assert found.counts[NO_LAG] == expected.count(0)
    assert found.max_ns == max(expected, default=0)
    assert found == measured([rows])


def _slow(rows: list[Row]) -> list[int]:
    """The lag of each poll that has one to tell."""
    seen: dict[object, Row] = {}
    found = []
    for row in sorted(rows, key=lambda row: (_number(row, "operation"), _number(row, "position"))):
        poll = row["f"] == "poll" and row["outcome"] == "ok"
        if not poll or row["offset"] is None or row["return_ns"] is None:
            continue
        before = seen.get(row["process"])
        if before is not None and before["operation"] == row["operation"]:
            continue
        seen[row["process"]] = row
        if before is not None and before["session"] == row["session"]:
            known = [
                _number(one, "return_ns")
                for one in rows
                if one["outcome"] == "ok"
                and one["offset"] is not None
                and one["return_ns"] is not None
                and _number(one, "offset") >= _number(row, "offset")
            ]
            found.append(max(0, _number(row, "call_ns") - min(known)))
    return found


def _number(row: Row, name: str) -> int:
    value = row[name]
    assert isinstance(value, int)
    return value


def test_a_file_answers_by_key_and_the_figures_name_the_worst(tmp_path: Path) -> None:
    past = history(SENT + "c1 poll -> t-0 [v2@1] in 50..51\nc1 poll -> t-0 [v3@2] in 60..61")
    run = RunDirectory(tmp_path / "run")
    write_tables(run, operations=past.operations, records=past.records)
    path = bucket_file(run.history, bucket_of(KEY))
    figures = figures_of(lags_in(SealedFile(path=str(path), digest="")))
    assert (figures["polls_count"], figures["keys_count"]) == (2, 1)
    assert figures["lag_max_ms"] == figures["t-0_lag_max_ms"] == 48e-6
    assert figures["lag_p50_ms"] == pytest.approx(30e-6, rel=0.02)
    with pytest.raises(HarnessError, match="is not what was sealed"):
        lags_in(SealedFile(path=str(path), digest="0"))


def test_quantiles_are_within_a_bucket_of_the_true_ones() -> None:
    lag_ns = np.random.default_rng(5).integers(1, 10**9, 400)
    lines = [f"p1 send t-0 v{n} -> ok @{n} in 0..1" for n in range(401)]
    lines += ["c1 poll -> t-0 [v0@0] in 0..1"]
    lines += [
        f"c1 poll -> t-0 [v{n}@{n}] in {1 + lag}..{2 + lag}"
        for n, lag in enumerate(sorted(lag_ns), 1)
    ]
    found = measured([history("\n".join(lines)).of_key(KEY)])
    figures = figures_of({KEY: found})
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        true = np.quantile(lag_ns, share, method="inverted_cdf") / 1e6
        assert true <= figures[f"lag_{name}_ms"] <= true * 1.012
