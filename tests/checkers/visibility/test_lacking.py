import numpy as np

from checkers.visibility.lacking import Lacking, stale_table


def lacking(key: str, ages_ns: list[int]) -> Lacking:
    count = len(ages_ns)
    return Lacking(
        key=key,
        read=np.arange(count),
        process=np.zeros(count, dtype=np.int64),
        node=np.array(["broker-1"] * count, dtype=object),
        call_ns=np.full(count, 100),
        known_ns=100 - np.array(ages_ns, dtype=np.int64),
        words=lambda place: (f"{key} {place}", "newer"),
    )


def test_every_read_counts_and_the_oldest_are_put_into_words() -> None:
    parts = [lacking("a", [5, 40, 1]), lacking("b", []), lacking("c", [30, 2])]
    table = stale_table(parts, words_max=2)
    assert table["key"].to_pylist() == ["a", "a", "a", "c", "c"]
    assert table["seen"].to_pylist() == [None, "a 1", None, "c 0", None]
    assert table["lacks"].to_pylist() == [None, "newer", None, "newer", None]


def test_nothing_is_an_empty_table() -> None:
    assert len(stale_table([])) == len(stale_table([lacking("a", [])])) == 0
