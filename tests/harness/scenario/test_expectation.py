"""Expectations of verdicts, by release and by level."""

from dataclasses import replace
from pathlib import Path

import pytest
from manifests import MANIFEST

from fencepost.checkers.known_findings import KNOWN_FINDINGS, KnownFinding
from fencepost.checkers.verdict import CheckResult, Consequence, RunFinding, Validity, Verdict
from fencepost.harness.scenario.expectation import (
    expectation_for,
    expected_findings,
    is_met,
    known_to,
    parse_expectations,
)
from fencepost.harness.scenario.scenario import load_scenario
from fencepost.history.failure import SpecError


def verdict(**validities: Validity) -> Verdict:
    return Verdict.of(
        (
            CheckResult(check=check.replace("_", "-"), validity=validity)
            for check, validity in validities.items()
        ),
        run_id="t/1",
    )


LOST = verdict(lost_write=Validity.INVALID, duplicate=Validity.VALID)


def found(check: str, *consequences: str) -> RunFinding:
    followed = tuple(Consequence(check=one, count=1) for one in consequences)
    return RunFinding(
        identity=f"s/{check}",
        check=check,
        title="",
        scenario="s",
        count=1,
        culprit=(),
        consequences=followed,
    )


JOIN = found("stale-epoch-join", "lost-write")
CUT = found("truncated-below-high-watermark", "lost-write")
STUCK = found("stuck-isr")


@pytest.mark.parametrize(
    ("expected", "findings", "those"),
    [
        (["lost-write"], [found("lost-write")], ["s/lost-write"]),
        (["lost-write"], [CUT], ["s/truncated-below-high-watermark"]),
        (["lost-write"], [CUT, STUCK], ["s/truncated-below-high-watermark"]),
        (["stale-epoch-join", "lost-write"], [JOIN], ["s/stale-epoch-join"]),
        # The cause is named: another one that does the same harm is not.
        (["stale-epoch-join", "lost-write"], [JOIN, CUT], ["s/stale-epoch-join"]),
        (["lost-write", "stale-read"], [found("lost-write")], []),
        (["lost-write"], [], []),
        ([], [found("lost-write")], []),
    ],
)
def test_findings_are_expected_by_their_own_name_or_else_by_what_follows(
    expected: list[str], findings: list[RunFinding], those: list[str]
) -> None:
    told = {one.check for one in findings} | {
        two.check for one in findings for two in one.consequences
    }
    answers = {check.replace("-", "_"): Validity.INVALID for check in told}
    run = replace(MANIFEST, expected=tuple(expected))
    result = replace(verdict(**answers), findings=tuple(findings))
    assert list(expected_findings(run, result)) == those
    assert expected_findings(replace(run, ended_early=True), result) == ()


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
    with pytest.raises(SpecError, match="excludes 'kafka', 'tried' and 'known'"):
        parse_expectations([{"level": "<3", "kafka": ">=3.5", "valid": True}])


def test_what_is_known_stands_beside_valid_and_has_a_page() -> None:
    (one,) = parse_expectations([{"valid": True, "known": ["unregistered-leader"]}])
    assert one.known == ("unregistered-leader",)
    with pytest.raises(SpecError, match="unknown finding 'unregistred-leader'; did you mean"):
        parse_expectations([{"valid": True, "known": ["unregistred-leader"]}])
    with pytest.raises(SpecError, match="'known' needs 'valid: true'"):
        parse_expectations([{"invalid": ["lost-write"], "known": ["unregistered-leader"]}])
    with pytest.raises(SpecError, match="excludes 'kafka', 'tried' and 'known'"):
        parse_expectations([{"level": "<3", "valid": True, "known": ["unregistered-leader"]}])


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"refused": ""}, "expected the reason"),
        ({"refused": True}, "expected the reason"),
        ({"refused": "it has no such message", "valid": True}, "expected 'valid: true', 'invalid"),
        (
            {"refused": "it has no such message", "tried": ["2.6.3"]},
            "an entry with 'refused' has no 'tried'",
        ),
        ({"kafka": "<2.7"}, "or 'refused: "),
    ],
)
def test_a_refusal_gives_its_reason_and_no_outcome(entry: dict[str, object], why: str) -> None:
    with pytest.raises(SpecError, match=why):
        parse_expectations([entry])


def test_a_run_in_which_all_that_was_found_is_known_is_as_expected() -> None:
    (one,) = parse_expectations([{"valid": True, "known": ["unregistered-leader"]}])
    assert is_met(one, verdict(lost_write=Validity.VALID, refused_but_running=Validity.KNOWN))
    assert not is_met(one, verdict(lost_write=Validity.VALID, refused_but_running=Validity.INVALID))


def test_only_a_run_on_kafka_reckons_with_what_is_known_of_kafka() -> None:
    scenario = load_scenario(Path("scenarios/nightly/combined-storm.yaml"), [])
    stock = expectation_for(scenario.expect, release="4.3.1")
    assert known_to(stock, level=None) == (
        "unregistered-leader",
        "epochless-join",
        "late-registration",
    )
    assert known_to(stock, level=3) == ()
    assert known_to(None, level=None) == ()
    # A release that nobody has looked at is judged without it.
    assert known_to(expectation_for(scenario.expect, release="4.4.0"), level=None) == ()


@pytest.mark.parametrize("finding", KNOWN_FINDINGS.values())
def test_a_known_finding_has_its_page(finding: KnownFinding) -> None:
    assert Path(finding.page).is_file()
