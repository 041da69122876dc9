"""What is read from a table is read once, as long as the table lives."""

import gc
import weakref

import pyarrow as pa

from fencepost.checkers.metadata.remembered import remembered

Reads = list[tuple[int, tuple[object, ...]]]


class Made:
    """What a reader makes of a table."""


def reader(reads: Reads) -> object:
    @remembered
    def read(table: pa.Table, *others: object, api: str = "") -> Made:
        reads.append((len(table), (*others, api)))
        return Made()

    return read


def test_equal_words_and_the_same_objects_are_read_once() -> None:
    reads: Reads = []
    read = reader(reads)
    table, other, histories = pa.table({"a": [1]}), pa.table({"a": [1]}), {"t": 1}
    assert callable(read)
    first = read(table, "Vote", histories)
    assert read(table, "Vo" + "te", histories) is first
    assert len(reads) == 1
    assert read(other, "Vote", histories) is not first
    assert read(table, "Fetch", histories) is not first
    assert read(table, "Vote", dict(histories)) is not first
    assert read(table, "Vote", histories, api="x") is not first
    assert len(reads) == 5


def test_nothing_outlives_its_table() -> None:
    read = reader([])
    assert callable(read)
    table = pa.table({"a": [1]})
    made = weakref.ref(read(table, "Vote"))
    assert made() is not None
    del table
    gc.collect()
    assert made() is None
