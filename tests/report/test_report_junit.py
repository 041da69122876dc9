import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_run import KINDS, VERDICT, RunSpec, result, verdict_with, write_run

from fencepost.checkers.anomaly import Anomaly
from fencepost.checkers.proof import Proof
from fencepost.checkers.verdict import Validity
from fencepost.history.manifest import RunState
from fencepost.report.junit import write_junit

HOSTILE = ']]></failure><x a="1" & \x1b[31m \x00 \ud800 </testsuite>'


def anomaly(detail: str, *, allowed: bool = False) -> Anomaly:
    return Anomaly(
        check="lost-write",
        key="t-0",
        allowed=allowed,
        proof=Proof.as_told(detail, operations=(1, 2), offsets=(3,), values=(4,)),
    )


def suite_of(results: Path, spec: RunSpec) -> ET.Element:
    root = ET.parse(write_junit(write_run(results, spec))).getroot()
    assert_usual_shape(root)
    return root.findall("testsuite")[0]


def assert_usual_shape(root: ET.Element) -> None:
    """What readers of JUnit files rely on: names, order of children, counts that add up."""
    assert root.tag == "testsuites"
    for suite in root:
        assert suite.tag == "testsuite"
        assert {"name", "tests", "failures", "errors", "skipped", "time"} <= set(suite.attrib)
        assert suite[0].tag == "properties"
        cases = suite.findall("testcase")
        assert len(cases) == len(suite) - 1 == int(suite.get("tests"))
        assert len(suite.findall("testcase/failure")) == int(suite.get("failures"))
        assert len(suite.findall("testcase/error")) == int(suite.get("errors"))
        float(suite.get("time"))
        for case in cases:
            assert case.get("name")
            assert case.get("classname")
            float(case.get("time"))
            assert [child.tag for child in case] in (
                [],
                ["system-out"],
                ["failure", "system-out"],
                ["failure"],
                ["error", "system-out"],
                ["error"],
                ["skipped", "system-out"],
                ["skipped"],
            )
        for item in suite.findall("properties/property"):
            assert set(item.attrib) == {"name", "value"}


def test_a_valid_run_passes_every_check(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, RunSpec(sealed=False, verdict=VERDICT))
    assert (suite.get("failures"), suite.get("errors")) == ("0", "0")
    names = [case.get("name") for case in suite.findall("testcase")]
    assert names == [check.check for check in VERDICT.checks]
    assert suite.get("timestamp") == "2026-03-01T08:00:00"


def test_what_was_tested_and_what_was_waived_come_first(tmp_path: Path) -> None:
    about = {"system": "kafka", "cluster": "reference", "host": "netns"}
    spec = RunSpec(sealed=False, verdict=VERDICT, waived=("faults kill (--no-require)",))
    suite = suite_of(tmp_path, replace(spec, about=about))
    named = {one.get("name"): one.get("value") for one in suite.iter("property")}
    assert (about | {"release": "4.3.1", "seed": "7"}).items() <= named.items()
    assert named["waived"] == "faults kill (--no-require)"
    case = suite.find("testcase")
    assert case.get("name") == "waived"
    assert "faults kill" in case.find("skipped").get("message")
    assert int(suite.get("tests")) == len(suite.findall("testcase"))
    assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped"))


def test_invalid_is_a_failure_with_the_first_details(tmp_path: Path) -> None:
    spec = RunSpec(
        sealed=False,
        verdict=verdict_with(
            result(
                "lost-write",
                Validity.INVALID,
                reason="1 value is gone.",
                examples=[anomaly("legal", allowed=True), anomaly("value 4 is gone")],
            )
        ),
    )
    failure = suite_of(tmp_path, spec).find("testcase[@name='lost-write']/failure")
    assert failure.get("message") == "1 value is gone."
    assert failure.text.splitlines()[0] == "value 4 is gone"
    assert "legal" not in failure.text


def test_a_failure_has_the_facts_of_its_anomalies(tmp_path: Path) -> None:
    proof = Proof.of(
        "value {value} is gone at {at}",
        operations={"send": 12},
        values={"value": 4},
        frames=tuple(range(10)),
        metadata_offsets={"metadata_offset": 33},
        times={"at": 1_500_000_000},
        sources={"value": "send", "node": "metadata_offset"},
        node="broker-1",
        text="two\nlines",
    )
    example = Anomaly(check="lost-write", key="t-0", allowed=False, proof=proof)
    lost = result("lost-write", Validity.INVALID, examples=[example])
    suite = suite_of(tmp_path, RunSpec(sealed=False, verdict=verdict_with(lost)))
    failure = suite.find("testcase[@name='lost-write']/failure")
    assert failure.text.splitlines() == [
        "value 4 is gone at 1.500 s",
        "  send: operation 12",
        "  metadata offset: 33",
        "  value: 4 (of operation 12)",
        "  frame: 0, 1, 2, 3, 4, 5, 6, 7 and 2 more",
        "  at: 1.500 s",
        "  node: broker-1 (of metadata offset 33)",
        "  text: two lines",
    ]


def test_unknown_is_an_error_with_its_reason(tmp_path: Path) -> None:
    verdict = verdict_with(result("evidence", Validity.UNKNOWN, reason="Nothing was acknowledged."))
    suite = suite_of(tmp_path, RunSpec(sealed=False, verdict=verdict))
    error = suite.find("testcase[@name='evidence']/error")
    assert error.get("message") == "Nothing was acknowledged."
    assert suite.get("errors") == "1"


def test_what_was_not_judged_is_skipped_and_says_so(tmp_path: Path) -> None:
    verdict = verdict_with(
        result("aborted-read", Validity.NOT_JUDGED),
        result("window-strikes", Validity.NOT_JUDGED, reason="no window is demanded: 4 laid"),
        result("statistics", Validity.FIGURE),
    )
    suite = suite_of(tmp_path, RunSpec(sealed=False, verdict=verdict))
    assert suite.get("skipped") == "3"
    reasoned = suite.find("testcase[@name='window-strikes']/skipped")
    assert reasoned.get("message") == "not judged: no window is demanded: 4 laid"
    skipped = suite.find("testcase[@name='aborted-read']/skipped")
    assert skipped.get("message") == "not judged: there was no case"
    figure = suite.find("testcase[@name='statistics']/skipped")
    assert figure.get("message") == "a figure: it cannot fail on this cluster"


def test_the_properties_count_the_cases_of_each_check(tmp_path: Path) -> None:
    verdict = verdict_with(result("aborted-read", Validity.NOT_JUDGED))
    suite = suite_of(tmp_path, RunSpec(sealed=False, verdict=verdict))
    found = {p.get("name"): p.get("value") for p in suite.findall("properties/property")}
    assert found["cases.lost-write"] == "12"
    assert found["cases.aborted-read"] == "0"


@pytest.mark.parametrize("state", [RunState.FAILED, RunState.RECORDED, RunState.RUNNING])
def test_a_run_without_verdict_never_passes(tmp_path: Path, state: RunState) -> None:
    suite = suite_of(tmp_path, RunSpec(sealed=False, state=state, failure="no disk"))
    (case,) = suite.findall("testcase")
    assert case.find("error") is not None
    if state is RunState.FAILED:
        assert "no disk" in case.find("error").get("message")


def test_the_properties_say_how_to_repeat_the_run(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, RunSpec(sealed=False, verdict=VERDICT))
    found = {p.get("name"): p.get("value") for p in suite.findall("properties/property")}
    assert found["seed"] == "7"
    assert found["release"] == "4.3.1"
    assert found["command"].startswith("fencepost run ")
    assert found["verdict"] == "valid"


def test_the_properties_tell_of_each_kind_of_fault_that_was_asked_for(tmp_path: Path) -> None:
    verdict = verdict_with(replace(result("fault-effects"), figures=KINDS))
    suite = suite_of(tmp_path, RunSpec(sealed=False, verdict=verdict))
    found = {p.get("name"): p.get("value") for p in suite.findall("properties/property")}
    assert {name: value for name, value in found.items() if name.startswith("fault.")} == {
        "fault.cut_power.begun": "2",
        "fault.cut_power.effect": "1",
        "fault.cut_power.acknowledged_sends": "1200",
        "fault.cut_power.reads": "30",
        "fault.delay.begun": "0",
        "fault.delay.effect": "0",
    }


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    shown = HOSTILE.replace("\ud800", "")
    lost = result("lost-write", Validity.INVALID, reason=shown, examples=[anomaly(shown)])
    spec = RunSpec(sealed=False, title=shown, verdict=verdict_with(lost))
    failure = suite_of(tmp_path, spec).find("testcase[@name='lost-write']/failure")
    told = failure.text.splitlines()[0]
    assert told.strip() == ']]></failure><x a="1" & �[31m �  </testsuite>'
    assert "</testsuite>" in failure.get("message")


def test_a_consequence_and_what_is_known_are_skipped_with_their_reasons(tmp_path: Path) -> None:
    verdict = verdict_with(
        replace(
            result("as-planned", Validity.UNKNOWN, reason="not whole."), follows_from="lost-write"
        ),
        result("lost-write", Validity.INVALID, reason="2 values are gone.", count=2),
        result("refused-but-running", Validity.KNOWN, reason="3 found, known as x.", count=3),
    )
    suite = suite_of(tmp_path, RunSpec(sealed=False, verdict=verdict))
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")
    messages = [one.get("message") for one in suite.findall("testcase/skipped")]
    assert "follows from lost-write: not whole." in messages
    assert "known: 3 found, known as x." in messages
