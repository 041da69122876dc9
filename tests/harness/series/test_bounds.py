"""A bound in an `expect` says on which release a bug came or went: series on both sides show it."""

from collections.abc import Iterator

import pytest
from packaging.specifiers import Specifier
from packaging.version import Version

from harness.scenario.expectation import Expectation, parse_expectations
from harness.scenario.scenario import load_scenario
from harness.scenario.sources import library

_LAST_MINOR = {3: 8, 4: 9}
"""The last minor release before a major one: 2.8 before 3.0, 3.9 before 4.0."""


def unshown(expectations: tuple[Expectation, ...]) -> Iterator[str]:
    """Yield, of every bound, the releases right inside of which none was tried: `3.4.x`, `3.5.1`.

    Where two entries meet, these are both sides of the bound. Where nothing is claimed beyond it,
    it is the side that is claimed.
    """
    for one in expectations:
        tried = [Version(release) for release in one.tried]
        for specifier in one.releases:
            line = _inside(specifier)
            if not any(release.release[: len(line)] == line for release in tried):
                yield ".".join(map(str, line)) + (".x" if len(line) == 2 else "")


def _inside(specifier: Specifier) -> tuple[int, ...]:
    """Return the line of releases, or the release, right inside of a bound."""
    stated = Version(specifier.version).release
    if specifier.operator != "<":
        return stated
    major, minor, *patch = stated
    if patch and patch[0]:
        return (major, minor, patch[0] - 1)
    return (major, minor - 1) if minor else (major - 1, _LAST_MINOR[major])


# The series that are lacking. These lists may only become shorter: a new bound comes with series,
# `fencepost reproduce SCENARIO --kafka RELEASE --runs 3` (ZooKeeper's: `--release`), which
# `fencepost track-record --add FILE` takes in, and the release in `tried`.
MET = {
    # Here the bug shows on one side, and the first release that claims not to have it is untried.
    "last-replica": ["4.1.x"],
    "low-watermark-join": ["2.0.1"],
    "recreated-in-migration-controller-change": ["3.5.x", "3.6.1"],
    "recreated-while-away": ["3.3.x"],
    "zookeeper-early-epoch": ["3.9.2"],
    "zookeeper-hole": ["3.9.4"],
    "zookeeper-unsaved-snapshot": ["3.6.3"],
}
BEGINNING = {
    # Here nothing is claimed beyond the bound: it is the first release that has what is tested.
    "combined-storm": ["3.4.x", "3.5.x", "4.3.x"],
    "deleted-while-away": ["3.1.x"],
    "epochless-join": ["3.5.x"],
    "kip-903-unfinalised": ["3.5.x"],
    "kip-903-zookeeper": ["2.7.x"],
    "late-registration": ["3.3.x"],
    "late-registration-at-start": ["3.3.x"],
    "late-stop-replica": ["2.1.x"],
    "late-stop-replica-three-replicas": ["2.1.x"],
    "late-update-metadata": ["2.1.x"],
    "recreated-in-migration": ["3.5.x"],
    "replace-controller": ["3.9.x"],
    "storm": ["4.3.x"],
    "unanswered-shrink": ["2.7.x"],
}


def lacking() -> dict[str, list[str]]:
    found = {}
    for name, file in library().items():
        stated = load_scenario(file, []).document.data.get("expect", [{"valid": True}])
        if gaps := sorted(unshown(parse_expectations(stated))):
            found[name] = gaps
    return found


@pytest.mark.parametrize(
    ("entries", "gaps"),
    [
        (
            [
                {"kafka": ">=3.3,<3.5", "invalid": ["lost-write"], "tried": ["3.4.1"]},
                {"kafka": ">=3.5", "valid": True, "tried": ["4.3.1"]},
            ],
            ["3.3.x", "3.5.x"],
        ),
        ([{"kafka": "<4.0", "valid": True, "tried": ["3.9.2"]}], []),
        ([{"kafka": "<4.0", "valid": True, "tried": ["3.8.1"]}], ["3.9.x"]),
        ([{"kafka": "<3.6.1", "valid": True, "tried": ["3.6.0"]}], []),
        ([{"kafka": ">=3.6.1", "valid": True, "tried": ["3.6.2"]}], ["3.6.1"]),
        ([{"kafka": "<=3.4.1", "valid": True, "tried": ["3.4.1"]}], []),
        ([{"release": "==3.9.1", "valid": True, "tried": ["3.9.1"]}], []),
        ([{"level": ">=2", "valid": True}], []),
        ([{"valid": True, "tried": ["4.3.1"]}], []),
    ],
)
def test_a_bound_is_shown_by_what_lies_right_inside_of_it(
    entries: list[dict[str, object]], gaps: list[str]
) -> None:
    assert sorted(unshown(parse_expectations(entries))) == gaps


def test_every_bound_has_series_on_both_sides() -> None:
    assert lacking() == MET | BEGINNING
