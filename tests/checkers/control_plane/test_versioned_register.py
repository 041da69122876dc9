"""The kernel of C1: bounds, refusals, crashes; and trying all schedules says the same."""

from collections.abc import Collection, Sequence
from itertools import combinations_with_replacement

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.checkers.control_plane.versioned_register import (
    ALWAYS,
    NEVER,
    Contradiction,
    OperationKind,
    RegisterOperation,
    contradiction,
)


def read(version: int, call: int, end: int) -> RegisterOperation:
    return RegisterOperation(kind=OperationKind.READ, version=version, call=call, end=end)


def swap(version: int, call: int, end: int = NEVER) -> RegisterOperation:
    return RegisterOperation(kind=OperationKind.SWAP, version=version, call=call, end=end)


def refused(version: int, call: int, end: int) -> RegisterOperation:
    return RegisterOperation(kind=OperationKind.REFUSED, version=version, call=call, end=end)


def crashed(version: int, call: int) -> RegisterOperation:
    return RegisterOperation(kind=OperationKind.CRASHED, version=version, call=call)


def wrong(*operations: RegisterOperation, versions: int = 3, called: Collection[int] = ()) -> bool:
    return contradiction(operations, version_count=versions, called=called) is not None


def test_a_version_is_read_before_the_swap_that_made_it_was_called() -> None:
    assert contradiction([read(1, 0, 4), swap(1, 5, 9)], version_count=2) == Contradiction(
        early=1, early_version=1, bound=5, late=0, late_version=1
    )
    assert not wrong(read(1, 0, 5), swap(1, 5, 9))


def test_an_old_version_is_read_after_a_newer_one_was_returned() -> None:
    assert wrong(swap(2, 0, 3), read(1, 4, 5))
    assert not wrong(swap(2, 0, 4), read(1, 4, 5))


def test_a_read_that_may_have_been_at_any_time_before_its_return_can_be_old_but_not_early() -> None:
    assert not wrong(swap(2, 0, 3), read(1, ALWAYS, 5))
    assert wrong(swap(2, 6, 9), read(2, ALWAYS, 5))


def test_a_swap_is_refused_though_its_version_held_all_the_time() -> None:
    held = (swap(1, 0, 1), read(1, 9, 9))
    assert wrong(*held, refused(1, 2, 8))
    assert not wrong(*held, refused(1, 1, 8))
    assert not wrong(*held, refused(1, 2, 9))


def test_a_refusal_that_only_the_earlier_version_explains_moves_it() -> None:
    moved = (refused(1, 5, 6), swap(2, 7, 9))
    assert not wrong(*moved, read(1, 0, 5))
    assert wrong(*moved, read(1, 0, 4))


def test_an_unanswered_swap_owes_nothing_unless_its_version_must_be_somebodys() -> None:
    late = (read(1, 0, 4), crashed(0, 5))
    assert not wrong(*late)
    assert wrong(*late, called={1})
    assert not wrong(*late, crashed(0, 4), called={1})
    assert not wrong(*late, swap(1, 0, NEVER), called={1})


def test_a_refusal_may_go_back_to_a_version_that_was_never_seen() -> None:
    last = (swap(2, 0, 1), refused(2, 4, 6))
    assert wrong(*last)
    assert not wrong(*last, crashed(2, 6))
    assert wrong(*last, crashed(2, 7))


def test_a_version_is_not_there_before_it_was_written_by_whomever() -> None:
    write = RegisterOperation(kind=OperationKind.WRITE, version=1, call=5)
    assert wrong(write, read(1, 0, 4))
    assert not wrong(write, read(1, 0, 5))
    assert wrong(read(1, 0, 6), write, crashed(0, 7), called={1})


def test_a_version_that_never_was_did_not_hold() -> None:
    assert not wrong(refused(7, 0, 1), refused(-1, 0, 1))


def test_nothing_at_all_is_linearizable() -> None:
    assert not wrong(versions=0)


LAST = 7
VERSIONS = 3


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[RegisterOperation], frozenset[int]]:
    operations = []
    for _ in range(draw(st.integers(0, 7))):
        kind = draw(st.sampled_from(list(OperationKind)))
        call = draw(st.integers(0, LAST))
        end = min(LAST, call + draw(st.integers(0, 3)))
        version = draw(st.integers(0, VERSIONS - 1))
        operations.append(
            RegisterOperation(kind=kind, version=version, call=call)
            if kind in (OperationKind.CRASHED, OperationKind.WRITE)
            else RegisterOperation(kind=kind, version=version, call=call, end=end)
        )
    return operations, frozenset(draw(st.sets(st.integers(1, VERSIONS - 1))))


def explained(operations: Sequence[RegisterOperation], moments: Sequence[int]) -> bool:
    """Whether these moments, the last one of a version never seen, satisfy all operations."""
    return all(_explains(operation, moments) for operation in operations)


def _explains(operation: RegisterOperation, moments: Sequence[int]) -> bool:
    version, call, end = operation.version, operation.call, operation.end
    if operation.kind is OperationKind.SWAP:
        return call <= moments[version] <= end
    if operation.kind is OperationKind.WRITE:
        return call <= moments[version]
    held = range(moments[version], min(moments[version + 1], LAST + 1) + 1)
    if operation.kind is OperationKind.READ:
        return any(call <= moment <= end for moment in held)
    if operation.kind is OperationKind.REFUSED:
        return moments[version] >= call or moments[version + 1] <= end
    return True


def slow(operations: Sequence[RegisterOperation], called: Collection[int]) -> bool:
    """Whether some schedule explains them: all are tried."""
    calls = {
        version: [one.call for one in operations if _may_have_made(one, version)]
        for version in range(VERSIONS + 1)
    }
    made = {one.version for one in operations if one.kind is OperationKind.SWAP}
    for moments in combinations_with_replacement([*range(-1, LAST + 1), NEVER], VERSIONS + 1):
        bound = [version for version in called if version not in made and calls[version]]
        if any(moments[version] < min(calls[version]) for version in bound):
            continue
        unseen = moments[VERSIONS]
        if unseen != NEVER and (not calls[VERSIONS] or unseen < min(calls[VERSIONS])):
            continue
        if explained(operations, moments):
            return True
    return False


def _may_have_made(operation: RegisterOperation, version: int) -> bool:
    return operation.kind is OperationKind.CRASHED and operation.version + 1 == version


@settings(max_examples=5 * settings().max_examples)
@given(histories())
def test_trying_all_schedules_says_the_same(
    drawn: tuple[list[RegisterOperation], frozenset[int]],
) -> None:
    operations, called = drawn
    found = contradiction(operations, version_count=VERSIONS, called=called)
    assert (found is None) == slow(operations, called)


@settings(max_examples=2 * settings().max_examples)
@given(histories())
def test_the_two_operations_of_a_contradiction_name_moments_that_exclude_each_other(
    drawn: tuple[list[RegisterOperation], frozenset[int]],
) -> None:
    operations, called = drawn
    found = contradiction(operations, version_count=VERSIONS, called=called)
    if found is not None:
        assert found.early_version <= found.late_version
        assert operations[found.early].call == found.bound
        assert operations[found.late].end < found.bound


@pytest.mark.parametrize("count", [20_000])
def test_a_long_good_history_is_linear_to_check(count: int) -> None:
    operations = [swap(version, 10 * version, 10 * version + 5) for version in range(count)]
    operations += [
        refused(version - 1, 10 * version + 1, 10 * version + 9) for version in range(1, count)
    ]
    assert not wrong(*operations, versions=count)
