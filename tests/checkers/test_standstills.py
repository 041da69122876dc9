"""The times in which a node could hear and act."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.checkers.standstills import Standstills
from fencepost.history.schema import FAULTS

S = 1_000_000_000


def acted_s(*faults: tuple[str, list[str], int, int], processes_alone: bool = False) -> int:
    """Of ten seconds, the longest stretch in which broker-2, which hears from two, could act."""
    rows = [
        {"index": n, "fault": fault, "targets": targets, "begin_ns": a * S, "end_ns": b * S}
        for n, (fault, targets, a, b) in enumerate(faults)
    ]
    still = Standstills.of(pa.Table.from_pylist(rows, schema=FAULTS))
    still = still.of_processes if processes_alone else still
    heard = () if processes_alone else ("zookeeper-1", "zookeeper-2")
    return still.acted_ns(0, 10 * S, node="broker-2", hears_from=heard) // S


@pytest.mark.parametrize(
    ("fault", "targets"),
    [
        ("pause", ["broker-2"]),
        ("pause", ["zookeeper-1"]),
        ("partition", ["zookeeper-1", "zookeeper-2"]),
        ("partition", ["broker-2", "zookeeper-1"]),
        ("partition", ["broker-1", "broker-2", "zookeeper-1"]),
        ("hold", ["broker-2", "zookeeper-1"]),
    ],
)
def test_what_is_done_to_a_node_or_to_those_it_hears_from_stops_it(
    fault: str, targets: list[str]
) -> None:
    assert acted_s((fault, targets, 3, 4)) == 6


@pytest.mark.parametrize(
    ("fault", "targets"),
    [
        ("pause", ["broker-1"]),
        ("hold", ["broker-2"]),
        # The link of another broker to ZooKeeper.
        ("partition", ["broker-1", "zookeeper-1"]),
        ("delay", ["broker-1", "zookeeper-1", "zookeeper-2"]),
    ],
)
def test_what_is_done_to_others_does_not(fault: str, targets: list[str]) -> None:
    assert acted_s((fault, targets, 3, 4)) == 10


def test_a_broken_link_keeps_nobody_from_acting_upon_what_it_has_heard() -> None:
    cut, paused = ("partition", ["broker-2", "zookeeper-1"], 1, 5), ("pause", ["broker-2"], 7, 8)
    assert acted_s(cut, paused, processes_alone=True) == 7
    assert acted_s(cut, paused) == 2


SPANS = st.lists(
    st.tuples(
        st.sampled_from(["pause", "kill", "partition", "hold"]),
        st.sets(st.sampled_from(["broker-1", "broker-2", "zookeeper-1"]), min_size=1),
        st.integers(0, 9),
        st.none() | st.integers(0, 9),
    ),
    max_size=6,
)


@given(faults=SPANS, from_ns=st.integers(0, 10), until_ns=st.integers(0, 10))
def test_the_longest_time_is_that_of_moments_told_one_by_one(
    faults: list[tuple[str, set[str], int, int | None]], from_ns: int, until_ns: int
) -> None:
    spans = [(*one[:3], 99 if one[3] is None else max(one[2], one[3])) for one in faults]
    rows = [
        {"index": n, "fault": fault, "targets": sorted(targets), "begin_ns": begin, "end_ns": end}
        for n, (fault, targets, begin, end) in enumerate(spans)
    ]
    still = Standstills.of(pa.Table.from_pylist(rows, schema=FAULTS)).of_processes
    longest = lasted = 0
    for moment in range(from_ns, until_ns):
        held = any(
            fault in ("pause", "kill") and "broker-2" in targets and begin <= moment < end
            for fault, targets, begin, end in spans
        )
        lasted = 0 if held else lasted + 1
        longest = max(longest, lasted)
    assert still.acted_ns(from_ns, until_ns, node="broker-2", hears_from=()) == longest
