import numpy as np

from fencepost.checkers.proof import Proof
from fencepost.checkers.visibility.lacking import Lacking, stale_table


def lacking(key: str, ages_ns: list[int]) -> Lacking:
    count = len(ages_ns)
    return Lacking(
        key=key,
        read=np.arange(count),
        process=np.zeros(count, dtype=np.int64),
        node=np.array(["broker-1"] * count, dtype=object),
        call_ns=np.full(count, 100),
        known_ns=100 - np.array(ages_ns, dtype=np.int64),
        clauses=lambda place: (Proof.of("{place}", place=place), Proof.of(f"of {key}")),
    )


def test_every_read_counts_and_the_oldest_are_spelled_out() -> None:
    parts = [lacking("a", [5, 40, 1]), lacking("b", []), lacking("c", [30, 2])]
    table = stale_table(parts, proofs_max=2)
    assert table["key"].to_pylist() == ["a", "a", "a", "c", "c"]
    told = [row and Proof.of_columns(row).facts for row in table["seen"].to_pylist()]
    place = Proof.of("{place}", place=1).facts, Proof.of("{place}", place=0).facts
    assert told == [None, place[0], None, place[1], None]
    rules = [row and row["rule"] for row in table["lacks"].to_pylist()]
    assert rules == [None, "of a", None, "of c", None]


def test_nothing_is_an_empty_table() -> None:
    assert len(stale_table([])) == len(stale_table([lacking("a", [])])) == 0
