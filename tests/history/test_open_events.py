"""Events that a killed client left open: what it had noted by then, and nothing more."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from sealed_runs import sealed_table

from fencepost.history.journal import EventJournal
from fencepost.history.run_directory import RunDirectory


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path, "test", datetime.now(UTC))


MOVE = {"process": 1, "f": "reassign", "node": "broker-1", "topic": "t", "partition": 0}


def test_a_move_that_was_acknowledged_stays_so_though_its_end_was_not_seen(
    run: RunDirectory,
) -> None:
    with EventJournal(run.raw, "partition_writes", writer="m") as journal:
        asked = {"replicas_before": [1, 2], "replicas": [2, 3]}
        over = journal.begin({**MOVE, **asked, "call_ns": 10})
        journal.note(over, {"outcome": "ok", "error": None, "return_ns": 12})
        journal.end(over, {"outcome": "ok", "over_ns": 15})
        begun = journal.begin({**MOVE, **asked, "call_ns": 20})
        journal.note(begun, {"outcome": "ok", "error": None, "return_ns": 22})
        journal.begin({**MOVE, **asked, "call_ns": 30})
    rows = sealed_table(run, "partition_writes").to_pylist()
    assert [(row["outcome"], row["return_ns"], row["over_ns"]) for row in rows] == [
        ("ok", 12, 15),
        ("ok", 22, None),
        ("info", None, None),
    ]
    assert {tuple(row["replicas"]) for row in rows} == {(2, 3)}
    assert {row["partition_count"] for row in rows} == {None}


def test_offsets_of_a_transaction_without_an_end_may_count_or_not(run: RunDirectory) -> None:
    asked = {"process": 1, "group": "g", "keys": ["t-0"]}
    with EventJournal(run.raw, "group_offsets", writer="p-0") as journal:
        journal.begin({**asked, "f": "fetch-offsets", "call_ns": 10, "offsets": []})
    with EventJournal(run.raw, "group_offsets", writer="p-1") as journal:
        sent = {**asked, "f": "send-offsets", "offsets": [7], "offsets_before": [4]}
        journal.begin({**sent, "call_ns": 5})
    rows = sealed_table(run, "group_offsets").to_pylist()
    assert [(row["index"], row["f"], row["outcome"], row["offsets"]) for row in rows] == [
        (0, "send-offsets", "info", [7]),
        (1, "fetch-offsets", "info", []),
    ]
