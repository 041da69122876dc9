"""A bound in an `expect` says on which release a bug came or went: series on both sides show it."""

import pytest

from fencepost.clusters.provision.release_line import ReleaseLine
from fencepost.clusters.systems import system_of
from fencepost.harness.scenario.expectation import parse_expectations
from fencepost.harness.scenario.scenario import load_scenario
from fencepost.harness.scenario.sources import library
from fencepost.harness.series.bounds import untried_bounds


def a_line(*, oldest: tuple[int, ...] = (2, 0), end: tuple[int, ...] = ()) -> ReleaseLine:
    return ReleaseLine(
        title="Kafka",
        known=(),
        oldest=oldest,
        too_old="",
        end=end,
        server=lambda _name: pytest.fail("nothing is fetched"),
        beside=lambda _name: (),
    )


def fires(releases: str, *tried: str) -> dict[str, object]:
    return {"kafka": releases, "invalid": ["lost-write"], "tried": list(tried)}


def holds(releases: str, *tried: str) -> dict[str, object]:
    return {"kafka": releases, "valid": True, "tried": list(tried)}


def refused(releases: str) -> dict[str, object]:
    return {"kafka": releases, "refused": "they have no such message"}


@pytest.mark.parametrize(
    ("entries", "untried"),
    [
        ([fires("<3.5", "3.4.1"), holds(">=3.5", "3.5.2", "4.3.1")], []),
        ([fires("<3.5", "3.4.1"), holds(">=3.5", "4.3.1")], ["3.5"]),
        ([fires(">=3.3,<3.5", "3.4.1"), holds(">=3.5", "3.5.0")], ["3.2", "3.3"]),
        ([holds("<4.0", "3.9.2"), fires(">=4.0", "4.0.0")], []),
        ([holds("<3.0", "2.7.2"), fires(">=3.0", "3.0.1")], ["2.8"]),
        ([fires("<3.6.1", "3.6.0"), holds(">=3.6.1", "3.6.2")], ["3.6.1"]),
        ([fires("==3.7.0", "3.7.0"), holds(">=3.7.1", "3.7.1")], ["3.6"]),
        ([fires("<=3.4.1", "3.4.1")], ["3.4.2"]),
        ([refused("<2.7"), fires(">=2.7", "2.7.2")], []),
        ([refused("<2.7"), fires(">=2.7", "3.9.2")], ["2.7"]),
        ([refused("<2.7"), fires(">=2.8", "2.8.2")], ["2.7"]),
        ([fires(">3.4.1", "3.4.2")], ["3.4.1"]),
        ([{"valid": True, "tried": ["4.3.1"]}], []),
        ([{"level": ">=2", "valid": True}], []),
        # It rests on no series: another scenario has them.
        ([{"kafka": "<4.4", "valid": True}], []),
    ],
)
def test_a_bound_is_shown_by_the_first_release_on_each_side(
    entries: list[dict[str, object]], untried: list[str]
) -> None:
    found = untried_bounds(parse_expectations(entries), a_line())
    assert sorted(one.untried for one in found) == untried


def test_no_release_is_asked_for_that_cannot_be_run() -> None:
    entries = parse_expectations([fires(">=3.3,<4.0", "3.3.2", "3.9.2")])
    assert not list(untried_bounds(entries, a_line(oldest=(3, 3), end=(4, 0))))
    assert len(list(untried_bounds(entries, a_line()))) == 2


def test_every_bound_has_series_on_both_sides() -> None:
    """A new bound comes with its series, as `fencepost track-record --missing` says."""
    found: dict[str, list[str]] = {}
    for path in library().values():
        scenario = load_scenario(path, [])
        line = system_of(scenario.cluster).makes[0].line
        for one in untried_bounds(scenario.expect, line) if line else ():
            found.setdefault(scenario.name, []).append(one.untried)
    assert found == {}
