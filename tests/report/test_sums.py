"""Runs summed up: the line, the groups, the JUnit file and the page."""

import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from fencepost.report.sums import (
    LeftOutCell,
    SummedRun,
    not_judged_in,
    run_groups,
    sum_line,
    summed_run,
)
from fencepost.report.sums_junit import write_sums_junit
from fencepost.report.sums_page import write_sums_page

VALID = SummedRun(
    scenario="smoke",
    system="kafka",
    cluster="kafka",
    release="4.3.1",
    seed=1,
    run=None,
    verdict="valid",
    seconds=10.0,
    faults={"kill": 1, "partition": 1},
    not_judged=frozenset({"idle", "rare"}),
)
LOST = replace(
    VALID, seed=2, verdict="invalid", findings=("smoke:lost-write",), issue="KAFKA-14139"
)
OPEN = replace(VALID, seed=3, verdict="unknown", reason="no broker was killed")
BROKEN = replace(
    VALID, seed=4, verdict="failed", reason="no port", faults={}, not_judged=frozenset()
)
IDLE = replace(VALID, seed=5, faults={"kill": 1, "partition": 0}, not_judged=frozenset({"idle"}))


@pytest.mark.parametrize(
    ("runs", "line"),
    [
        ([], "no run was made"),
        ([VALID, VALID], "2 of 2 valid"),
        (
            [VALID, LOST, OPEN, IDLE, IDLE],
            (
                "3 of 5 valid, 1 invalid: lost-write (KAFKA-14139), 1 unknown: no broker was "
                "killed; no partition took effect in 2 runs"
            ),
        ),
        ([LOST, LOST], "0 of 2 valid, 2 invalid: lost-write in 2 (KAFKA-14139)"),
        (
            [LOST, replace(LOST, findings=("storm:unseen",), scenario="storm", issue=None)],
            "0 of 2 valid, 2 invalid: lost-write in 1 (KAFKA-14139), unseen in 1",
        ),
        ([BROKEN], "0 of 1 valid, 1 failed: no port"),
        (
            [OPEN, OPEN, replace(OPEN, reason="other")],
            "0 of 3 valid, 3 unknown: no broker was killed (and 1 other reason)",
        ),
        (
            [replace(VALID, findings=("smoke:epochless-join",))],
            "1 of 1 valid, findings that are known: epochless-join",
        ),
    ],
)
def test_all_runs_are_one_line(runs: list[SummedRun], line: str) -> None:
    assert sum_line(runs) == line


def test_a_page_has_no_column_in_which_nothing_stands(tmp_path: Path) -> None:
    def page(*runs: SummedRun) -> str:
        write_sums_page(
            tmp_path / "a.html", runs, title="t", started_at="2026-03-01T08:00:00Z", command="c"
        )
        return (tmp_path / "a.html").read_text()

    assert "found, in how many runs" not in page(VALID, OPEN)
    assert "found, or why not" in page(VALID, OPEN)
    assert "found, or why not" not in page(VALID, VALID)
    assert "found, in how many runs" in page(VALID, LOST)


def test_what_was_left_out_is_said() -> None:
    left = LeftOutCell(
        scenario="upgrade", subject="kafka 3.9.2", run_count=2, reason="no time left"
    )
    said = sum_line([VALID], left_out=[left])
    assert said == "1 of 1 valid; left out: upgrade on kafka 3.9.2 (no time left)"


def test_a_check_is_never_judged_only_if_no_run_with_a_verdict_had_a_case() -> None:
    assert not_judged_in([VALID, BROKEN]) == ("idle", "rare")
    assert not_judged_in([VALID, IDLE]) == ("idle",)
    assert not_judged_in([BROKEN]) == ()


def test_groups_are_apart_by_scenario_release_host_and_variant() -> None:
    others = [
        replace(VALID, scenario="storm"),
        replace(VALID, release="3.9.2"),
        replace(VALID, host="docker"),
        replace(VALID, variant="--nemesis kill"),
        replace(VALID, cluster="simulated", release=None),
    ]
    assert [len(group.runs) for group in run_groups([VALID, *others, LOST])] == [2, 1, 1, 1, 1, 1]


def test_what_json_tells_of_a_run_is_taken_over() -> None:
    told = {
        "validity": "invalid",
        "run": "r",
        "reason": "lost-write:  2\nlost",
        "findings": ["smoke:lost-write"],
        "faults": {"kill": {"begun": 2, "took_effect": 1}},
        "checks": {"idle": {"validity": "not judged"}, "lost-write": {"validity": "invalid"}},
    }
    known = {"scenario": "smoke", "system": "kafka", "cluster": "kafka", "release": None}
    run = summed_run(told, **known, seed=1, seconds=1.0)
    assert (run.verdict, run.reason) == ("invalid", "lost-write: 2 lost")
    assert (run.faults, run.not_judged) == ({"kill": 1}, {"idle"})
    failed = summed_run({"validity": "failed", "error": "no port"}, **known, seed=1, seconds=1.0)
    assert (failed.reason, failed.run) == ("no port", None)


def test_junit_has_a_case_a_run_whose_names_are_apart(tmp_path: Path) -> None:
    runs = [VALID, LOST, OPEN, BROKEN, replace(VALID, release="3.9.2"), replace(VALID, host="ssh")]
    left = LeftOutCell(
        scenario="upgrade", subject="kafka 3.9.2", run_count=2, reason="no time left"
    )
    write_sums_junit(tmp_path / "junit.xml", runs, left_out=[left])
    root = ET.parse(tmp_path / "junit.xml").getroot()
    names = {(case.get("classname"), case.get("name")) for case in root.iter("testcase")}
    assert len(names) == 7
    assert ("fencepost.smoke.kafka_4_3_1", "smoke on kafka 4.3.1, host local, seed 2") in names
    for tag, attribute, count in (
        ("failure", "failures", 1),
        ("error", "errors", 2),
        ("skipped", "skipped", 1),
    ):
        assert len(list(root.iter(tag))) == count
        assert sum(int(suite.get(attribute, "")) for suite in root) == count


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in {"href", "src"}]


def test_the_page_is_alone_and_leads_to_the_pages_of_its_runs(tmp_path: Path) -> None:
    (tmp_path / "smoke/1").mkdir(parents=True)
    (tmp_path / "smoke/1/report.html").write_text("page")
    (tmp_path / "nights").mkdir()
    runs = [
        replace(VALID, run=str(tmp_path / "smoke/1")),
        replace(LOST, reason="<script>alert(1)</script>", run=str(tmp_path / "gone")),
    ]
    path = tmp_path / "nights/night.html"
    write_sums_page(path, runs, title="A night", started_at="2026-03-01T08:00:00Z", command="c")
    text = path.read_text()
    page = _Page()
    page.feed(text)
    assert page.links == ["../smoke/1/report.html"]
    assert "script" not in page.tags
    assert "1 of 2 valid, 1 invalid: lost-write (KAFKA-14139)" in text
    assert len(text) < 10_000
