"""Writes on a znode: the smallest wrong histories, the nearest right ones, and all orders."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proving import assert_proof, proofs_in
from znode_histories import (
    Row,
    absent,
    crashed,
    fits,
    made,
    random_history,
    read,
    refused,
    znodes,
)

from fencepost.checkers.znodes.linearizable import found_of, judgement, unseen_of

FINAL = frozenset({"final-read"})


def anomalies(*rows: Row) -> int:
    return found_of("/x", judgement(znodes(*rows))).never_count


CREATED = made("create", 0, 5, life=10, version=0, value=1)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        pytest.param(
            [CREATED, made("create", 6, 9, life=20, version=0, value=2)],
            [
                CREATED,
                made("delete", 6, 7, life=10, version=0),
                made("create", 6, 9, life=20, version=0, value=2),
            ],
            id="created twice without a delete",
        ),
        pytest.param(
            [CREATED, absent(6, 8, f="final-read")],
            [CREATED, absent(6, 8, f="read")],
            id="gone at the final read, without a delete",
        ),
        pytest.param(
            [CREATED, *(made("set", 6, 9, life=10, version=1, value=value) for value in (2, 3))],
            [
                CREATED,
                made("set", 6, 9, life=10, version=1, value=2),
                made("set", 6, 9, life=10, version=2, value=3),
            ],
            id="one version made twice",
        ),
        pytest.param(
            [
                CREATED,
                made("set", 6, 9, life=10, version=2, value=2),
                made("set", 10, 12, life=10, version=1, value=3),
            ],
            [
                CREATED,
                made("set", 6, 9, life=10, version=2, value=2),
                made("set", 9, 12, life=10, version=1, value=3),
            ],
            id="versions in the wrong order",
        ),
        pytest.param(
            [CREATED, refused("create", 0, 5, value=2), refused("set", 6, 9, value=3)],
            [CREATED, refused("create", 0, 5, value=2), refused("set", 5, 9, value=3)],
            id="a set refused though the znode is there",
        ),
        pytest.param(
            [refused("create", 0, 4, value=2), made("create", 5, 9, life=10, version=0, value=1)],
            [refused("create", 0, 5, value=2), made("create", 5, 9, life=10, version=0, value=1)],
            id="a create refused though there is nothing",
        ),
        pytest.param(
            [CREATED, refused("cas", 6, 9, expected=0, value=2)],
            [CREATED, refused("cas", 6, 9, expected=1, value=2)],
            id="a cas refused though its version is there",
        ),
        pytest.param(
            [CREATED, read(6, 8, life=10, version=1, value=7)],
            [CREATED, crashed("set", 6, value=7), read(6, 8, life=10, version=1, value=7)],
            id="a read of what was never written",
        ),
        pytest.param(
            [CREATED, read(1, 4, life=20, version=0, value=9), crashed("create", 5, value=9)],
            [
                CREATED,
                read(1, 4, life=20, version=0, value=9),
                crashed("create", 4, value=9),
                crashed("delete", 0),
            ],
            id="a read before the write",
        ),
        pytest.param(
            [
                CREATED,
                made("delete", 6, 7, life=10, version=0),
                read(8, 9, life=10, version=1, value=2),
                crashed("set", 1, value=2),
            ],
            [
                CREATED,
                made("delete", 6, 7, life=10, version=1),
                read(8, 9, life=10, version=1, value=2),
                crashed("set", 1, value=2),
            ],
            id="a version after the last one",
        ),
    ],
)
def test_a_wrong_history_is_told_from_the_nearest_right_one(
    wrong: list[Row], right: list[Row]
) -> None:
    assert not fits(znodes(*wrong), held=FINAL)
    assert anomalies(*wrong) > 0
    assert fits(znodes(*right), held=FINAL)
    assert anomalies(*right) == 0


def test_a_crashed_delete_explains_that_nothing_is_there() -> None:
    gone = [CREATED, absent(6, 8, f="final-read")]
    assert anomalies(*gone) > 0
    assert anomalies(*gone, crashed("delete", 7)) == 0
    assert anomalies(*gone, crashed("delete", 7, expected=3)) > 0


def test_a_crashed_delete_ends_one_life_only() -> None:
    lives = [
        CREATED,
        made("create", 6, 8, life=20, version=0, value=2),
        absent(9, 10, f="final-read"),
    ]
    assert anomalies(*lives, crashed("delete", 1)) > 0
    assert anomalies(*lives, crashed("delete", 1), crashed("delete", 1)) == 0


def test_a_proof_names_the_operations_that_contradict_each_other() -> None:
    judged = judgement(znodes(CREATED, refused("set", 6, 9, value=3)))
    found = found_of("/x", judged)
    assert found.case_count == 2
    assert found.table["operations"].to_pylist() == [[0, 1]]
    (proof,) = proofs_in(found)
    refusal = {"told_operation": 1, "call": 6, "return_": 9}
    made = {"operation_2": 0, "version": 0, "value": 1}
    assert_proof(proof, "set {told_operation} was refused", state_life=10, **refusal, **made)


@given(st.integers(min_value=0, max_value=1 << 32), st.sampled_from([0.0, 0.2, 0.4]))
def test_the_schedule_decides_as_trying_every_order_does(seed: int, crash: float) -> None:
    operations = random_history(Random(seed), crash=crash)  # draws from hypothesis
    judged = judgement(operations)
    possible = fits(operations, held=FINAL)
    # Crashed writes that no answer shows make it too mild, never too hard.
    if not unseen_of(operations, judged.chain):
        assert (not judged.broken) == possible
    elif judged.broken:
        assert not possible
