"""The head of a run: one value of the verdict, on the page, the terminal, in JUnit and JSON."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from page_tree import Element, parse_page
from synthetic_run import BROKEN, VERDICT, RunSpec, result, verdict_with, write_run

from fencepost.checkers.anomaly import Anomaly
from fencepost.checkers.proof import Proof
from fencepost.checkers.service_level import (
    FaultAmong,
    FaultService,
    LatencyLevel,
    LossLevel,
    ServiceLevel,
    SilenceOf,
    UseService,
)
from fencepost.checkers.verdict import Validity, Verdict, read_verdict, write_verdict
from fencepost.harness.cli.verdicts import outcome_json
from fencepost.harness.run.outcome import RunOutcome
from fencepost.history.manifest import read_manifest, write_manifest
from fencepost.report.junit import write_junit
from fencepost.report.page import write_page
from fencepost.report.service import service_json
from fencepost.report.terminal import verdict_text

LEVEL = ServiceLevel(
    duration_s=45.0,
    loss=LossLevel(subject="records", acknowledged_count=109_472, lost_count=0),
    uses=(
        UseService(
            use="sends",
            acknowledged_count=109_472,
            silence_count=7,
            unavailable_s=15.25,
            longest=SilenceOf(
                key="orders-4",
                begin_s=10.0,
                length_s=5.5,
                faults=(FaultAmong(index=1, fault="kill", targets=("broker-1",)),),
            ),
            outside=LatencyLevel(count=100_000, p50_ms=2.0, p99_ms=9.5, max_ms=52.0),
            during=LatencyLevel(count=9472, p50_ms=500.0, p99_ms=3600.0, max_ms=5500.0),
            by_kind={"kill": LatencyLevel(count=9, p50_ms=1.0, p99_ms=2.0, max_ms=4321.0)},
            by_fault=(
                FaultService(
                    fault=1, latency=LatencyLevel(count=9, p50_ms=1.0, p99_ms=1234.0, max_ms=4321.0)
                ),
            ),
        ),
    ),
    effective_faults={"kill": 2, "pause": 1},
)
TOLD = replace(VERDICT, service_level=LEVEL)


def _page(results: Path, spec: RunSpec) -> Element:
    return parse_page(write_page(write_run(results, spec)).read_text())


def test_a_verdict_keeps_the_level_of_service(tmp_path: Path) -> None:
    write_verdict(tmp_path / "verdict.json", TOLD)
    assert read_verdict(tmp_path / "verdict.json").service_level == LEVEL


def test_a_verdict_of_an_earlier_version_has_none(tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    write_verdict(path, TOLD)
    content = json.loads(path.read_text())
    del content["service_level"]
    path.write_text(json.dumps(content))
    assert read_verdict(path).service_level is None


@pytest.mark.slow
def test_the_head_of_the_page_answers_first(tmp_path: Path) -> None:
    page = _page(tmp_path, RunSpec(rate=20, faults=BROKEN, verdict=TOLD))
    told = page.one("dl", id="service").text
    for words in ("0 of 109,472", "5.50 s", "orders-4", "kill broker-1", "15.2 s", "p99 9.50 ms"):
        assert words in told
    assert "kill 2, pause 1" in told
    assert "1.23 s" in page.one("tr", id="fault-1").text
    assert "4.32 s" in page.one("section", id="operations").text


@pytest.mark.usefixtures("without_plots")
def test_a_run_that_tells_nothing_of_its_service_is_not_said_to_have_lost_nothing(
    tmp_path: Path,
) -> None:
    page = _page(tmp_path, RunSpec(rate=20, verdict=VERDICT))
    assert [one for one in page.all("dl") if one.attributes.get("id") == "service"] == []


@pytest.mark.usefixtures("without_plots")
def test_losses_that_the_checks_could_not_rule_out_are_not_called_none(tmp_path: Path) -> None:
    loss = LossLevel(subject="records", acknowledged_count=12, lost_count=None)
    verdict = replace(VERDICT, service_level=replace(LEVEL, loss=loss))
    assert (
        "? of 12" in _page(tmp_path, RunSpec(rate=20, verdict=verdict)).one("dl", id="service").text
    )


@pytest.mark.slow
def test_the_page_goes_from_what_is_asked_first_to_what_is_asked_last(tmp_path: Path) -> None:
    page = _page(tmp_path, RunSpec(rate=20, faults=BROKEN, verdict=TOLD))
    order = [one.attributes["id"] for one in page.all("section")]
    wanted = ["timeline", "faults", "anomalies", "checks", "operations", "sequence", "provenance"]
    assert [one for one in order if one in wanted] == wanted


@pytest.mark.usefixtures("without_plots")
def test_what_is_allowed_is_folded(tmp_path: Path) -> None:
    proof = Proof.as_told("It went back.", operations=(1,))
    anomalies = [
        Anomaly(check=check, key="t-0", allowed=allowed, proof=proof)
        for check, allowed in (("nonmonotonic-poll", True), ("duplicate", False))
    ]
    verdict = verdict_with(
        result("nonmonotonic-poll", count=1, allowed=1),
        result("duplicate", Validity.INVALID, reason="1 found", count=1),
    )
    page = _page(tmp_path, RunSpec(rate=20, anomalies=anomalies, verdict=verdict))
    section = page.one("section", id="anomalies")
    folded = section.one("details", class_="legal")
    assert [one.attributes["data-check"] for one in folded.all("article")] == ["nonmonotonic-poll"]
    assert len(section.all("article")) == 2
    assert "nonmonotonic-poll 1" in folded.one("summary").text


@pytest.mark.usefixtures("without_plots")
def test_the_page_says_what_was_in_force(tmp_path: Path) -> None:
    run = write_run(tmp_path, RunSpec(rate=20, verdict=VERDICT))
    manifest = replace(
        read_manifest(run.manifest_path),
        cluster="kafka",
        required_bounds={"unavailable_max_s": 10.0},
    )
    write_manifest(run.manifest_path, manifest)
    run.scenario_path.write_text(
        "topics: [{name: t, settings: {min.insync.replicas: 2}}]\n"
        "workload: {kind: produce-poll, settings: {compression.type: lz4}}\n"
    )
    told = parse_page(write_page(run).read_text()).one("section", id="in-force").text
    for words in ("acks all", "min.insync.replicas 2 topic t", "compression.type lz4", "10 s"):
        assert words in told


def test_a_scenario_that_cannot_be_read_says_nothing_of_what_was_in_force(tmp_path: Path) -> None:
    run = write_run(tmp_path, RunSpec(rate=20, verdict=VERDICT))
    write_manifest(run.manifest_path, replace(read_manifest(run.manifest_path), cluster="kafka"))
    for text in ("workload: [", "- a\n- b", "workload: 3\ntopics: {a: 1}"):
        run.scenario_path.write_text(text)
        assert "acks" in parse_page(write_page(run).read_text()).one("section", id="in-force").text


def test_the_terminal_tells_it_below_the_verdict(tmp_path: Path) -> None:
    run = write_run(tmp_path, RunSpec(sealed=False, verdict=TOLD))
    lines = [line for line in verdict_text(TOLD, run).plain.split("\n") if "  service" in line]
    assert "0 of 109,472 acknowledged records lost" in lines[0]
    assert "5.50 s, orders-4 from 10.000 s on, kill broker-1" in lines[1]
    assert "15.2 s in all" in lines[1]
    assert "p99 9.50 ms" in lines[2]


def test_junit_has_it_as_properties(tmp_path: Path) -> None:
    run = write_run(tmp_path, RunSpec(sealed=False, verdict=TOLD))
    found = ET.parse(write_junit(run)).getroot().iter("property")
    properties = {one.get("name"): one.get("value") for one in found}
    assert properties["service.records.lost"] == "0"
    assert properties["service.sends.longest_silence_s"] == "5.500"
    assert properties["service.sends.outside_p99_ms"] == "9.500"
    assert properties["duration_s"] == "45.000"


def test_json_has_it_without_what_each_fault_did() -> None:
    told = json.loads(json.dumps(service_json(LEVEL)))
    assert told["uses"][0]["longest"]["length_s"] == 5.5
    assert told["loss"]["lost_count"] == 0
    assert "by_fault" not in told["uses"][0]


@pytest.mark.usefixtures("without_plots")
def test_the_head_is_the_same_everywhere(tmp_path: Path) -> None:
    run = write_run(tmp_path, RunSpec(rate=20, faults=BROKEN, verdict=TOLD))
    manifest = replace(
        read_manifest(run.manifest_path),
        system="kafka",
        cluster="simulated",
        host="local",
        parameters={"rate": "7", "faults": "[kill]"},
        end_ns=45_000_000_000,
    )
    write_manifest(run.manifest_path, manifest)
    write_verdict(run.verdict_path, TOLD, about={"tested": manifest.tested})
    tested = {"system": "kafka", "cluster": "simulated", "host": "local", "seed": "7"}
    tested |= {"set": "rate=7 faults=[kill]", "release": manifest.release}

    outcome = RunOutcome(run=run, verdict=TOLD, as_expected=None)
    told = json.loads(json.dumps(outcome_json(outcome)))
    stored = json.loads(run.verdict_path.read_text())
    level = read_verdict(run.verdict_path).service_level
    assert level is not None
    assert told["service_level"] == json.loads(json.dumps(service_json(level)))
    assert {key: str(told[key]) for key in tested} == stored["tested"] == tested
    assert told["service_level"]["duration_s"] == stored["service_level"]["duration_s"] == 45.0

    found = ET.parse(write_junit(run)).getroot().iter("property")
    properties = {one.get("name"): one.get("value") for one in found}
    assert tested.items() <= properties.items()
    assert properties["duration_s"] == "45.000"
    use = told["service_level"]["uses"][0]
    assert properties["service.sends.longest_silence_s"] == f"{use['longest']['length_s']:.3f}"
    assert properties["service.sends.outside_p99_ms"] == f"{use['outside']['p99_ms']:.3f}"

    terminal = verdict_text(TOLD, run).plain
    (first, *_) = terminal.split("\n")
    assert all(f"{key} {value}" in first for key, value in tested.items())
    assert first.endswith("duration 45.0 s")
    page = parse_page(write_page(run).read_text())
    facts = page.one("dl", id="identity").text
    assert all(value in facts for value in (*tested.values(), "45.0 s"))
    head = page.one("dl", id="service").text
    for words in ("0 of 109,472", "5.50 s", "kill broker-1", "p99 9.50 ms"):
        assert words in head
        assert words in terminal


def test_an_unchecked_run_has_no_head(tmp_path: Path) -> None:
    verdict: Verdict | None = None
    run = write_run(tmp_path, RunSpec(sealed=False))
    assert "service" not in verdict_text(verdict, run).plain
