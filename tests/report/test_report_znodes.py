"""The page of a run on znodes: its operations are counted, timed and plotted as those of a run."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from page_tree import Element, parse_page
from synthetic_run import KINDS, SECOND, Fault, RunSpec, result, verdict_with, write_run

from fencepost.history.manifest import read_manifest, write_manifest
from fencepost.history.operation import Outcome
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import ZNODE_OPERATIONS
from fencepost.report.functions import OF_ZNODES
from fencepost.report.page import write_page
from fencepost.report.reading import Reading, read_run

PAUSED = Fault(kind="pause", targets=("server-1",), begin=9, effect=10, end=20)
NEVER = Fault(kind="kill", targets=("server-2",), begin=25, effect=None, end=26)
WRITES_OF_PAUSE = 5  # of eight calls: two cas ok, two refused, one create ok
READS_OF_PAUSE = 2

Row = tuple[float, float | None, str, str, str | None]
"""Call and return in seconds, f, outcome, error."""
QUIET: list[Row] = [
    (1.0, 1.2, "set", "ok", None),
    (1.0, 1.4, "set", "ok", None),
    (1.1, 1.3, "read", "ok", None),
    (30.0, 30.1, "delete", "ok", None),
    (42.0, 42.2, "final-read", "ok", None),
]
BROKEN: list[Row] = [
    (11.0, 11.1, "cas", "ok", None),
    (11.0, 11.1, "cas", "ok", None),
    (11.0, 11.1, "cas", "fail", None),
    (12.0, 12.2, "create", "fail", None),
    (12.0, 12.2, "create", "fail", "NONODE"),
    (12.0, 15.0, "set", "info", "CONNECTIONLOSS"),
    (12.0, None, "set", "info", None),
    (13.0, 13.5, "create", "ok", None),
    (14.0, 16.0, "sync-read", "ok", None),
    (14.0, 14.1, "read", "ok", None),
    (14.0, 14.9, "read", "fail", "CONNECTIONLOSS"),
]
ROWS = [*QUIET, *BROKEN]


def znode_table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "index": index,
                "process": index,
                "session": 1,
                "server": "server-1",
                "key": f"/register/{index % 2}",
                "f": f,
                "call_ns": round(call * SECOND),
                "return_ns": None if end is None else round(end * SECOND),
                "outcome": outcome,
                "error": error,
            }
            for index, (call, end, f, outcome, error) in enumerate(rows)
        ],
        schema=ZNODE_OPERATIONS,
    )


def run_of(results: Path, rows: list[Row] = ROWS) -> RunDirectory:
    """A run on znodes, whose operations lie in two files."""
    verdict = verdict_with(replace(result("znode-evidence"), figures=KINDS))
    run = write_run(results, RunSpec(rate=0, faults=[PAUSED, NEVER], verdict=verdict))
    write_manifest(run.manifest_path, replace(read_manifest(run.manifest_path), model="znode"))
    table = znode_table(rows)
    run.table_path("znode_operations").mkdir()
    for bucket in range(2):
        path = run.table_path("znode_operations") / f"bucket-{bucket:02}.parquet"
        pq.write_table(table.filter(pa.array([i % 2 == bucket for i in range(len(rows))])), path)
    return run


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    return read_run(run_of(tmp_path))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Element:
    run = run_of(tmp_path_factory.mktemp("znodes"))
    return parse_page(write_page(run).read_text())


def test_all_operations_are_counted_by_function_and_outcome(reading: Reading) -> None:
    assert reading.troubles == ()
    counts = {key: count for key, count in reading.tally.counts.items() if count}
    assert counts == Counter((f, Outcome(outcome)) for _, _, f, outcome, _ in ROWS)


def test_the_writes_and_reads_of_a_fault_are_those_answered_while_it_was_in_effect(
    reading: Reading,
) -> None:
    assert list(reading.tally.grounds) == [0], "the other one took no effect"
    grounds = reading.tally.grounds[0]
    assert (grounds.writes, grounds.reads) == (WRITES_OF_PAUSE, READS_OF_PAUSE)


def test_reads_and_writes_are_timed_apart_and_a_final_read_is_neither(reading: Reading) -> None:
    found = reading.timeline.latencies
    writes, reads = found[OF_ZNODES.writes].max_ms, found[OF_ZNODES.reads].max_ms
    at = {round(2 * second): second for second in range(45)}
    assert {at[place]: writes[place] for place in np.flatnonzero(np.isfinite(writes))} == {
        1: 400.0,
        11: pytest.approx(100.0),
        13: 500.0,
        30: pytest.approx(100.0),
    }
    assert {at[place]: reads[place] for place in np.flatnonzero(np.isfinite(reads))} == {
        1: pytest.approx(200.0),
        14: 2000.0,
    }


def test_refusals_are_told_apart_from_other_failures(reading: Reading) -> None:
    failed = reading.timeline.rate(OF_ZNODES.writes, Outcome.FAIL) * reading.timeline.bins.width_s
    assert (failed.sum(), reading.timeline.refused_writes.sum()) == (3, 2)


@pytest.mark.slow
def test_the_page_plots_writes_and_reads_with_their_latencies(page: Element) -> None:
    titles = [plot.one("h3").text for plot in page.one(id="timeline").all("figure")]
    assert titles == [
        "Faults",
        "Writes",
        "Latency of acknowledged writes",
        "Reads",
        "Latency of answered reads",
    ]
    (plots,) = page.all("script", type="application/json")
    document = json.loads(plots.text)
    assert len(document["roots"]) == len(titles)
    assert json.dumps(document).count('"entry=fault:pause"') >= len(titles), "each is shaded"


@pytest.mark.slow
def test_the_page_names_writes_and_reads_where_it_counts(page: Element) -> None:
    heads = [head.text for head in page.one("section", id="faults").all("th", scope="col")]
    assert heads[-2:] == ["writes answered", "reads answered"]
    cells = [cell.text for cell in page.one("tr", data_fault="0").all("td")]
    assert cells[-2:] == [str(WRITES_OF_PAUSE), str(READS_OF_PAUSE)]
    heads = [head.text for head in page.one("section", id="kinds").all("th", scope="col")]
    assert heads[-3:-1] == ["acknowledged writes", "sync reads ok"]
    figures = page.one("dl", id="figures").text
    assert "writes acknowledged 6 2 of unknown fate" in figures
    assert "reads answered 3 1 not answered" in figures
    assert not [word for word in ("sends", "polls", "records") if word in figures]


@pytest.mark.slow
def test_a_refusal_is_no_missing_answer(page: Element) -> None:
    errors = [row for row in page.all("tr") if "data-error" in row.attributes]
    names = [(row.attributes["data-error"], row.one("td", class_="number").text) for row in errors]
    assert sorted(names) == [
        ("CONNECTIONLOSS", "1"),
        ("CONNECTIONLOSS", "1"),
        ("NONODE", "1"),
        ("no answer", "1"),
        ("refused", "1"),
        ("refused", "1"),
    ]


def test_words_of_a_newer_history_are_a_trouble(tmp_path: Path) -> None:
    read = read_run(run_of(tmp_path, [*ROWS, (2.0, 2.1, "multi", "ok", None)]))
    assert "multi" in read.troubles[0]
    assert read.tally.operation_count == 0
