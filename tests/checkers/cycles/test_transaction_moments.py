"""Cycles among Kafka's transactions: of moments they are impossible, of writes alone legal."""

from collections.abc import Sequence

import pyarrow as pa
from proving import cycle_class

from fencepost.checkers.cycles.answers import Counted
from fencepost.checkers.cycles.kafka_group import COLUMNS, judged, key_transactions
from fencepost.checkers.cycles.moments import committed_of
from fencepost.history.request_schema import TRANSACTIONS
from fencepost.history.schema import RECORDS

Row = dict[str, object]


def transaction(
    number: int,
    process: int,
    begin: int,
    commit: int,
    end: int | None,
    *values: int,
    outcome: str = "ok",
    intent: str = "commit",
) -> Row:
    return {
        "index": number,
        "process": process,
        "transactional_id": f"id-{process}",
        "intent": intent,
        "begin_ns": begin,
        "end_call_ns": commit,
        "return_ns": end,
        "outcome": outcome,
        "error": None,
        "keys": ["any"] * len(values),
        "values": list(values),
    }


def sends(key: str, *values: int, outcome: str = "ok") -> list[Row]:
    """Acknowledged sends in the order of the log; operation = value."""
    return [
        _record(key, offset, value, operation=value, f="send", call=0, end=None, outcome=outcome)
        for offset, value in enumerate(values)
    ]


def poll(operation: int, key: str, call: int, end: int, *entries: tuple[int, int]) -> list[Row]:
    return [
        _record(key, offset, value, operation=operation, f="poll", call=call, end=end, outcome="ok")
        for offset, value in entries
    ]


def _record(
    key: str,
    offset: int,
    value: int,
    *,
    operation: int,
    f: str,
    call: int,
    end: int | None,
    outcome: str,
) -> Row:
    return {
        "key": key,
        "offset": offset,
        "value": value,
        "operation": operation,
        "position": 0,
        "process": 0,
        "f": f,
        "outcome": outcome,
        "call_ns": call,
        "return_ns": end,
        "session": 0,
    }


def judge(transactions: Sequence[Row], *records: Sequence[Row]) -> tuple[Counted, list[str]]:
    committed = committed_of(pa.Table.from_pylist(list(transactions), schema=TRANSACTIONS))
    rows = [row for some in records for row in some]
    found = [
        key_transactions(
            key,
            pa.Table.from_pylist([row for row in rows if row["key"] == key], schema=RECORDS).select(
                list(COLUMNS)
            ),
            committed,
        )
        for key in sorted({str(row["key"]) for row in rows})
    ]
    counted = judged(committed, [key for key, _ in found])
    assert (counted.never_count, counted.allowed_count) == (
        len(counted.never),
        len(counted.allowed),
    )
    return counted, [doubt for _, doubt in found if doubt]


def kinds(transactions: Sequence[Row], *records: Sequence[Row]) -> tuple[list[str], list[str]]:
    """Of what is impossible, and of what is legal, the classes."""
    counted, doubts = judge(transactions, *records)
    assert not doubts
    return tuple(
        [cycle_class(one.proof) for one in some] for some in (counted.never, counted.allowed)
    )


FIRST = transaction(0, 1, 0, 10, 20, 1, 2)
AFTER = transaction(1, 2, 30, 40, 50, 3, 4)
BESIDE = transaction(1, 2, 5, 15, 25, 3, 4)
NEXT = transaction(1, 1, 20, 40, 50, 3, 4)


def test_transactions_one_after_the_other_are_in_order() -> None:
    logs = (sends("t-0", 1, 3), sends("t-1", 2, 4))
    assert kinds([FIRST, AFTER], *logs) == ([], [])


def test_a_transaction_with_a_place_in_a_log_is_a_case() -> None:
    for log in (sends("t-0", 3, 1), sends("t-0", 1, 3)):
        counted, _ = judge([FIRST, AFTER], log, sends("t-1", 2, 4))
        assert counted.case_count == 2
    nowhere, _ = judge([FIRST, AFTER], sends("t-0", 1, 3, outcome="info"))
    assert nowhere.case_count == 0
    failed, _ = judge([transaction(0, 1, 0, 10, 20, 1, outcome="fail")], sends("t-0", 1))
    assert failed.case_count == 0


def test_open_transactions_may_interleave_differently_in_each_partition() -> None:
    logs = (sends("t-0", 1, 3), sends("t-1", 4, 2))
    assert kinds([FIRST, BESIDE], *logs) == ([], ["G0"])
    assert kinds([FIRST, BESIDE], sends("t-0", 1, 3, 2, 4)) == ([], ["G0"])


def test_a_record_before_one_of_an_earlier_transaction_is_impossible() -> None:
    assert kinds([FIRST, AFTER], sends("t-0", 3, 1)) == (["G0-realtime"], [])
    assert kinds([FIRST, NEXT], sends("t-0", 3, 1)) == (["G0-process"], [])


def test_over_a_transaction_that_was_open_all_the_time_it_is_legal() -> None:
    long = transaction(2, 3, 0, 60, 70, 5, 6)
    logs = (sends("t-0", 3, 5), sends("t-1", 6, 1))
    assert kinds([FIRST, AFTER, long], *logs) == ([], [])


def test_a_read_before_the_commit_was_asked_for_is_impossible() -> None:
    log = sends("t-0", 1)
    assert kinds([FIRST], log, poll(9, "t-0", 2, 9, (0, 1))) == (["G1c-realtime"], [])
    assert kinds([FIRST], log, poll(9, "t-0", 2, 10, (0, 1))) == ([], [])


def test_a_read_of_a_transaction_that_wrote_after_one_that_was_yet_to_begin_is_impossible() -> None:
    early = poll(9, "t-1", 21, 29, (0, 2))
    good = (sends("t-0", 1, 3), sends("t-1", 2))
    bad = (sends("t-0", 3, 1), sends("t-1", 2))
    assert kinds([FIRST, AFTER], *good, early) == ([], [])
    (never, _) = kinds([FIRST, AFTER], *bad, early)
    assert never == ["G0-realtime"]


def test_a_commit_that_crashed_ends_before_nothing() -> None:
    crashed = transaction(0, 1, 0, 10, None, 1, 2, outcome="info")
    records = poll(9, "t-0", 60, 70, (0, 3), (1, 1))
    assert kinds([crashed, AFTER], sends("t-0", 3), records) == ([], [])


def test_one_that_was_aborted_takes_no_part() -> None:
    aborted = transaction(0, 1, 0, 10, 20, 1, 2, intent="abort")
    assert kinds([aborted, AFTER], sends("t-0", 3, 1)) == ([], [])


def test_a_log_with_two_values_at_an_offset_is_in_doubt() -> None:
    _, doubts = judge([FIRST], sends("t-0", 1), poll(9, "t-0", 30, 40, (0, 2)))
    assert doubts == ["t-0 has two values at offset 0: its log has no order"]
