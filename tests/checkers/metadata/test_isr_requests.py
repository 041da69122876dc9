"""Requests to change an ISR, found by what they ask for and by when they were under way."""

from dataclasses import dataclass
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from checkers.metadata.isr_changes import IsrRequests
from checkers.metadata.rpcs import Rpc

ISRS = st.lists(st.integers(1, 2), min_size=1, max_size=3)
TOLD = st.lists(
    st.tuples(ISRS, st.none() | st.integers(0, 9), st.none() | st.integers(0, 9)), max_size=8
)


@dataclass(frozen=True)
class _Told:
    """The fields of a request that the index reads."""

    isr: list[int]
    reached_ns: int | None
    answered_ns: int | None

    def of(self, _column: str) -> Any:
        return self.isr


@given(told=TOLD, isr=ISRS, from_ns=st.integers(0, 9), until_ns=st.integers(0, 9))
def test_requests_under_way_are_those_of_the_isr_that_may_have_been_decided_then(
    told: list[tuple[list[int], int | None, int | None]],
    isr: list[int],
    from_ns: int,
    until_ns: int,
) -> None:
    several = [
        _Told(of, at_ns, None if at_ns is None or lasted is None else at_ns + lasted)
        for of, at_ns, lasted in told
    ]
    requests = IsrRequests(tuple(cast("Rpc", one) for one in several), {})
    found = requests.under_way(frozenset(isr), from_ns=from_ns, until_ns=until_ns)
    expected = [
        one
        for one in several
        if set(one.isr) == set(isr)
        and one.reached_ns is not None
        and one.reached_ns <= until_ns
        and (one.answered_ns is None or one.answered_ns >= from_ns)
    ]
    assert list(map(id, found)) == list(map(id, expected))
