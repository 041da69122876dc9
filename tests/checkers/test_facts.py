"""When a timestamp of the metadata log may have been taken, with clocks that were put wrong."""

from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from manifests import MANIFEST

from fencepost.checkers.facts import Facts, facts_of
from fencepost.checkers.metadata.log_of_record import BatchTimes
from fencepost.history.clock import ClockSkew

S = 1_000_000_000
MS = 1_000_000


def skew(from_s: float, until_s: float, least_s: float, most_s: float) -> ClockSkew:
    times = (round(time_s * S) for time_s in (from_s, until_s, least_s, most_s))
    from_ns, until_ns, least_ns, most_ns = times
    return ClockSkew(
        node="controller-1",
        from_ns=from_ns,
        until_ns=until_ns,
        ahead_min_ns=least_ns,
        ahead_max_ns=most_ns,
    )


def spans_s(*skews: ClockSkew, at_s: float) -> tuple[float, float]:
    """From when to when a clock may have shown this time; the tolerance taken off again."""
    facts = Facts(node_ids={}, skews=skews)
    timestamp_ms = round(at_s * 1000)
    return facts.first_ms(timestamp_ms) / 1000, facts.last_ms(timestamp_ms) / 1000


def test_a_right_clock_is_taken_at_its_word() -> None:
    assert spans_s(at_s=25) == (25, 25)


@pytest.mark.parametrize(
    ("stated", "apart_s"),
    [
        ({"cluster": "simulated"}, 0),
        ({"cluster": "simulated-zookeeper"}, 0),
        ({"cluster": "kafka", "clock_watched": True}, 0),
        ({"cluster": "kafka"}, 28.8),
    ],
)
def test_wall_clocks_drift_for_as_long_as_a_run_lasts_but_in_virtual_time_or_where_watched(
    stated: dict[str, Any], apart_s: float
) -> None:
    facts = facts_of(replace(MANIFEST, **stated))
    after_s = 28_800
    assert facts.latest_ns(after_s * 1000) == round((after_s + apart_s + 0.1) * S)
    assert facts.earliest_ns(after_s * 1000) == round((after_s - apart_s - 0.1) * S)


def test_a_clock_behind_makes_an_earlier_time_mean_a_later_one_perhaps() -> None:
    behind = skew(20, 30, -10, -10)
    assert spans_s(behind, at_s=15) == (15, 25)
    assert spans_s(behind, at_s=5) == (5, 5)
    assert spans_s(behind, at_s=25) == (25, 25)  # it would have been taken at 35


def test_a_clock_ahead_makes_a_later_time_mean_an_earlier_one_perhaps() -> None:
    ahead = skew(20, 30, 10, 10)
    assert spans_s(ahead, at_s=35) == (25, 35)
    assert spans_s(ahead, at_s=25) == (25, 25)


def test_a_clock_that_drifts_or_strobes_may_have_been_anywhere_between() -> None:
    first, last = spans_s(skew(20, 30, 0, 4), at_s=32)
    assert (first, last) == (28, 32)
    assert spans_s(skew(20, 30, -4, 0), at_s=28) == pytest.approx((28, 30.1), abs=0.1)


@given(st.floats(0, 100), st.floats(1, 50), st.floats(-20, 20), st.floats(0, 5), st.floats(0, 1))
def test_the_time_at_which_it_was_taken_is_never_excluded(
    from_s: float, for_s: float, least_s: float, more_s: float, share: float
) -> None:
    wrong = skew(from_s, from_s + for_s, least_s, least_s + more_s)
    facts = Facts(node_ids={}, skews=(wrong,))
    taken_ns = round((from_s + share * for_s) * S)
    shown_ms = (taken_ns + round((least_s + share * more_s) * S)) // MS
    assert facts.earliest_ns(shown_ms) <= taken_ns <= facts.latest_ns(shown_ms)
    assert facts.is_dubious(shown_ms * MS - MS, shown_ms * MS + MS)


@given(
    gaps_s=st.lists(st.tuples(st.floats(0.001, 20), st.booleans()), min_size=2, max_size=6),
    wrong_s=st.tuples(st.floats(0, 60), st.floats(1, 50), st.floats(-20, 20)),
    share=st.floats(0, 1),
)
@example(gaps_s=[(20, False), (9, True)], wrong_s=(25, 5, -14), share=1)
def test_the_time_at_which_a_record_was_appended_is_never_excluded(
    gaps_s: list[tuple[float, bool]], wrong_s: tuple[float, float, float], share: float
) -> None:
    """It is appended until the next batch begins, whose controller's clock may be wrong as well."""
    from_s, for_s, ahead_s = wrong_s
    begun_s = list(accumulate(gap_s for gap_s, _ in gaps_s))
    is_wrong = [
        by_wrong and from_s <= at_s <= from_s + for_s
        for at_s, (_, by_wrong) in zip(begun_s, gaps_s, strict=True)
    ]
    shown_ms = [
        int((at_s + ahead_s * wrong) * 1000) for at_s, wrong in zip(begun_s, is_wrong, strict=True)
    ]
    facts = Facts(
        node_ids={},
        skews=(skew(from_s, from_s + for_s, ahead_s, ahead_s),),
        followings_ms=BatchTimes.of(np.array(shown_ms)).followings_ms,
    )
    for stamp_ms, (begin_s, next_s) in zip(shown_ms, pairwise(begun_s), strict=False):
        appended_ns = (begin_s + share * (next_s - begin_s)) * S
        assert facts.earliest_ns(stamp_ms) <= appended_ns <= facts.latest_ns(stamp_ms)


def test_only_the_clocks_of_controllers_stamp_the_metadata_log() -> None:
    one = skew(20, 30, 1, 1)
    of_both = (one, ClockSkew(**{**_fields(one), "node": "broker-1"}))
    manifest = replace(MANIFEST, clock_skews=of_both)
    assert facts_of(manifest).skews == (one,)


def _fields(one: ClockSkew) -> dict[str, Any]:
    names = ("node", "from_ns", "until_ns", "ahead_min_ns", "ahead_max_ns")
    return {name: getattr(one, name) for name in names}


@pytest.mark.parametrize(
    ("nodes", "voting", "on_zookeeper", "migrating"),
    [
        ("controller-1 broker-1", ("controller-1",), False, False),
        ("zookeeper-1 broker-1", ("zookeeper-1",), True, False),
        ("zookeeper-1 controller-1 broker-1", ("controller-1",), False, True),
    ],
)
def test_who_votes_on_metadata(
    nodes: str, voting: tuple[str, ...], *, on_zookeeper: bool, migrating: bool
) -> None:
    facts = Facts(node_ids={name: number for number, name in enumerate(nodes.split())})
    assert facts.controllers == voting
    assert (facts.on_zookeeper, facts.migrating) == (on_zookeeper, migrating)


def test_a_broker_votes_on_metadata_where_that_is_its_second_role() -> None:
    second = {"broker-1": "controller"}
    facts = Facts(node_ids={"broker-1": 1, "broker-2": 2}, second_roles=second)
    assert facts.controllers == ("broker-1",)
    assert facts.brokers == ("broker-1", "broker-2")
    assert not facts.on_zookeeper
