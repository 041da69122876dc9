"""Transactions, their sends and the offsets sent with them say the same; else nothing counts."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from histories import history

from fencepost.checkers.grounds.file_survey import FileSurvey, survey_of
from fencepost.checkers.grounds.transactions_and_sends import (
    SENDS,
    self_contradiction,
    unlike_offsets,
    unlike_sends,
)
from fencepost.checkers.runner.tables import SealedFile
from fencepost.history.operation import F
from fencepost.history.request_schema import GROUP_OFFSETS, TRANSACTIONS
from fencepost.history.run_directory import RunDirectory
from fencepost.history.writer import bucket_of, write_tables

Row = dict[str, Any]

PAST = """
    p0 send t-0 v1 -> ok @0
    p0 send t-1 v2 -> ok @0
    p0 send t-0 v3 -> fail
    p0 send t-0 v4 -> info in 30..35
    """


def transaction(index: int, *values: tuple[str, int], **changes: Any) -> Row:
    """One that is committed from ten times its index to five later, by process 0."""
    row = {
        "index": index,
        "process": 0,
        "transactional_id": "x",
        "intent": "commit",
        "begin_ns": 10 * index,
        "end_call_ns": 10 * index + 3,
        "return_ns": 10 * index + 5,
        "outcome": "ok",
        "keys": [key for key, _ in values],
        "values": [value for _, value in values],
    }
    return row | changes


COMMITTED = transaction(0, ("t-0", 1), ("t-1", 2))
ABORTED = transaction(1, ("t-0", 3), intent="abort")
UNKNOWN = transaction(2, ("t-0", 4), outcome="info", error="_TIMED_OUT")
OPEN: Row = {"end_call_ns": None, "return_ns": None, "outcome": "info"}
ALL = (COMMITTED, ABORTED, UNKNOWN)


def table(*rows: Row) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=TRANSACTIONS)


def unlike(*rows: Row, past: str = PAST) -> str:
    process = history(past).records["process"][0].as_py()
    mine = [row | {"process": row["process"] + process} for row in rows]
    sends = history(past).records.filter(pa.compute.equal(history(past).records["f"], F.SEND.value))
    return unlike_sends(table(*mine), sends.select(list(SENDS)))


def test_transactions_that_are_as_their_sends_are_right() -> None:
    assert not self_contradiction(table(*ALL))
    assert not unlike(*ALL)
    # An abort that was not acknowledged leaves its sends undone.
    assert not unlike(COMMITTED, ABORTED | {"outcome": "info"}, UNKNOWN)
    # One that never came to its end asked for no commit.
    failed = ABORTED | {"intent": "commit", "outcome": "fail", "end_call_ns": None}
    assert not unlike(COMMITTED, failed, UNKNOWN)


def test_what_a_crash_cut_off_contradicts_nothing() -> None:
    # Sends are recorded before the end of their transaction is.
    for crashed in (COMMITTED | OPEN, ABORTED | OPEN, UNKNOWN | OPEN):
        others = [row for row in ALL if row["index"] != crashed["index"]]
        assert not unlike(crashed, *others)
    assert not self_contradiction(table(COMMITTED, ABORTED, UNKNOWN | OPEN))
    # A send is recorded before it is noted in its transaction.
    past = "p0 send t-0 v1 -> ok @0\n    p0 send t-1 v2 -> ok @0\n    p0 send t-0 v3 -> info"
    assert not unlike(COMMITTED, past=past)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ((COMMITTED | {"intent": "abort"}, ABORTED, UNKNOWN), "0 is not as its send of value 1"),
        ((COMMITTED | {"outcome": "info"}, ABORTED, UNKNOWN), "0 is not as its send of value 1"),
        ((COMMITTED | {"outcome": "fail"}, ABORTED, UNKNOWN), "0 is not as its send of value 1"),
        ((COMMITTED, ABORTED | {"intent": "commit"}, UNKNOWN), "1 is not as its send of value 3"),
        ((COMMITTED, ABORTED, UNKNOWN | {"outcome": "ok"}), "2 is not as its send of value 4"),
        ((COMMITTED, ABORTED | {"process": 1}, UNKNOWN), "1 is not as its send of value 3"),
        ((ABORTED, UNKNOWN), "sent value 1 to t-0, which is of no transaction"),
        ((COMMITTED | {"keys": ["t-0"], "values": [1]}, ABORTED, UNKNOWN), "sent value 2 to t-1"),
        ((*ALL, transaction(3, ("t-0", 5))), "3 tells of value 5 of t-0, and no client sent it"),
        ((*ALL, transaction(3, ("t-2", 1))), "3 tells of value 1 of t-2, and no client sent it"),
        ((*ALL, transaction(3, ("t-0", 1))), "a value of t-0 is told of by several transactions"),
    ],
)
def test_a_transaction_that_is_not_as_its_sends_is_found(rows: tuple[Row], reason: str) -> None:
    assert reason in unlike(*rows)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ((COMMITTED | OPEN, ABORTED), "0 has no end, and its process began 1"),
        ((COMMITTED | {"return_ns": 11}, ABORTED), "1 begins before 0 of its process has ended"),
        ((COMMITTED | {"end_call_ns": None},), "0 is ok, without an end that was called"),
        ((COMMITTED | {"error": "_TIMED_OUT"},), "0 is ok, without an end that was called"),
        ((COMMITTED | {"end_call_ns": 6},), "0 was to be ended at 6 ns, outside itself"),
        ((COMMITTED | {"values": [1]},), "more keys than values, or fewer"),
    ],
)
def test_a_transaction_that_contradicts_itself_is_found(rows: tuple[Row], reason: str) -> None:
    assert reason in self_contradiction(table(*rows))


def sent(index: int, call_ns: int, return_ns: int | None, outcome: str, process: int = 0) -> Row:
    row = {"index": index, "process": process, "f": "send-offsets", "group": "g", "keys": ["t-0"]}
    times = {"call_ns": call_ns, "return_ns": return_ns, "outcome": outcome}
    return row | times | {"offsets": [5], "offsets_before": [0]}


RIGHT = (sent(0, 1, 6, "ok"), sent(1, 11, 16, "fail"), sent(2, 21, 26, "info"))


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (RIGHT, ""),
        ((*RIGHT[:2], sent(2, 21, None, "info")), ""),
        ((sent(0, 1, 6, "fail"), *RIGHT[1:]), "row 0 is fail, and it was sent with transaction 0"),
        ((RIGHT[0], sent(1, 11, 16, "ok")), "row 1 is ok, and it was sent with transaction 1"),
        ((sent(0, 6, 7, "ok"),), "row 0 sent offsets outside a transaction"),
        ((sent(0, 1, 6, "ok", process=7),), "row 0 sent offsets outside a transaction"),
        ((sent(0, 1, None, "info"), *RIGHT[1:]), "row 0 has no end"),
    ],
)
def test_offsets_have_the_outcome_of_their_transaction(rows: tuple[Row], reason: str) -> None:
    found = unlike_offsets(table(*ALL), pa.Table.from_pylist(list(rows), schema=GROUP_OFFSETS))
    assert (reason in found, bool(found)) == (True, bool(reason))


def surveyed(root: Path, *rows: Row) -> dict[str, FileSurvey]:
    past = history(PAST)
    process = past.records["process"][0].as_py()
    transactions = table(*(row | {"process": process} for row in rows))
    offsets = pa.Table.from_pylist([sent(0, 1, 6, "ok", process=process)], schema=GROUP_OFFSETS)
    run = RunDirectory(root)
    write_tables(
        run,
        operations=past.operations,
        records=past.records,
        cluster={"transactions": transactions, "group_offsets": offsets},
    )
    names = ["transactions", "group_offsets", *(f"records/bucket-{b:02}" for b in range(16))]
    return {
        name: survey_of(SealedFile(path=str(run.history / f"{name}.parquet"), digest=""))
        for name in names
    }


def test_each_file_is_held_against_the_transactions(tmp_path: Path) -> None:
    assert not any(one.contradiction for one in surveyed(tmp_path / "a", *ALL).values())
    found = surveyed(tmp_path / "b", COMMITTED | {"intent": "abort"}, ABORTED, UNKNOWN)
    wrong = {name for name, one in found.items() if one.contradiction}
    keys = {f"records/bucket-{bucket_of(key):02}" for key in ("t-0", "t-1")}
    assert wrong == {"group_offsets", *keys}
    itself = surveyed(tmp_path / "c", COMMITTED | {"error": "_TIMED_OUT"}, ABORTED, UNKNOWN)
    assert "transaction 0 is ok" in itself["transactions"].contradiction


def test_a_run_without_transactions_has_none_to_contradict(tmp_path: Path) -> None:
    found = surveyed(tmp_path / "none")
    assert not any(one.contradiction for one in found.values())
    (tmp_path / "none" / "history" / "transactions.parquet").unlink()
    path = tmp_path / "none" / "history" / "records" / f"bucket-{bucket_of('t-0'):02}.parquet"
    assert pq.read_table(path).num_rows
    assert not survey_of(SealedFile(path=str(path), digest="")).contradiction
