"""Sums of what records repeat of their operations, and copies of the metadata log."""

from typing import Any

import pyarrow as pa
import pytest
from histories import history

from fencepost.checkers.grounds.repeated import other_copy, repeated_by, repeated_of
from fencepost.checkers.sources import source_of
from fencepost.history.cluster_schema import METADATA_LOG
from fencepost.history.schema import RECORDS

PAST = """
    p1 send t-0 v1 -> ok @0
    p1 send t-0 v2 -> info
    c1 poll -> t-0 [v1@0]
    r1 final t-0 -> [v1@0 v2@1 v3@2]
    """


def told(**changes: tuple[int, Any]) -> int:
    """The sum of the records, of which one has another value: (its place, the value)."""
    rows = history(PAST).records.to_pylist()
    for name, (place, value) in changes.items():
        rows[place][name] = value
    return repeated_by(source_of(pa.Table.from_pylist(rows, schema=RECORDS)))


def test_records_that_repeat_their_operations_have_their_sum() -> None:
    past = history(PAST)
    assert repeated_by(source_of(past.records)) == repeated_of(past.operations)
    assert repeated_of(past.operations.slice(0, 0)) == 0


def test_the_sum_does_not_depend_on_the_order_or_the_batches_of_rows() -> None:
    records = history(PAST).records
    backwards = records.take(pa.array(range(len(records))[::-1]))
    cut = pa.Table.from_batches(backwards.to_batches(max_chunksize=2), RECORDS)
    assert repeated_by(source_of(cut)) == told()


def test_words_may_be_read_as_numbers() -> None:
    past = history(PAST)
    coded = pa.table(
        {
            name: column.dictionary_encode() if pa.types.is_string(column.type) else column
            for name, column in zip(past.operations.schema.names, past.operations, strict=True)
        }
    )
    assert repeated_of(coded) == repeated_of(past.operations)


@pytest.mark.parametrize(
    "change",
    [
        {"process": (0, 7)},
        {"f": (0, "poll")},
        {"outcome": (1, "ok")},
        {"call_ns": (2, 1)},
        {"return_ns": (2, None)},
        {"key": (0, "t-1")},
        {"operation": (0, 1)},
        {"position": (5, 9)},
    ],
)
def test_a_record_that_repeats_something_else_is_seen(change: dict[str, tuple[int, Any]]) -> None:
    assert told(**change) != told()


def test_two_records_that_have_exchanged_what_they_repeat_are_seen() -> None:
    rows = history(PAST).records.to_pylist()
    for name in ("process", "call_ns"):
        rows[0][name], rows[2][name] = rows[2][name], rows[0][name]
        table = pa.Table.from_pylist(rows, schema=RECORDS)
        assert repeated_by(source_of(table)) != told()


def copy(node: str, offset: int, **content: Any) -> dict[str, Any]:
    row = {"node": node, "snapshot": False, "metadata_offset": offset, "controller_epoch": 1}
    named = {"timestamp_ms": 5, "type": "x", "type_key": 0, "version": 0, "control": False}
    return row | named | {"digest": 77, "isr": [1, 2], "topic": "t"} | content


def unlike(*rows: dict[str, Any]) -> str:
    table = pa.Table.from_pylist(list(rows), schema=METADATA_LOG)
    cut = pa.Table.from_batches(table.to_batches(max_chunksize=2), METADATA_LOG)
    return other_copy(source_of(cut))


@pytest.mark.parametrize(
    "content",
    [
        {"isr": [1]},
        {"isr": [2, 1]},
        {"isr": None},
        {"leader": 1},
        {"type": "y"},
        {"timestamp_ms": 6},
        {"fenced": False},
    ],
)
def test_two_copies_with_one_digest_differ_in_content(content: dict[str, Any]) -> None:
    rows = [copy("a", 3), copy("a", 4), copy("b", 3), copy("b", 4, **content)]
    assert unlike(*rows) == "nodes have the record at offset 4 with one digest and other contents"


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"digest": 78, "isr": [1]},
        {"controller_epoch": 2, "isr": [1]},
        {"snapshot": True, "isr": [1]},
        {"topic": None},
    ],
)
def test_copies_that_may_differ(content: dict[str, Any]) -> None:
    assert unlike(copy("a", 3), copy("a", 4), copy("b", 4, **content)) == ""
    assert unlike() == ""


def test_rows_that_share_an_offset_are_compared_in_their_order() -> None:
    one, other = copy("a", 3, isr=[1]), copy("a", 3, isr=[2])
    same = [row | {"node": "b"} for row in (one, other)]
    assert unlike(one, other, *same) == ""
    assert unlike(one, other, *reversed(same))
