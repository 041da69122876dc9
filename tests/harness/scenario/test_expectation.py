"""Expectations of verdicts, by release and by level."""

import pytest

from checkers.verdict import CheckResult, Validity, Verdict
from harness.scenario.expectation import expectation_for, is_met, parse_expectations
from history.failure import SpecError


def verdict(**validities: Validity) -> Verdict:
    return Verdict.of(
        (
            CheckResult(check=check.replace("_", "-"), validity=validity)
            for check, validity in validities.items()
        ),
        run_id="t/1",
    )


LOST = verdict(lost_write=Validity.INVALID, duplicate=Validity.VALID)


@pytest.mark.parametrize(
    ("release", "found", "as_expected"),
    [
        ("3.4.1", LOST, True),
        ("3.4.1", verdict(lost_write=Validity.VALID), False),
        ("3.4.1", verdict(duplicate=Validity.INVALID), False),
        ("3.5.2", LOST, False),
        ("3.5.2", verdict(lost_write=Validity.UNKNOWN), False),
        ("4.4.0-SNAPSHOT", verdict(lost_write=Validity.VALID), True),
    ],
)
def test_the_first_expectation_that_fits_the_release_counts(
    release: str, found: Verdict, *, as_expected: bool
) -> None:
    expected = parse_expectations(
        [{"kafka": "<3.5", "invalid": ["lost-write"]}, {"kafka": ">=3.5", "valid": True}]
    )
    chosen = expectation_for(expected, release=release)
    assert chosen is not None
    assert is_met(chosen, found) is as_expected


def test_an_expectation_of_levels_is_about_clusters_of_our_own_alone() -> None:
    expected = parse_expectations(
        [{"level": "<3", "invalid": ["lost-write"]}, {"level": ">=3", "valid": True}]
    )
    assert expectation_for(expected, release="4.3.1") is None
    of_level = {
        level: expectation_for(expected, release="4.3.1", level=level) for level in (1, 2, 3)
    }
    assert [of_level[1], of_level[2], of_level[3]] == [expected[0], expected[0], expected[1]]
    with pytest.raises(SpecError, match="no 'kafka' or 'tried' beside"):
        parse_expectations([{"level": "<3", "kafka": ">=3.5", "valid": True}])
