"""Which answers prove nothing: those without a case, and those that could not have failed."""

from dataclasses import replace

import pytest
from manifests import MANIFEST

from fencepost.checkers.case_counts import with_case_count
from fencepost.checkers.catalogue import entry_of
from fencepost.checkers.grounds.required import required
from fencepost.checkers.verdict import CheckResult, Validity, Verdict, worst
from fencepost.history.manifest import Manifest, Promises

PROMISES = Promises(idempotent=True, acks="all", consume="assign")


def held(check: str, *, cases: int) -> CheckResult:
    return CheckResult(check=check, validity=Validity.VALID, case_count=cases)


def manifest_demanding(*checks: str) -> Manifest:
    return replace(MANIFEST, promises=PROMISES, required_checks=checks)


def test_a_check_without_a_case_is_not_judged() -> None:
    assert with_case_count(held("lost-write", cases=0), PROMISES).validity is Validity.NOT_JUDGED
    assert with_case_count(held("lost-write", cases=1), PROMISES).validity is Validity.VALID


def test_a_check_whose_findings_are_all_legal_here_is_a_figure() -> None:
    assert with_case_count(held("statistics", cases=9), PROMISES).validity is Validity.FIGURE


@pytest.mark.parametrize("validity", [Validity.INVALID, Validity.UNKNOWN])
def test_an_answer_that_is_no_pass_stays_as_it_is(validity: Validity) -> None:
    result = CheckResult(check="lost-write", validity=validity, reason="so")
    assert with_case_count(result, PROMISES) == result


def test_a_run_in_which_nothing_was_judged_is_unknown() -> None:
    assert worst([Validity.NOT_JUDGED, Validity.FIGURE]) is Validity.UNKNOWN
    assert worst([Validity.NOT_JUDGED, Validity.VALID]) is Validity.VALID
    assert Verdict.of([with_case_count(held("lost-write", cases=0), PROMISES)]).exit_code == 2


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (held("lost-write", cases=0), "lost-write is demanded and had nothing to judge: no case"),
        (held("statistics", cases=3), "statistics is demanded and cannot fail on this cluster"),
    ],
)
def test_a_demanded_check_that_proves_nothing_makes_the_run_unknown(
    result: CheckResult, words: str
) -> None:
    answer = with_case_count(result, PROMISES)
    found = required(manifest_demanding(result.check), {result.check: answer}, entry_of)
    assert found.validity is Validity.UNKNOWN
    assert words in found.reason


def test_a_demanded_check_that_was_not_asked_makes_the_run_unknown() -> None:
    found = required(manifest_demanding("stale-epoch-join"), {}, entry_of)
    assert found.validity is Validity.UNKNOWN
    assert "it needs the tables metadata_log, wire" in found.reason


def test_demanded_checks_that_were_judged_are_counted() -> None:
    found = required(
        manifest_demanding("lost-write"), {"lost-write": held("lost-write", cases=5)}, entry_of
    )
    assert (found.validity, found.case_count) == (Validity.VALID, 1)
