"""Each anomaly of list-append transactions: the smallest history with it, and the nearest without.

And histories with a transaction that crashed.
"""

import pyarrow as pa
import pytest
from proving import cycle_class

from fencepost.checkers.cycles.answers import CheckTally
from fencepost.checkers.cycles.inference import Inferred, inferred
from fencepost.checkers.cycles.judgement import cycles_in, reasons_in, spelled_cycle
from fencepost.checkers.cycles.levels import is_forbidden
from fencepost.generators.list_append import LIES, transactions_of
from fencepost.history.models import Isolation
from fencepost.history.schema import MICRO_OPERATIONS


def part_of(text: str) -> Inferred:
    return inferred(pa.Table.from_pylist(transactions_of(text), schema=MICRO_OPERATIONS))


def found(text: str, *, promise: Isolation = Isolation.STRICT_SERIALIZABLE) -> set[str]:
    """The checks of lists that fire, and the classes of cycles."""
    part = part_of(text)
    assert not part.doubts
    lists = {kind.check for kind in part.list_anomalies if kind.spelled}
    cycles = cycles_in([part], promise=promise).spelled
    return lists | {cycle_class(spelled_cycle(cycle, {}).proof) for cycle in cycles}


@pytest.mark.parametrize("name", LIES)
def test_each_smallest_lie_shows_what_it_is_called(name: str) -> None:
    lie = LIES[name]
    assert (lie.kind or lie.check) in found(lie.text)


@pytest.mark.parametrize("name", [name for name, lie in LIES.items() if lie.kind])
def test_a_cycle_is_found_alone_and_names_the_weakest_level_that_forbids_it(name: str) -> None:
    part = part_of(LIES[name].text)
    (cycle,) = cycles_in([part], promise=Isolation.STRICT_SERIALIZABLE).spelled
    reasons = reasons_in(part.edges, part.names, cycle.links)
    oddity = spelled_cycle(cycle, reasons)
    assert found(LIES[name].text) == {name}
    assert oddity.level is LIES[name].level
    assert cycle.shortest
    assert len(reasons) == sum(link.kind <= 2 for link in cycle.links)


GOOD = {
    "G0": "A 0-10 ok x+1 y+1\nB 0-10 ok x+2 y+2\nC 0-10 ok x=1.2 y=1.2",
    "G1c": "A 0-10 ok x+1 y=1\nB 0-10 ok y+1 x=",
    "G-single": "A 0-10 ok x=1 y=1\nB 0-10 ok x+1 y+1",
    "G-nonadjacent": "A 0-10 ok x= w=1\nB 0-10 ok x+1 y+1\nC 0-10 ok y=1 z=1\nD 0-10 ok z+1 w+1",
    "G2-item": "A 0-10 ok x= y+1\nB 0-10 ok y=1 x+1",
    "G-single-process": "A 0-10 ok x+1\nB 10-20 ok x=",
    "G-single-realtime": "A 0-20 ok x+1\nB 20-30 ok x=",
    "G1c-realtime": "A 0-20 ok x=1\nB 20-30 ok x+1",
    "aborted-element": "A 0-10 fail x+1\nB 0-10 ok x=",
    "garbage-element": "A 0-10 ok x=1\nB 0-10 ok x+1",
    "duplicate-element": "A 0-10 ok x+1 x+2\nB 0-10 ok x=1.2",
    "incompatible-order": "A 0-10 ok x+1\nB 0-10 ok x+2\nC 0-10 ok x=1\nD 0-10 ok x=1.2",
    "own order": "A 0-10 ok x+1 x+2\nB 0-10 ok x=1.2",
    "intermediate-read": "A 0-10 ok x+1 x+2\nB 0-10 ok x=1.2",
    "dirty-update": "A 0-10 fail x+1\nB 0-10 ok x+2\nC 0-10 ok x=2",
    "internal-inconsistency": "A 0-10 ok x+1 x=1 x+2 x=1.2",
    "lost-update": "A 0-10 ok x= x+1\nB 0-10 ok x+2",
    "its own append, unread": "A 0-10 ok x= x+1",
    "nothing but appends": "A 0-10 ok x+1\nB 0-10 ok x+2",
}


@pytest.mark.parametrize("name", GOOD)
def test_the_nearest_good_history_shows_nothing(name: str) -> None:
    assert found(GOOD[name]) == set()


CASES = {
    # check: cases of its smallest lie, of the nearest good history above, and of one without any
    "aborted-element": (1, 1, "A 0-10 ok x+1\nB 0-10 ok x=1\nC 0-10 fail y+1"),
    "garbage-element": (1, 1, "A 0-10 ok x+1\nB 0-10 ok x="),
    "duplicate-element": (2, 2, "A 0-10 ok x+1\nB 0-10 ok x="),
    "incompatible-order": (1, 1, "A 0-10 ok x+1\nB 0-10 ok x=1"),
    "intermediate-read": (1, 1, "A 0-10 ok x+1\nB 0-10 ok x=1"),
    "dirty-update": (1, 1, "A 0-10 ok x+1\nB 0-10 ok x=1\nC 0-10 fail y+1"),
    "internal-inconsistency": (1, 2, "A 0-10 ok x+1\nB 0-10 ok x=1"),
    "lost-update": (2, 1, "A 0-10 ok x+1\nB 0-10 ok x=1"),
}


def cases(text: str, check: str, *, promise: Isolation = Isolation.STRICT_SERIALIZABLE) -> int:
    tally = CheckTally()
    for kind in part_of(text).list_anomalies:
        if kind.check == check:
            tally.add_kind(kind)
    return tally.counted(promise).case_count


@pytest.mark.parametrize("check", CASES)
def test_each_check_of_lists_counts_what_could_have_been_wrong(check: str) -> None:
    bad, good, none = CASES[check]
    assert cases(LIES[check].text, check) == bad
    assert cases(GOOD[check], check) == good
    assert cases(none, check) == 0
    assert cases("", check) == 0


def test_a_check_of_what_the_promise_allows_judges_nothing() -> None:
    for check in CASES:
        lie = LIES[check]
        weaker = [level for level in Isolation if not is_forbidden(lie.level, promise=level)]
        assert all(cases(lie.text, check, promise=level) == 0 for level in weaker)
        assert cases(lie.text, check, promise=lie.level)


CRASHED = {
    "a crashed append may not have happened": ("A 0- info x+1\nB 20-30 ok x=", set()),
    "nor come soon after": ("A 0- info x+1\nB 20-30 ok x=\nC 40-50 ok x=1", set()),
    "one that was read did happen": ("A 0- info x+1 y+1\nB 20-30 ok x=1\nC 40-50 ok y=1", set()),
    "and all of it did": (
        "A 0- info x+1 y+1\nB 20-30 ok x=1\nC 40-50 ok y=",
        {"G-single-realtime"},
    ),
    "it may come to light after its process went on": (
        "A 0- info x+1\nA 10-20 ok x=\nB 30-40 ok x=1",
        set(),
    ),
    "what it read proves nothing": ("A 0- info x=7\nB 0-10 ok x=", set()),
    "reads before it are in order": ("A 0-10 ok x=1\nB 20- info x+1", {"G1c-realtime"}),
    "crashed writers, too, write in one order": (
        "A 0- info x+1 y+1\nB 0- info x+2 y+2\nC 0-10 ok x=1.2 y=2.1",
        {"G0"},
    ),
    "what differs may have been undone": (
        "A 0- info x+1\nB 0-10 ok x+2\nC 0-10 ok x=1\nD 0-10 ok x=2",
        {"incompatible-order"},
    ),
}


@pytest.mark.parametrize("claim", CRASHED)
def test_crashed_transactions(claim: str) -> None:
    text, expected = CRASHED[claim]
    assert found(text) == expected


def levels(text: str) -> set[Isolation]:
    return {one.level for kind in part_of(text).list_anomalies for one in kind.spelled}


def test_reads_that_differ_where_a_crashed_append_stands_are_legal_uncommitted() -> None:
    assert levels(CRASHED["what differs may have been undone"][0]) == {Isolation.READ_COMMITTED}
    assert levels(LIES["incompatible-order"].text) == {Isolation.READ_UNCOMMITTED}


def test_a_list_that_grows_between_two_reads_of_a_transaction_breaks_snapshot_only() -> None:
    assert levels("A 0-10 ok x= x=1\nB 0-10 ok x+1") == {Isolation.SNAPSHOT}
    assert levels("A 0-10 ok x+1 x=\nB 0-10 ok x=1") == {Isolation.READ_UNCOMMITTED}


def test_a_transaction_whose_appends_are_in_another_order_contradicts_the_list() -> None:
    assert "incompatible-order" in found("A 0-10 ok x+1 x+2\nB 0-10 ok x=2.1")
    assert "incompatible-order" in found("A 0-10 ok x+1 x+2\nB 0-10 ok x=2")


def test_a_read_of_what_the_transaction_appends_later_is_inconsistent() -> None:
    assert found("A 0-10 ok x=1 x+1") == {"internal-inconsistency"}


def test_reading_uncommitted_proves_no_commit_of_what_crashed() -> None:
    crashed = CRASHED["crashed writers, too, write in one order"][0]
    assert found(crashed, promise=Isolation.READ_UNCOMMITTED) == set()


def test_a_key_to_which_a_value_is_appended_twice_is_in_doubt_and_no_other() -> None:
    part = part_of("A 0-10 ok x+1\nB 0-10 ok x+1\nC 0-10 ok x=1 y=7")
    assert len(part.doubts) == 1
    assert {kind.check for kind in part.list_anomalies if kind.spelled} == {"garbage-element"}


def test_many_unread_appends_after_many_reads_make_few_edges() -> None:
    writers = [f"A {n}-{n} ok x= x+{n + 1}" for n in range(300)]
    part = part_of("\n".join([*writers, *(f"B {n}-{n} ok x=" for n in range(300))]))
    assert len(part.edges) < 3000
    cycles = cycles_in([part], promise=Isolation.SNAPSHOT).spelled
    assert [(cycle.kind.value, len(cycle.links)) for cycle in cycles] == [("G2-item", 2)]


def test_a_component_of_one_long_cycle_is_proved_by_all_of_it() -> None:
    count = 60
    ring = [f"A 0-10 ok k{n}= k{(n + 1) % count}+1" for n in range(count)]
    (cycle,) = cycles_in([part_of("\n".join(ring))], promise=Isolation.SERIALIZABLE).spelled
    assert (cycle.kind.value, len(cycle.links), cycle.transactions) == ("G2-item", count, count)


def test_steps_in_any_order_of_rows_are_the_same_history() -> None:
    rows = transactions_of(LIES["G1c"].text)
    part = inferred(pa.Table.from_pylist(rows[::-1], schema=MICRO_OPERATIONS))
    assert [
        cycle.kind.value for cycle in cycles_in([part], promise=Isolation.SERIALIZABLE).spelled
    ] == ["G1c"]


def test_a_key_in_two_pieces_is_refused() -> None:
    rows = transactions_of("A 0-10 ok x+1 y+1\nB 0-10 ok x=1")
    with pytest.raises(ValueError, match="do not follow each other"):
        inferred(pa.Table.from_pylist([rows[0], rows[2], rows[1]], schema=MICRO_OPERATIONS))
