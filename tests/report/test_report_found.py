"""Findings are shown by cause: in verdict.json, on the terminal, the page and in JUnit."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from page_tree import parse_page
from synthetic_run import RunSpec, result, verdict_with, write_run

from fencepost.checkers.anomaly import Anomaly
from fencepost.checkers.proof import Proof
from fencepost.checkers.verdict import Consequence, RunFinding, Validity, Verdict, read_verdict
from fencepost.history.manifest import read_manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.report.headline import headline_of
from fencepost.report.junit import write_junit
from fencepost.report.page import write_page
from fencepost.report.terminal import verdict_text

IDENTITY = "smoke/stale-epoch-join/AlterPartition:leader→controller"
CHECKS = ("lost-write", "stale-epoch-join", "vanished")
FOUND = RunFinding(
    identity=IDENTITY,
    check="stale-epoch-join",
    title="A replica joined the ISR on the word of an earlier incarnation",
    scenario="smoke",
    count=1,
    culprit=("AlterPartition:leader→controller",),
    consequences=(Consequence(check="vanished", count=7),),
    key="t-0",
)
ANOMALIES = [
    Anomaly(
        check=check,
        key="t-0",
        allowed=False,
        proof=Proof.as_told("gone", operations=(1,), values=(4,)),
    )
    for check in CHECKS
]
VERDICT = replace(
    verdict_with(
        *(
            result(one.check, Validity.INVALID, reason="found", count=1, examples=[one])
            for one in ANOMALIES
        )
    ),
    findings=(FOUND,),
)


@pytest.fixture
def stored(tmp_path: Path) -> RunDirectory:
    return write_run(tmp_path, RunSpec(rate=20, verdict=VERDICT, anomalies=ANOMALIES))


def test_a_stored_verdict_keeps_its_findings(stored: RunDirectory) -> None:
    assert read_verdict(stored.verdict_path).findings == (FOUND,)
    content = json.loads(stored.verdict_path.read_text("utf-8"))
    assert content["findings"][0]["identity"] == IDENTITY
    # One that was stored before findings were told is read all the same.
    del content["findings"]
    stored.verdict_path.write_text(json.dumps(content), encoding="utf-8")
    assert read_verdict(stored.verdict_path).findings == ()


def test_the_terminal_tells_the_finding_before_its_checks(stored: RunDirectory) -> None:
    lines = verdict_text(VERDICT, stored).plain.split("\n")
    (place,) = [number for number, line in enumerate(lines) if line.startswith("  finding ")]
    assert IDENTITY in lines[place]
    assert "vanished (7)" in lines[place]
    assert place < min(number for number, line in enumerate(lines) if "invalid " in line)


def test_a_known_finding_is_named_so(stored: RunDirectory) -> None:
    known = replace(VERDICT, findings=(replace(FOUND, known="epochless-join"),))
    text = verdict_text(known, stored).plain
    assert "known as epochless-join" in text


def test_the_page_groups_anomalies_by_finding(stored: RunDirectory) -> None:
    page = parse_page(write_page(stored).read_text("utf-8"))
    assert IDENTITY in page.one("div", id="finding-1").text
    shown = [
        one.attributes["data-check"]
        for one in page.one("section", id="anomalies").all("article")
        if "data-check" in one.attributes
    ]
    # The cause, what follows from it, and what belongs to no finding.
    assert shown == ["stale-epoch-join", "vanished", "lost-write"]


def test_junit_names_the_finding_of_each_failure(stored: RunDirectory) -> None:
    suite = ET.parse(write_junit(stored)).getroot()[0]
    messages = {
        case.get("name"): failure.get("message", "")
        for case in suite.findall("testcase")
        if (failure := case.find("failure")) is not None
    }
    assert messages["stale-epoch-join"].startswith(f"finding {IDENTITY}; ")
    assert messages["vanished"].startswith(f"follows from {IDENTITY}; ")
    assert IDENTITY not in messages["lost-write"]
    properties = {one.get("name"): one.get("value", "") for one in suite.iter("property")}
    assert properties["finding.1"].startswith(IDENTITY)


def test_a_verdict_without_findings_has_no_place_for_them(tmp_path: Path) -> None:
    bare: Verdict = replace(VERDICT, findings=())
    run = write_run(tmp_path, RunSpec(rate=20, verdict=bare, anomalies=ANOMALIES))
    assert not parse_page(write_page(run).read_text("utf-8")).all("div", class_="finding")


def test_the_head_tells_the_cause_first_and_leads_to_its_proofs(stored: RunDirectory) -> None:
    page = parse_page(write_page(stored).read_text("utf-8"))
    head = page.one("header", class_="verdict card tone-invalid")
    links = [one for one in head.all("a") if one.attributes.get("href") == "#finding-1"]
    assert [one.text for one in links] == [FOUND.title]
    reasons = [one.text.split()[0] for one in head.one("ul", class_="reasons break").all("li")]
    assert reasons == ["stale-epoch-join", "vanished", "lost-write"]


ANSWERS = {
    "valid": verdict_with(result("aborted-read", Validity.NOT_JUDGED)),
    "invalid": VERDICT,
    "known": replace(
        verdict_with(result("stale-epoch-join", Validity.KNOWN, reason="known", count=1)),
        findings=(replace(FOUND, consequences=(), known="epochless-join"),),
    ),
    "unknown": verdict_with(result("lost-write", Validity.UNKNOWN, reason="reads are missing")),
    "both": verdict_with(
        result("unseen", Validity.INVALID, reason="gone", count=1200, allowed=200),
        result("lost-write", Validity.UNKNOWN, reason="reads are missing"),
    ),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_terminal_page_junit_and_verdict_tell_the_same_head(answer: str, tmp_path: Path) -> None:
    """The word, the sentence, the findings, and each check that does not hold."""
    verdict = ANSWERS[answer]
    run = write_run(tmp_path, RunSpec(rate=20, verdict=verdict))
    headline = headline_of(verdict, manifest=read_manifest(run.manifest_path))
    tone = f"verdict card tone-{verdict.validity}"
    head = parse_page(write_page(run).read_text("utf-8")).one("header", class_=tone).text
    suite = ET.parse(write_junit(run)).getroot()[0]
    said = verdict_text(verdict, run).plain
    stored = json.loads(run.verdict_path.read_text("utf-8"))

    assert stored["validity"] == headline.standing == str(verdict.validity)
    assert headline.standing.upper() in head.upper()
    assert headline.sentence in head
    assert f"{headline.standing.upper()}: {headline.sentence}" in said
    properties = {one.get("name"): one.get("value", "") for one in suite.iter("property")}
    assert properties["verdict"] == headline.standing

    for place, finding in enumerate(verdict.findings, 1):
        assert stored["findings"][place - 1]["identity"] == finding.identity
        assert properties[f"finding.{place}"].startswith(finding.identity)
        assert finding.identity in said
    amiss = {
        one.check for one in verdict.checks if one.validity in {Validity.INVALID, Validity.UNKNOWN}
    }
    cases = suite.findall("testcase")
    assert amiss == {
        case.get("name") for case in cases if {"failure", "error"} & {one.tag for one in case}
    }
    assert amiss == {reason.split()[0] for reason in headline.reasons}
    assert all(reason in head for reason in headline.reasons)
