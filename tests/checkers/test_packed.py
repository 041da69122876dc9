"""A packed table is what was packed."""

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fencepost.checkers.packed import PackedTable

SCHEMA = pa.schema([("number", pa.int64()), ("word", pa.string()), ("list", pa.list_(pa.int32()))])
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "number": st.none() | st.integers(-(2**63), 2**63 - 1),
            "word": st.none() | st.text(max_size=5),
            "list": st.none() | st.lists(st.integers(0, 9), max_size=3),
        }
    ),
    max_size=6,
)


@given(st.lists(ROWS, min_size=1, max_size=4), st.permutations(SCHEMA.names), st.integers(1, 3))
def test_any_columns_are_read_as_they_were(
    several: list[list[dict[str, Any]]], names: list[str], count: int
) -> None:
    batches = [pa.RecordBatch.from_pylist(rows, SCHEMA) for rows in several]
    packed, wanted = PackedTable(batches), names[:count]
    for _ in range(2):
        assert list(packed.batches(wanted)) == [batch.select(wanted) for batch in batches]


def test_words_that_come_again_take_little() -> None:
    rows = [{"number": None, "word": "BrokerRegistration", "list": None}] * 100_000
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
    before = pa.total_allocated_bytes()
    packed = PackedTable([batch])
    assert pa.total_allocated_bytes() - before < batch.nbytes / 6
    assert next(packed.batches(["word"])).num_rows == len(rows)
