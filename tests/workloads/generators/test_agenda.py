from hypothesis import given
from hypothesis import strategies as st

from fencepost.workloads.generators.agenda import Agenda


def test_a_key_that_cannot_be_read_leaves_the_others_their_time() -> None:
    agenda = Agenda([7, 8, 9], deadline_ns=90)
    assert agenda.next(0) == (7, 30)
    agenda.ended(complete=False)
    assert agenda.next(30) == (8, 50)
    agenda.ended(complete=True)
    assert agenda.next(31) == (9, 61)
    agenda.ended(complete=True)
    # What the others left over is for another try.
    assert agenda.next(33) == (7, 90)
    agenda.ended(complete=False)
    assert agenda.next(90) is None
    assert (agenda.done, agenda.left) == ((8, 9), (7,))


def test_nothing_is_next_when_all_is_read() -> None:
    agenda = Agenda([1], deadline_ns=100)
    agenda.ended(complete=True)
    assert agenda.next(0) is None


@given(
    keys=st.lists(st.integers(0, 99), unique=True, max_size=10),
    deadline_ns=st.integers(1, 10**6),
    ends=st.lists(st.tuples(st.booleans(), st.integers(1, 10**6)), max_size=60),
)
def test_no_read_may_outlast_the_deadline_and_no_key_is_forgotten(
    keys: list[int], deadline_ns: int, ends: list[tuple[bool, int]]
) -> None:
    agenda = Agenda(keys, deadline_ns=deadline_ns)
    now_ns = 0
    for complete, took_ns in ends:
        following = agenda.next(now_ns)
        if following is None:
            break
        _, until_ns = following
        assert now_ns < until_ns <= deadline_ns
        now_ns = min(now_ns + took_ns, until_ns)
        agenda.ended(complete=complete)
    assert sorted([*agenda.done, *agenda.left]) == sorted(keys)
