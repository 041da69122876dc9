"""The windows of a run on its page, in its lines on a terminal and in its JUnit file."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from page_tree import Element, parse_page
from synthetic_run import RunSpec, result, verdict_with, write_run
from window_rows import NEVER_OPENED, UNUSED, windows_table

from fencepost.checkers.grounds.windows import WindowKind, figures_of
from fencepost.checkers.verdict import Verdict
from fencepost.history.manifest import Manifest, read_manifest, write_manifest
from fencepost.report.junit import write_junit
from fencepost.report.page import write_page
from fencepost.report.terminal import verdict_text
from fencepost.report.windows import window_line

ALTER = WindowKind(
    kind="AlterPartition request",
    laid_count=4,
    opened_count=3,
    struck_count=2,
    strikes={"cut_power": 0, "kill": 1, "pause": 2},
)
VOTE = WindowKind(kind="Vote request", laid_count=1, opened_count=1, struck_count=0)
NEVER = WindowKind(kind="Vote response", laid_count=0, opened_count=0, struck_count=0)
EMPTY = "\N{EN DASH}"
VERDICT = verdict_with(replace(result("window-strikes"), figures=figures_of([ALTER, VOTE, NEVER])))
UNRECORDED = Verdict.of(one for one in VERDICT.checks if one.check != "window-strikes")
WINDOWS = windows_table(
    {"struck": ["kill", "pause"]},
    {"window": "mix-2", **UNUSED, "kind": "Vote request", "key": None},
    {"window": "mix-3", **NEVER_OPENED, "begin_ns": 11_000_000_000},
    {
        "window": "mix-4",
        "begin_ns": 15_000_000_000,
        "held_ns": 16_000_000_000,
        "strike_ns": 16_000_250_000,
        "end_ns": None,
    },
    {"window": "mix-5", "kind": "BeginQuorumEpoch response", "key": None},
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Element:
    spec = RunSpec(rate=20, windows=WINDOWS, verdict=VERDICT)
    return parse_page(write_page(write_run(tmp_path_factory.mktemp("run"), spec)).read_text())


def lines(results: Path, verdict: Verdict, *, model: str = "") -> list[str]:
    run = write_run(results, RunSpec(sealed=False))
    manifest: Manifest = replace(read_manifest(run.manifest_path), model=model)
    write_manifest(run.manifest_path, manifest)
    return verdict_text(verdict, run).plain.split("\n")


def test_the_lines_count_the_windows_of_each_kind(tmp_path: Path) -> None:
    said = lines(tmp_path, VERDICT)
    alter = "3 of 4 opened, 2 struck (kill 1, pause 2), 1 closed unused"
    assert f"  windows AlterPartition request: {alter}" in said
    assert "  windows Vote request: 1 opened, 0 struck, 1 closed unused" in said
    assert "  windows never laid: Vote response" in said
    assert said[1].endswith("; 2 of 3 kinds of window had no strike.")


def test_a_kind_that_no_server_would_name_so_stays_in_its_line() -> None:
    assert "\n" not in window_line(replace(VOTE, kind="Vote\nVALID: all is well"))


def test_a_run_without_the_record_says_so_and_an_open_history_does_not(tmp_path: Path) -> None:
    assert "  windows not recorded" in lines(tmp_path / "old", UNRECORDED)
    said = lines(tmp_path / "open", UNRECORDED, model="register")
    assert not [line for line in said if "windows" in line]


def test_the_properties_count_the_windows_of_each_kind(tmp_path: Path) -> None:
    run = write_run(tmp_path, RunSpec(sealed=False, verdict=VERDICT))
    found = {
        one.get("name"): one.get("value")
        for one in ET.parse(write_junit(run)).getroot().iter("property")
        if one.get("name", "").startswith("window.AlterPartition request")
    }
    name = "window.AlterPartition request"
    assert found == {
        f"{name}.laid": "4",
        f"{name}.opened": "3",
        f"{name}.struck": "2",
        f"{name}.unused": "1",
        f"{name}.struck_by.kill": "1",
        f"{name}.struck_by.pause": "2",
    }


def test_each_kind_has_a_row_with_its_strikes_and_blanks_where_there_were_none(
    page: Element,
) -> None:
    heads = [head.text for head in page.one("table", class_="window-kinds").one("thead").all("th")]
    assert heads[1:] == ["laid", "opened", "struck", "closed unused", "cut_power", "kill", "pause"]
    alter = page.one("tr", data_window_kind="AlterPartition request")
    assert [cell.text for cell in alter.all("td")] == ["4", "3", "2", "1", "", "1", "2"]
    vote = page.one("tr", data_window_kind="Vote request")
    assert [cell.text for cell in vote.all("td")] == ["1", "1", "0", "1", "", "", ""]
    assert (alter.attributes["class"], vote.attributes["class"]) == ("", "doubtful")


@pytest.mark.parametrize(
    ("number", "cells"),
    [
        (0, "0 AlterPartition request window t-0 10.000 s 1.00 s 1.00 s kill, pause 3.00 s"),
        (1, "1 Vote request window 10.000 s 1.00 s closed unused 3.00 s"),
        (2, "2 AlterPartition request window t-0 11.000 s never opened"),
        (3, "3 AlterPartition request window t-0 15.000 s 1.00 s 250 µs kill ≥ 29.0 s"),
    ],
)
def test_each_window_has_a_row_from_its_rule_to_its_end(
    page: Element, number: int, cells: str
) -> None:
    row = page.one("tr", data_window=str(number))
    told = [cell.text for cell in row.all("td") if cell.text and cell.text != EMPTY]
    assert " ".join(told) == cells


def test_the_timeline_has_a_lane_a_kind_and_a_mark_a_strike(page: Element) -> None:
    plots = json.loads(page.one("script", id="plots-content").children[0])
    (drawn,) = [one for one in page.all("figure") if one.one("h3").text == "Windows"]
    text = json.dumps(plots)
    assert text.count(json.dumps("Alter\nPartition\nrequest")) == 1
    assert text.count(json.dumps("Vote\nrequest")) == 1
    assert text.count(json.dumps("Begin Quorum\nEpoch\nresponse")) == 1
    entries = [button.attributes["data-entry"] for button in drawn.all("button")]
    assert entries == ["window:open", "window:strike"]
    assert '"entry=window:strike"' in text


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (RunSpec(rate=20, verdict=UNRECORDED), ["Windows Not recorded."]),
        (RunSpec(rate=20, verdict=VERDICT, windows=windows_table()), []),
    ],
)
def test_a_page_without_windows_says_why_or_is_silent(
    tmp_path: Path, spec: RunSpec, says: list[str]
) -> None:
    found = parse_page(write_page(write_run(tmp_path, spec)).read_text())
    assert [section.text for section in found.all("section", id="windows")] == says
    assert not [one for one in found.all("figure") if one.one("h3").text == "Windows"]


def test_a_damaged_table_is_a_trouble_and_the_rest_is_shown(tmp_path: Path) -> None:
    run = write_run(tmp_path, RunSpec(rate=20, windows=WINDOWS, verdict=VERDICT))
    run.table_path("windows").write_bytes(b"torn")
    found = parse_page(write_page(run).read_text())
    assert found.all("section", id="windows") == []
    assert "windows.parquet" in found.one("p", class_="trouble unread").text
    assert found.one(id="verdict").text == "valid"


def test_kinds_that_were_never_laid_are_a_line_and_no_rows(page: Element) -> None:
    rows = page.one("table", class_="window-kinds").one("tbody").all("tr")
    assert {row.attributes["data-window-kind"] for row in rows} == {
        "AlterPartition request",
        "Vote request",
    }
    notes = [note.text for note in page.one("section", id="windows").all("p")]
    assert "Never laid: Vote response." in notes
