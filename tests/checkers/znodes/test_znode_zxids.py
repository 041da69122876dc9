"""Zxids: each names one change, and they rise; what is found, nearly found, and let pass."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proving import assert_proof, proofs_in, source_of
from znode_histories import Row, absent, by_key, crashed, made, read, znodes

from fencepost.checkers.znodes.operations import ZnodeOperation
from fencepost.checkers.znodes.zxids import zxid_of, zxids_out_of_order

CREATED = made("create", 0, 5, life=10, version=0, value=1)


def change(call: int, end: int, zxid: int, *, session: int = 2, version: int = 1) -> Row:
    row = made("set", call, end, life=10, version=version, value=call + 100, zxid=zxid)
    return row | {"session": session}


def shown(call: int, end: int, zxid: int, *, session: int = 3, value: int = 9) -> Row:
    row = read(call, end, life=10, version=4, value=value, zxid=zxid)
    return row | {"session": session}


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        pytest.param(
            [CREATED, change(6, 8, 10)], [CREATED, change(6, 8, 11)], id="no greater than before"
        ),
        pytest.param(
            [change(0, 5, 20), change(6, 8, 15, session=4)],
            [change(0, 6, 20), change(6, 8, 15, session=4)],
            id="less than one that had returned",
        ),
        pytest.param(
            [change(0, 7, 20), change(6, 8, 15)],
            [change(0, 7, 20), change(6, 8, 15, session=4)],
            id="less than one that its session queued earlier",
        ),
        pytest.param(
            [crashed("set", 0, value=9), shown(1, 5, 20), change(6, 8, 15)],
            [crashed("set", 0, value=9), shown(1, 6, 20), change(6, 8, 15)],
            id="less than a read of what a crashed write made",
        ),
        pytest.param(
            [change(0, 7, 20), change(6, 8, 20, session=4, version=2)],
            [change(0, 7, 20), change(6, 8, 21, session=4, version=2)],
            id="given to two versions",
        ),
        pytest.param(
            [change(6, 8, 20), change(6, 9, 20, session=4)],
            [change(6, 8, 20), crashed("set", 6, value=7)],
            id="given to two writes of one version",
        ),
        pytest.param(
            [change(0, 7, 20), made("delete", 6, 8, life=10, version=1, zxid=20, session=4)],
            [change(0, 7, 20), made("delete", 6, 8, life=10, version=1, zxid=21, session=4)],
            id="given to a set and a delete",
        ),
        pytest.param(
            [shown(0, 5, 20, value=9), shown(6, 8, 20, value=8)],
            [shown(0, 5, 20, value=9), shown(6, 8, 20, value=9), absent(9, 9)],
            id="read with two values",
        ),
    ],
)
def test_a_wrong_zxid_is_told_from_the_nearest_right_one(
    wrong: list[Row], right: list[Row]
) -> None:
    ((_, found),) = zxids_out_of_order({"/x": znodes(*wrong)})
    assert found.never_count == 1
    ((_, found),) = zxids_out_of_order({"/x": znodes(*right)})
    assert found.never_count == 0


def test_a_crashed_change_is_held_to_nothing() -> None:
    late = crashed("set", 6, value=7)
    ((_, found),) = zxids_out_of_order({"/x": znodes(CREATED, late, shown(7, 8, 9, value=7))})
    assert (found.never_count, found.case_count) == (0, 2)


def test_zxids_are_compared_over_all_znodes() -> None:
    found = dict(zxids_out_of_order(by_key(x=[CREATED], y=[change(6, 8, 10)])))
    assert (found["x"].never_count, found["y"].never_count) == (0, 1)
    assert found["y"].table["operations"].to_pylist() == [[0, 1]]


def test_a_proof_names_both_answers_their_zxids_and_their_epochs() -> None:
    lost, again = change(0, 5, 0x300000007), change(6, 8, 0x100000002)
    ((_, found),) = zxids_out_of_order({"/x": znodes(lost, again)})
    (proof,) = proofs_in(found)
    earlier = {"earlier_zxid": 0x300000007, "earlier_epoch": 3, "key": "/x"}
    assert_proof(proof, "it had returned before", zxid=0x100000002, epoch=1, **earlier)
    assert source_of(proof, "zxid") == "operation 1"
    assert source_of(proof, "earlier_zxid") == "operation 0"
    assert proof.operations == (0, 1)


@given(st.integers(min_value=0, max_value=1 << 32))
def test_the_sweep_decides_as_comparing_all_pairs_does(seed: int) -> None:
    histories = by_key(x=drawn(Random(seed)), y=drawn(Random(seed + 1)))  # draws from hypothesis
    told = [
        (key, one)
        for key, operations in histories.items()
        for one in operations
        if one.zxid is not None and one.is_ok
    ]
    found = dict(zxids_out_of_order(histories))
    for key in histories:
        mine = [member for member in told if member[0] == key]
        assert found[key].case_count == len(mine)
        assert found[key].never_count == sum(is_wrong(member, told) for member in mine)


def is_wrong(member: tuple[str, ZnodeOperation], told: list[tuple[str, ZnodeOperation]]) -> bool:
    key, one = member
    first = min(
        (other for other in told if other[1].zxid == one.zxid),
        key=lambda other: (other[1].is_read, other[1].index),
    )
    another = (first[0], *state(first[1])) != (key, *state(one)) or not one.is_read
    return (not one.is_read and any(precedes(other, one) for _, other in told)) or (
        first[1] is not one and another
    )


def precedes(other: ZnodeOperation, one: ZnodeOperation) -> bool:
    ahead = other.session == one.session and other.index < one.index
    return zxid_of(other) >= zxid_of(one) and (other.end < one.call or ahead)


def state(one: ZnodeOperation) -> tuple[object, ...]:
    return (one.life, one.version, one.value, one.f == "delete")


def drawn(random: Random) -> list[Row]:
    """Changes and reads of few zxids, which rise with the calls more often than not."""
    rows = []
    for _ in range(random.randint(1, 5)):
        call = random.randint(0, 12)
        end = call + random.choice((0, 1, 3, 6))
        zxid = max(1, call + random.choice((-3, 0, 1, 2)))
        columns = {"life": 1, "version": zxid, "zxid": zxid, "session": random.randint(1, 3)}
        columns["value"] = zxid if random.random() < 0.8 else -1
        rows.append(
            made(random.choice(("set", "delete", "read", "sync-read")), call, end, **columns)
        )
        if random.random() < 0.2:
            rows[-1] |= {"outcome": "info", "error": "CONNECTIONLOSS", "return_ns": None}
    return rows
