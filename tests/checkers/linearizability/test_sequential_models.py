"""What each object does, one operation after the other; and what an unknown state allows."""

from random import Random
from typing import Any

import pytest
from object_histories import Flavour, fail, info, ok, random_rows, refused, rows, table

from fencepost.checkers.linearizability.operations import columns_of, operations_of
from fencepost.checkers.linearizability.sequential import SEQUENTIAL, UNKNOWN
from fencepost.checkers.linearizability.words import in_words
from fencepost.history.models import Model


def states(model: Model, *operations: dict[str, Any]) -> list[Any]:
    """The state after each operation, in the order of the calls, up to one that is refused."""
    sequential = SEQUENTIAL[model]
    state: Any = sequential.initial
    after = []
    for operation in operations_of(columns_of(table(rows(*operations)), model), model):
        state = sequential.step(state, operation)
        after.append(state)
    return after


def test_a_register_holds_what_was_written() -> None:
    assert states(
        Model.REGISTER,
        ok("read", 0, 1),
        ok("write", 1, 2, value=5),
        ok("cas", 2, 3, expected=5, value=6),
        refused(3, 4, expected=5, value=7),
        ok("read", 4, 5, value=5),
    ) == [(None,), (5,), (6,), (6,), None]


def test_a_versioned_register_counts_its_changes() -> None:
    assert states(
        Model.VERSIONED_REGISTER,
        ok("read", 0, 1, version=0),
        ok("cas", 1, 2, expected=0, version=1, value=5),
        refused(2, 3, expected=0, value=9),
        info("cas", 3, expected=1, value=6),
        ok("write", 4, 5, version=4, value=7),
    ) == [(0, None), (1, 5), (1, 5), (2, 6), None]


def test_a_log_gives_offsets_one_by_one() -> None:
    assert states(
        Model.LOG,
        ok("read", 0, 1, version=0),
        ok("append", 1, 2, version=0, value=5),
        info("append", 2, value=6),
        ok("read", 3, 4, version=1, value=6),
        ok("read", 4, 5, version=1),
    ) == [(), (5,), (5, 6), (5, 6), None]


def test_what_says_nothing_is_left_out() -> None:
    silent = rows(
        fail("add", 0, 1, value=1), info("read", 0), ok("read", 0, 1), fail("read", 0, 1, value=1)
    )
    assert len(columns_of(table(silent), Model.COUNTER)) == 0


@pytest.mark.parametrize("model", SEQUENTIAL)
def test_an_unknown_state_allows_whatever_any_state_allows(model: Model) -> None:
    """A run of operations that fits some state fits from an unknown one, too."""
    step = SEQUENTIAL[model].step
    for seed in range(100):
        history = random_rows(Flavour(model=model, deltas=(1, -2)), Random(seed))
        state: Any = SEQUENTIAL[model].initial
        unknown: Any = UNKNOWN
        for operation in operations_of(columns_of(table(history), model), model):
            after = step(state, operation)
            if after is None:
                continue
            state = after
            unknown = step(unknown, operation)
            assert unknown in (UNKNOWN, state)


@pytest.mark.parametrize(
    ("model", "row", "words"),
    [
        (Model.REGISTER, ok("read", 0, 1), "read() -> nothing"),
        (Model.REGISTER, ok("write", 0, 1, value=3), "write(3)"),
        (Model.REGISTER, refused(0, 1, expected=1, value=2), "cas(1, 2) -> refused"),
        (Model.REGISTER, info("write", 0, value=3), "write(3) -> ?"),
        (
            Model.VERSIONED_REGISTER,
            ok("read", 0, 1, value=3, version=2),
            "read() -> 3 at version 2",
        ),
        (
            Model.VERSIONED_REGISTER,
            ok("cas", 0, 1, expected=1, value=2, version=2),
            "cas(1, 2) -> version 2",
        ),
        (Model.LOG, ok("append", 0, 1, value=7, version=2), "append(7) -> offset 2"),
        (Model.LOG, ok("read", 0, 1, value=7, version=2), "read(2) -> 7"),
        (Model.SET, ok("read", 0, 1, values=[3, 1]), "read() -> {1, 3}"),
        (Model.SET, ok("read", 0, 1, values=list(range(9))), "read() -> {0, 1, 2, 3, 4, 5, …}"),
        (Model.COUNTER, ok("add", 0, 1, value=-3), "add(-3)"),
    ],
)
def test_operations_are_told_in_words(model: Model, row: dict[str, Any], words: str) -> None:
    (operation,) = operations_of(columns_of(table(rows(row)), model), model)
    assert in_words(operation, model) == words
