"""Describes as arrays tell, partition by partition, what the rows of their table tell."""

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fencepost.checkers.metadata.partition_reads import UNTOLD, PartitionReads, partition_reads
from fencepost.history.request_schema import DESCRIBES

IDS = st.lists(st.integers(1, 3), max_size=3)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "node": st.sampled_from(["broker-1", "broker-2"]),
            "topic_id": st.sampled_from([None, "a", "b"]),
            "partition": st.none() | st.integers(0, 1),
            "error": st.sampled_from(["NONE", "NONE", "NETWORK_EXCEPTION"]),
            "leader": st.none() | st.integers(-1, 2),
            "leader_epoch": st.none() | st.integers(0, 2),
            "isr": st.none() | IDS,
            "replicas": st.none() | IDS,
            "metadata_offset": st.none() | st.integers(0, 9),
        }
    ),
    max_size=12,
)
"""The fields of describes that vary here."""


def table(rows: list[dict[str, Any]]) -> pa.Table:
    absent = {field.name: None for field in DESCRIBES}
    stated = [
        {"read": number, "process": 0, "call_ns": number, "return_ns": 100 - number, "topic": "t"}
        for number in range(len(rows))
    ]
    return pa.Table.from_pylist(
        [{**absent, **row, **more} for row, more in zip(rows, stated, strict=True)],
        schema=DESCRIBES,
    )


def told(reads: PartitionReads) -> list[tuple[Any, ...]]:
    numbers = (reads.read, reads.call_ns, reads.return_ns, reads.metadata_offset)
    return [
        (*row, reads.node[place], *reads.shown(place))
        for place, row in enumerate(zip(*(one.tolist() for one in numbers), strict=True))
    ]


def by_row(row: dict[str, Any]) -> tuple[Any, ...]:
    isr, replicas = (None if row[one] is None else tuple(row[one]) for one in ("isr", "replicas"))
    offset = UNTOLD if row["metadata_offset"] is None else row["metadata_offset"]
    numbers = (row["read"], row["call_ns"], row["return_ns"], offset)
    return (*numbers, row["node"], row["leader"], row["leader_epoch"], isr, replicas)


@given(rows=ROWS, batch_rows=st.integers(1, 12))
def test_arrays_hold_what_the_rows_tell(rows: list[dict[str, Any]], batch_rows: int) -> None:
    whole = table(rows)
    expected: dict[tuple[str, int], list[tuple[Any, ...]]] = {}
    for row in whole.to_pylist():
        place = (row["topic_id"], row["partition"])
        if row["error"] == "NONE" and None not in place:
            expected.setdefault(place, []).append(by_row(row))
    batches = whole.to_batches(max_chunksize=batch_rows)
    found = partition_reads(pa.Table.from_batches(batches, schema=DESCRIBES))
    assert {place: told(reads) for place, reads in found.items()} == expected


@given(rows=ROWS)
def test_each_read_is_under_the_state_that_it_showed(rows: list[dict[str, Any]]) -> None:
    for reads in partition_reads(table(rows)).values():
        by_state = list(reads.by_state())
        assert len({shown for shown, _ in by_state}) == len(by_state)
        places = [place for _, several in by_state for place in several.tolist()]
        assert sorted(places) == list(range(len(reads)))
        assert all(
            reads.shown(place) == shown and several.tolist() == sorted(several.tolist())
            for shown, several in by_state
            for place in several.tolist()
        )
