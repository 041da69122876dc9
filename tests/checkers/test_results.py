"""How answers of keys and files become one answer a check, and how verdicts are kept."""

import json
from pathlib import Path

import pytest
from histories import history
from judging import summary

from fencepost.checkers.anomaly import Anomaly
from fencepost.checkers.catalogue import entry_of
from fencepost.checkers.finding_rows import FINDINGS
from fencepost.checkers.grounds.assumptions import run_assumptions
from fencepost.checkers.proof import Proof
from fencepost.checkers.results import FileAnswers, file_answers, result_of
from fencepost.checkers.verdict import (
    CheckResult,
    Validity,
    Verdict,
    read_verdict,
    worst,
    write_verdict,
)
from fencepost.history.failure import HarnessError

WHOLE = FileAnswers(record_count=0, unreadable=(), seconds=0.0)
PROOF = {
    "allowed": False,
    "operations": [1, 2],
    "offsets": [3],
    "values": [4],
    "frames": [],
    "detail": "gone",
}


def _row(key: str, **columns: object) -> dict[str, object]:
    counts = {"never_count": 0, "allowed_count": 0, "case_count": 3}
    blank = {"check": "lost-write", "anomalies": [], "seconds": 0.0, **counts}
    return {"path": "p", "key": key, **blank, **columns}


def _result(*rows: dict[str, object], **options: object) -> CheckResult:
    table = FINDINGS.empty_table().from_pylist(list(rows), schema=FINDINGS)
    settled = {"files": WHOLE, "broken": frozenset(), "died": "", **options}
    return result_of(entry_of("lost-write"), table, **settled)


BAD = _row("t-0", never_count=2, anomalies=[PROOF, PROOF])


def test_one_bad_key_makes_a_check_invalid_and_says_how() -> None:
    result = _result(BAD, _row("t-1"))
    assert result.validity is Validity.INVALID
    assert result.reason == "2 found, on 1 of 2 keys: t-0: gone"
    assert result.examples[0] == Anomaly(
        check="lost-write",
        key="t-0",
        allowed=False,
        proof=Proof.as_told("gone", operations=(1, 2), offsets=(3,), values=(4,)),
    )


def test_what_is_allowed_is_counted_and_valid() -> None:
    result = _result(_row("t-0", allowed_count=1, anomalies=[PROOF | {"allowed": True}]))
    assert result.validity is Validity.VALID
    assert (result.anomaly_count, result.allowed_count) == (1, 1)


def test_the_cases_of_all_keys_are_counted() -> None:
    rows = [_row("t-0", case_count=3), _row("t-1", case_count=4), _row("t-2", case_count=0)]
    assert _result(*rows).case_count == 7
    assert _result().case_count == 0


def test_an_unknown_key_makes_unknown_and_hides_no_invalid_one() -> None:
    doubt = _row("t-1", unknown="no final read")
    assert _result(doubt).validity is Validity.UNKNOWN
    assert _result(doubt).reason == "no final read"
    assert _result(BAD, doubt).validity is Validity.INVALID


def test_a_file_that_cannot_be_read_makes_unknown_and_hides_no_invalid_key() -> None:
    torn = FileAnswers(record_count=0, unreadable=("cannot read x",), seconds=0.0)
    assert _result(_row("t-0"), files=torn).reason == "cannot read x"
    assert _result(BAD, files=torn).validity is Validity.INVALID


def test_a_check_that_rests_on_a_broken_assumption_is_unknown_whatever_it_found() -> None:
    for row in (BAD, _row("t-0")):
        assert _result(row, broken=frozenset({"whole-records"})).validity is Validity.UNKNOWN
    assert _result(BAD, broken=frozenset({"dense-indices"})).validity is Validity.INVALID


def test_a_pass_that_died_is_unknown() -> None:
    assert _result(died="the task was killed").reason == "the task was killed"


def test_a_file_that_does_not_answer_counts_as_unreadable() -> None:
    row = {"path": "a", "record_count": 7, "seconds": 1.0}
    table = FINDINGS.empty_table().from_pylist([row], schema=FINDINGS)
    answers = file_answers(table, paths=["a", "b"])
    assert answers.record_count == 7
    assert answers.unreadable == ("b was not answered for",)


def test_reasons_are_listed_up_to_a_few() -> None:
    result = _result(*(_row(f"t-{key}", unknown=f"why {key}") for key in range(5)))
    assert result.reason == "why 0; why 1; why 2; and 2 more"


def test_without_the_operations_no_assumption_holds() -> None:
    assumed = run_assumptions(None, why_no_summary="torn", record_count=0, unreadable=())
    assert {result.reason for result in assumed.results} == {"torn"}
    assert assumed.broken == {"dense-indices", "one-poll-at-a-time", "whole-records"}
    assert not any(result.case_count for result in assumed.results)


def test_the_assumptions_about_operations_count_what_they_went_over() -> None:
    text = """
        p1 send t-0 v1 -> ok @0
        c1 poll -> t-0 [v1@0]
        c1 poll -> nothing
        """
    past = history(text)
    sums = summary(past.operations)
    assumed = run_assumptions(sums, why_no_summary="", record_count=2, unreadable=())
    counts = {result.check: result.case_count for result in assumed.results}
    assert counts == {"dense-indices": 3, "one-poll-at-a-time": 2, "whole-records": 2}
    nothing = summary(past.operations.slice(0, 0))
    assumed = run_assumptions(nothing, why_no_summary="", record_count=0, unreadable=())
    assert not any(result.case_count for result in assumed.results)


def test_the_worst_answer_wins_and_no_answer_is_unknown() -> None:
    valid, invalid, unknown = Validity.VALID, Validity.INVALID, Validity.UNKNOWN
    assert worst([valid, unknown, invalid]) is invalid
    assert worst([valid, unknown]) is unknown
    assert worst([valid]) is valid
    assert worst([]) is unknown


def test_a_verdict_is_read_as_it_was_written(tmp_path: Path) -> None:
    verdict = Verdict.of([_result(BAD), _result(_row("t-1"))], run_id="r")
    write_verdict(tmp_path / "verdict.json", verdict)
    assert read_verdict(tmp_path / "verdict.json") == verdict
    assert json.loads((tmp_path / "verdict.json").read_text())["exit_code"] == 1


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"format_version": 1}', '{"format_version": 2}', '{"format_version": 1, '],
)
def test_a_verdict_that_is_none_is_refused_by_its_path(tmp_path: Path, content: str) -> None:
    path = tmp_path / "verdict.json"
    with pytest.raises(HarnessError, match=str(path)):
        read_verdict(path)
    path.write_text(content)
    with pytest.raises(HarnessError, match=str(path)):
        read_verdict(path)


def test_a_verdict_that_contradicts_its_checks_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    write_verdict(path, Verdict.of([_result(BAD)]))
    path.write_text(path.read_text().replace('"invalid"', '"valid"', 1))
    with pytest.raises(HarnessError, match="says valid, but its checks say invalid"):
        read_verdict(path)
