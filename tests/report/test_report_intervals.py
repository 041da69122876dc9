"""The intervals of a proof: order is kept, words fit, and only what is needed is read."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from page_tree import Element, parse_page
from synthetic_run import RunSpec, manifest_of, result, verdict_with

from fencepost.checkers.anomaly import Anomaly, anomalies_of
from fencepost.checkers.linearizability.budget import Budget
from fencepost.checkers.linearizability.kernels import KERNELS
from fencepost.checkers.proof import Proof
from fencepost.checkers.verdict import Validity, write_verdict
from fencepost.history.model_writer import write_model_history
from fencepost.history.models import Model
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import MODEL_OPERATIONS
from fencepost.report.intervals import draw_intervals, model_rows_at, picture_of
from fencepost.report.page import write_page

EMPTY = dict.fromkeys(MODEL_OPERATIONS.names)
MS = 1_000_000


def row(index: int, process: int, f: str, call: int, end: int | None, **columns: Any) -> Any:
    outcome = "info" if end is None else "ok"
    times = {"call_ns": call * MS, "return_ns": None if end is None else end * MS}
    own = {"index": index, "process": process, "f": f, "key": "x", "outcome": outcome}
    return EMPTY | own | times | columns


def table(*rows: Any) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=MODEL_OPERATIONS)


HISTORY = table(
    row(0, 1, "write", 0, 10, value=1),
    row(1, 2, "write", 5, 20, value=2),
    row(2, 3, "write", 7, None, value=9),
    row(3, 1, "read", 21, 30, value=2),
    row(4, 3, "read", 31, 40, value=1),
    row(5, 2, "read", 41, 44, value=1),
)


def svg(rows: pa.Table, model: Model = Model.REGISTER) -> Element:
    return parse_page(str(draw_intervals(rows, model))).one("svg")


def bar(drawing: Element, words: str) -> Element:
    (found,) = [one for one in drawing.all("g") if words in one.text]
    return found.one("rect")


def left(rect: Element) -> float:
    return float(rect.attributes["x"] or "nan")


def right(rect: Element) -> float:
    return left(rect) + float(rect.attributes["width"] or "nan")


def test_bars_stand_in_the_order_of_calls_and_returns() -> None:
    drawing = svg(HISTORY)
    first, second = bar(drawing, "write(1)"), bar(drawing, "write(2)")
    later = bar(drawing, "3: read() -> 2")
    assert left(first) < left(second) < right(first) < right(second) < left(later)


def test_each_process_has_a_row_in_the_order_of_its_first_call() -> None:
    drawing = svg(HISTORY)
    names = [one.text for one in drawing.all("text", class_="process")]
    assert names == ["process 1", "process 2", "process 3"]
    heights = [bar(drawing, words).attributes["y"] for words in ("write(1)", "3: read() -> 2")]
    assert heights[0] == heights[1] != bar(drawing, "write(2)").attributes["y"]


def test_what_may_take_effect_later_has_an_open_end() -> None:
    drawing = svg(HISTORY)
    (crashed,) = drawing.all("g", class_="event info")
    assert len(crashed.all("path", class_="open")) == 1
    assert right(crashed.one("rect")) > right(bar(drawing, "5: read() -> 1"))
    assert "any time after that" in crashed.one("title").text


def test_intervals_that_only_touch_share_their_moment() -> None:
    drawing = svg(table(row(0, 1, "add", 0, 5, value=1), row(1, 2, "read", 5, 6, value=1)), COUNTER)
    assert right(bar(drawing, "add(1)")) - 1.5 == left(bar(drawing, "read()")) + 1.5


COUNTER = Model.COUNTER


def test_words_of_a_process_never_run_into_its_next_bar() -> None:
    many = [row(n, 1, "read", 2 * n, 2 * n + 1, value=10**17 + n) for n in range(6)]
    drawing = svg(table(*many), COUNTER)
    starts = [left(one) for one in drawing.all("rect")]
    width = len(f"0: read() -> {10**17}") * 6.4
    assert all(b - a > width for a, b in pairwise(starts))


def test_no_text_of_a_run_becomes_markup() -> None:
    drawing = draw_intervals(HISTORY, Model.REGISTER)
    assert "-&gt;" in drawing
    assert "-> " not in drawing


def test_rows_of_another_model_are_no_picture() -> None:
    with pytest.raises(ValueError, match="expected one of"):
        draw_intervals(HISTORY, COUNTER)


def write_files(folder: Path) -> list[Path]:
    """Two files of several row groups, as a sealed table has them."""
    paths = []
    for place, key in enumerate(("x", "y")):
        rows = [
            row(2 * n + place, n % 3, "write", n, n + 1, value=n) | {"key": key} for n in range(100)
        ]
        paths.append(folder / f"bucket-{place:02}.parquet")
        pq.write_table(table(*rows), paths[-1], row_group_size=10)
    return paths


def test_operations_are_found_by_key_and_index(tmp_path: Path) -> None:
    files = write_files(tmp_path)
    assert model_rows_at(files, key="x", indices=(6, 100, 101))["index"].to_pylist() == [6, 100]
    nowhere = Anomaly(
        check="nonlinearizable", key="z", allowed=False, proof=Proof.as_told("", operations=(6,))
    )
    assert picture_of(files, nowhere, Model.REGISTER) is None


def test_row_groups_that_cannot_hold_them_are_not_read(tmp_path: Path) -> None:
    files = write_files(tmp_path)
    metadata = pq.read_metadata(files[0])
    content = bytearray(files[0].read_bytes())
    for group in range(1, metadata.num_row_groups):
        column = metadata.row_group(group).column(MODEL_OPERATIONS.get_field_index("value"))
        start = column.dictionary_page_offset or column.data_page_offset
        content[start : start + column.total_compressed_size] = b"\xff" * (
            column.total_compressed_size
        )
    files[0].write_bytes(content)
    assert model_rows_at(files, key="x", indices=(2, 4))["value"].to_pylist() == [1, 2]
    with pytest.raises((OSError, pa.ArrowException)):
        model_rows_at(files, key="x", indices=(2, 150))


def write_run_of(results: Path, history: pa.Table, model: Model) -> RunDirectory:
    """A checked run of an open history, with what the kernel finds of its key."""
    run = RunDirectory.create(results, "open-history", datetime(2026, 3, 1, 8, 0, tzinfo=UTC))
    manifest = replace(manifest_of(RunSpec()), model=model.value, keys=("x",), digests={})
    write_model_history(run, manifest, [("x", [history])])
    found = KERNELS[model]("x", history, Budget(seconds=60.0, bytes=1 << 30))
    run.anomalies.mkdir()
    pq.write_table(found.table, run.anomalies / "nonlinearizable.parquet")
    answer = result(
        "nonlinearizable",
        Validity.INVALID,
        reason="1 found",
        count=found.never_count,
        examples=list(anomalies_of(found.table)),
    )
    write_verdict(
        run.verdict_path, replace(verdict_with(), checks=(answer,), validity=answer.validity)
    )
    return run


def test_the_page_of_an_open_history_shows_the_intervals_of_its_proof(tmp_path: Path) -> None:
    page = parse_page(write_page(write_run_of(tmp_path, HISTORY, Model.REGISTER)).read_text())
    proof = page.one("article", data_check="nonlinearizable").one("div", class_="proof")
    drawing = proof.one("svg", class_="intervals")
    assert [one.text for one in drawing.all("text", class_="words")] == [
        "0: write(1)",
        "1: write(2)",
        "3: read() -> 2",
        "5: read() -> 1",
    ]
    assert proof.one("p", class_="detail break").text
    assert "not shown" not in proof.text
    assert not page.all("p", class_="trouble unread")


def test_the_page_of_a_valid_open_history_is_written_without_troubles(tmp_path: Path) -> None:
    page = parse_page(
        write_page(write_run_of(tmp_path, HISTORY.slice(0, 4), Model.REGISTER)).read_text()
    )
    assert not page.all("p", class_="trouble unread")
    assert not page.all("svg", class_="intervals")
    assert not page.all("section", id="timeline")
