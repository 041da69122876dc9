"""Reads of znodes, and acknowledged writes: what each check finds, nearly finds, and lets pass."""

import pytest
from proving import assert_proof, proofs_in
from znode_histories import Row, absent, by_key, crashed, made, read, znodes

from fencepost.checkers.anomaly import Found
from fencepost.checkers.znodes.linearizable import judgement
from fencepost.checkers.znodes.lost_writes import lost_writes
from fencepost.checkers.znodes.sessions import sessions_that_went_back
from fencepost.checkers.znodes.stale_reads import DEPOSED_NS, Disturbance, stale_sync_reads

CREATED = made("create", 0, 5, life=10, version=0, value=1)
SET = made("set", 6, 8, life=10, version=1, value=2)
DELETED = made("delete", 6, 8, life=10, version=0)


def stale(*rows: Row, broken: tuple[Disturbance, ...] = ()) -> Found:
    operations = znodes(*rows)
    return stale_sync_reads("/x", operations, judgement(operations), broken)


@pytest.mark.parametrize(
    ("rows", "call"),
    [
        pytest.param([CREATED, SET], 8, id="an earlier version"),
        pytest.param([CREATED, DELETED], 8, id="a life that is over"),
        pytest.param([CREATED, crashed("set", 6, value=7), SET | {"version": 2}], 8, id="crashed"),
    ],
)
def test_a_sync_read_of_what_was_replaced_before_its_call_is_stale(
    rows: list[Row], call: int
) -> None:
    def late(call: int) -> Row:
        return read(call, 12, f="sync-read", life=10, version=0, value=1)

    assert stale(*rows, late(call + 1)).never_count == 1
    assert stale(*rows, late(call)).never_count == 0
    assert stale(*rows, late(call + 1) | {"f": "read"}).case_count == 0


def test_a_sync_read_that_misses_a_life_is_stale_unless_the_life_can_have_ended() -> None:
    held = [CREATED, made("delete", 14, 20, life=10, version=0), absent(6, 13, f="sync-read")]
    assert stale(*held).never_count == 1
    early = [held[0], held[1] | {"call_ns": 13}, held[2]]
    assert stale(*early).never_count == 0


def test_a_read_that_was_overtaken_by_an_earlier_read_is_stale() -> None:
    slow = made("set", 6, 30, life=10, version=1, value=2)
    newer = read(7, 9, life=10, version=1, value=2)
    older = read(10, 12, f="sync-read", life=10, version=0, value=1)
    assert stale(CREATED, slow, newer, older).never_count == 1
    assert stale(CREATED, slow, newer, older | {"call_ns": 9}).never_count == 0


def test_a_stale_sync_read_is_allowed_while_something_is_broken_and_a_while_after() -> None:
    late = read(9, 12, f="sync-read", life=10, version=0, value=1)
    during = stale(CREATED, SET, late, broken=(Disturbance(begin_ns=10, end_ns=99),))
    assert (during.never_count, during.allowed_count) == (0, 1)
    before = stale(CREATED, SET, late, broken=(Disturbance(begin_ns=13, end_ns=99),))
    assert (before.never_count, before.allowed_count) == (1, 0)
    much_later = {"call_ns": DEPOSED_NS + 9, "return_ns": DEPOSED_NS + 10}
    after = stale(CREATED, SET, late | much_later, broken=(Disturbance(begin_ns=1, end_ns=8),))
    assert (after.never_count, after.allowed_count) == (1, 0)


@pytest.mark.parametrize(
    ("rows", "lost"),
    [
        pytest.param([CREATED, absent(6, 8, f="final-read")], 1, id="gone"),
        pytest.param([CREATED, absent(6, 8, f="final-read"), crashed("delete", 7)], 0, id="crash"),
        pytest.param([CREATED, DELETED, absent(9, 9, f="final-read")], 0, id="deleted"),
        pytest.param([CREATED, absent(5, 8, f="final-read")], 0, id="not acknowledged before it"),
        pytest.param([CREATED, absent(6, 8)], 0, id="a plain read"),
        pytest.param(
            [CREATED, SET, read(9, 9, f="final-read", life=10, version=0, value=1)], 1, id="older"
        ),
        pytest.param(
            [CREATED, SET, read(9, 9, f="final-read", life=10, version=1, value=3)], 1, id="other"
        ),
        pytest.param(
            [CREATED, SET, read(9, 9, f="final-read", life=10, version=2, value=3)], 0, id="newer"
        ),
        pytest.param(
            [CREATED, DELETED, read(9, 9, f="final-read", life=10, version=0, value=1)],
            1,
            id="back again",
        ),
        pytest.param(
            [CREATED, read(9, 9, f="final-read", life=20, version=0, value=3)], 1, id="replaced"
        ),
    ],
)
def test_an_acknowledged_write_is_lost_if_a_final_read_cannot_come_after_it(
    rows: list[Row], lost: int
) -> None:
    assert lost_writes("/x", znodes(*rows)).never_count == lost


def test_a_lost_write_is_named_with_the_read_that_proves_it() -> None:
    found = lost_writes("/x", znodes(CREATED, absent(6, 8, f="final-read", server="s2")))
    assert found.case_count == 1
    (proof,) = proofs_in(found)
    lost = {"change_operation": 0, "version": 0, "life": 10, "value": 1}
    assert_proof(proof, "acknowledged, and gone", **lost, operation=1, server="s2")


def went_back(*, doubt: str = "", **rows_of: list[Row]) -> dict[str, Found]:
    return dict(sessions_that_went_back(by_key(**rows_of), doubt=doubt))


def in_session(row: Row, session: int) -> Row:
    return row | {"session": session}


def test_a_session_does_not_see_less_of_a_znode_than_before() -> None:
    old = read(12, 14, life=10, version=0, value=1, zxid=10)
    seen = read(9, 11, life=10, version=1, value=2, zxid=11)
    assert went_back(x=[CREATED, SET, seen, old])["x"].never_count == 1
    others = [in_session(CREATED, 2), in_session(SET, 2), in_session(seen, 3), in_session(old, 4)]
    assert went_back(x=others)["x"].never_count == 0


def test_a_session_that_saw_a_later_change_of_another_znode_sees_the_earlier_one_too() -> None:
    x = [in_session(CREATED, 2), in_session(SET, 2)]
    old = read(20, 22, life=10, version=0, value=1, zxid=10)
    later = made("create", 9, 12, life=30, version=0, value=5, zxid=30)
    assert went_back(x=[*x, old], y=[later])["x"].never_count == 1
    assert went_back(x=[*x, old], y=[in_session(later, 2)])["x"].never_count == 0


def test_a_session_sees_its_own_create_until_the_life_is_over() -> None:
    mine = [CREATED, absent(9, 10)]
    assert (
        went_back(x=[*mine, made("set", 12, 13, life=10, version=1, value=2)])["x"].never_count == 1
    )
    assert went_back(x=[*mine, crashed("set", 12, value=2)])["x"].never_count == 0
    assert (
        went_back(x=[*mine, made("set", 10, 13, life=10, version=1, value=2)])["x"].never_count == 0
    )


def test_sessions_are_not_judged_by_zxids_that_are_no_order() -> None:
    old = read(9, 11, life=10, version=0, value=1, zxid=10)
    assert went_back(x=[CREATED, SET, old])["x"].never_count == 1
    doubted = went_back(x=[CREATED, SET, old], doubt="given twice")["x"]
    assert (doubted.never_count, doubted.case_count, doubted.doubt) == (0, 0, "given twice")
