"""Slices of reads of topics together find what the whole finds."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from metadata_histories import a_growth, a_read, a_write, numbered, of_clients

from fencepost.checkers.slices import Slice, Split
from fencepost.checkers.visibility.stale import backward_sessions, nonrepeatable_reads, stale_reads

TOPICS = ("m-000001", "m-000002", "n")
Rows = list[dict[str, Any]]


@st.composite
def histories(draw: st.DrawFn) -> tuple[Rows, Rows]:
    """Writes and reads of some topics, whose partitions have leader epochs of their own."""
    times = st.tuples(st.integers(0, 30), st.integers(1, 6))
    topic = st.sampled_from(TOPICS)
    writes, reads = [], []
    for number in range(draw(st.integers(1, 4))):
        call_ns, length = draw(times)
        growth = a_growth(draw(st.integers(1, 4)), call_ns + 7, call_ns + 7 + length)
        created = a_write(
            "create-topic", call_ns, call_ns + length, topic_id="ABCD"[number], number=number
        )
        name = draw(topic)
        writes += [created | {"topic": name}, growth | {"topic": name}]
    for _ in range(draw(st.integers(1, 7))):
        call_ns, length = draw(times)
        shown = draw(st.sampled_from(["none", "=1", "=2", "A*3", "B*2", "C*4"]))
        read = a_read(draw(st.sampled_from(["broker-1", "broker-2"])), shown, call_ns, 40)
        read |= {"topic": draw(topic), "return_ns": call_ns + length}
        reads.append(read | {"leader_epoch": draw(st.integers(0, 2))})
    return writes, reads


def found(of: Any) -> tuple[list[tuple[Any, ...]], int]:
    columns = ("key", "read", "known_ns", "seen", "lacks")
    rows = [tuple(str(row[name]) for name in columns) for row in of.table.to_pylist()]
    return rows, of.judged_count


@given(histories(), st.integers(2, 5))
def test_slices_together_find_what_the_whole_finds(history: tuple[Rows, Rows], count: int) -> None:
    tables = numbered(*history)
    # An own epoch for each partition of a read.
    epochs = [
        row | {"leader_epoch": None if row["leader_epoch"] is None else row["leader_epoch"] + at}
        for at, row in enumerate(tables["describes"].to_pylist())
    ]
    tables["describes"] = tables["describes"].from_pylist(epochs, tables["describes"].schema)
    for check in (stale_reads, nonrepeatable_reads, backward_sessions):
        whole, judged_count = found(check(of_clients(tables)))
        slices = [Slice(Split.PARTITIONS, number, count) for number in range(count)]
        parts = [found(check(of_clients(tables, part))) for part in slices]
        assert sorted(row for rows, _ in parts for row in rows) == sorted(whole)
        assert sum(cases for _, cases in parts) == judged_count
