"""Requests to change an ISR, found by what they ask for and by when they were under way."""

from dataclasses import dataclass, replace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from fencepost.checkers.facts import Facts
from fencepost.checkers.metadata.isr_changes import IsrDecisions, IsrRequests
from fencepost.checkers.metadata.partition_states import Cause, PartitionHistory, PartitionVersion
from fencepost.checkers.metadata.rpcs import Rpc

VERSION = PartitionVersion(
    metadata_offset=0,
    timestamp_ms=0,
    controller_epoch=1,
    cause=Cause.CHANGED,
    replicas=(1, 2),
    adding=(),
    removing=(),
    isr=(1,),
    elr=(),
    last_known_elr=(),
    leader=1,
    leader_epoch=0,
    partition_epoch=0,
    recovering=False,
)
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


@dataclass(frozen=True)
class _Asked:
    """The fields of a request by which it fits a version."""

    reached_ns: int
    answered_ns: int | None
    epoch: int

    def of(self, column: str) -> Any:
        return {"broker_epoch": self.epoch, "isr_epochs": (), "isr": [1]}[column]


@given(
    st.lists(st.tuples(st.integers(0, 900), st.integers(1, 2)), min_size=1, max_size=8),
    st.integers(0, 900),
    st.none() | st.integers(0, 500),
    st.integers(0, 8),
)
def test_a_request_fits_the_versions_for_which_it_was_under_way(
    decided: list[tuple[int, int]], reached_ms: int, lasted_ms: int | None, epoch: int
) -> None:
    versions = [
        replace(VERSION, metadata_offset=place, timestamp_ms=at_ms, isr=(member,))
        for place, (at_ms, member) in enumerate(decided)
    ]
    history = PartitionHistory(topic="t", topic_id="id", partition=0, versions=versions)
    facts = Facts(node_ids={})
    ms = 1_000_000
    answered_ns = None if lasted_ms is None else (reached_ms + lasted_ms) * ms
    rpc = cast("Rpc", _Asked(reached_ms * ms, answered_ns, epoch))
    requests, decisions = IsrRequests((rpc,), {}), IsrDecisions(history, facts)
    slowly = [
        one.metadata_offset > epoch
        and requests.under_way(
            frozenset(one.isr),
            from_ns=facts.earliest_ns(one.timestamp_ms),
            until_ns=facts.latest_ns(one.timestamp_ms),
        )
        for one in versions
    ]
    for _ in range(2):
        assert decisions.fitting_count(rpc) == len(list(filter(None, slowly)))
