"""Where the records went: the page's account of a loss, and its evidence."""

from dataclasses import replace
from pathlib import Path

import pytest
import story_runs
from page_tree import Element, parse_page
from synthetic_cluster import (
    story_forensics,
)
from synthetic_run import SECOND, RunSpec, write_run

from fencepost.checkers.losses.forensics import (
    Forensics,
    Loss,
    MetadataNote,
    ValueFate,
    write_forensics,
)
from fencepost.report.forensics import MEANINGS, stories_at
from fencepost.report.page import write_page

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_plots")]

STORY = replace(story_runs.STORY, rate=10)
(LOSS,) = story_forensics().losses


def page_of(results: Path, *losses: Loss, spec: RunSpec = STORY) -> Element:
    run = write_run(results, spec)
    write_forensics(run.root / "forensics.json", Forensics(run_id="r", losses=losses))
    return parse_page(write_page(run).read_text())


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Element:
    return page_of(tmp_path_factory.mktemp("forensics"), LOSS)


def steps(page: Element) -> list[tuple[str, str, str]]:
    """Time, what happened, evidence of each step of the first story."""
    rows = page.all("table", class_="way")[0].one("tbody").all("tr")
    return [tuple(cell.text for cell in row.all("td")) for row in rows]  # type: ignore[misc]


def test_a_story_names_the_records_their_fate_and_the_sentence(page: Element) -> None:
    head = page.one("article", data_key="t-0").one("header").text
    for words in ("1,000 records of t-0", "lost", "on no replica's disk", "512 to 1511"):
        assert words in head
    assert LOSS.sentence in head


def test_the_way_is_told_in_the_order_of_time_with_its_evidence(page: Element) -> None:
    found = steps(page)
    timed = [float(time.removesuffix(" s")) for time, _, _ in found if time != "in the end"]
    assert timed == sorted(timed)
    told = {what: evidence for _, what, evidence in found}
    assert told[
        "The leader asks for broker 2 to be in the ISR, on the word of broker epoch 3."
    ] == ("frame 166")
    assert told["Broker 2 registers, with broker epoch 33."] == "metadata 33"
    joins = "Broker 2 joins the ISR (partition epoch 2), 10.2 s after it was asked for, though the "
    assert told[f"{joins}leader had judged its earlier incarnation."] == "frame 166 metadata 36"
    elected = "Broker 2 is elected, leader epoch 3; its log ends at offset 0."
    assert told[elected] == "metadata 43"
    assert told["broker-2 loses its disk: wipe."] == "fault 3"
    assert found[-1] == (
        "in the end",
        "broker-1 cut its log at offset 0.",
        "its log, as it lay in the end",
    )


def test_what_a_step_tells_is_not_told_twice(page: Element) -> None:
    words = [what for _, what, _ in steps(page)]
    assert "told anyway" not in words
    assert len(words) == len(set(words))
    assert sum("wipe" in what for what in words) == 1


def test_evidence_leads_into_the_sequence_picture_and_to_the_faults(page: Element) -> None:
    links = {
        link.attributes["href"]
        for link in page.one("table", class_="way").all("a")
        if link.attributes.get("class") != "time nowrap"
    }
    assert {"#frame-166", "#metadata-36", "#metadata-43", "#fault-3"} <= links
    names = {element.attributes.get("id") for element in page.walk()}
    assert {(link or "").removeprefix("#") for link in links} <= names


def test_the_disks_are_told_as_they_lay_in_the_end(page: Element) -> None:
    row = page.one("table", class_="disks").one("tbody").all("tr")[0]
    assert [cell.text for cell in row.all("td")] == ["0", "380", "380", "0", "3 from 0"]


def test_without_a_picture_of_it_evidence_is_named_and_not_linked(tmp_path: Path) -> None:
    bare = replace(STORY, wire=None, metadata_log=None)
    found = page_of(tmp_path, LOSS, spec=bare).one("table", class_="way")
    assert "frame 166" in found.text
    assert not [a for a in found.all("a") if (a.attributes["href"] or "").startswith("#frame")]


@pytest.mark.parametrize("fate", list(ValueFate))
def test_every_fate_has_a_meaning(tmp_path: Path, fate: ValueFate) -> None:
    head = page_of(tmp_path, replace(LOSS, fate=fate)).one("article", data_key="t-0").text
    assert fate in head
    assert MEANINGS[fate] in head


def test_a_loss_of_which_nothing_is_known_is_still_told(tmp_path: Path) -> None:
    bare = Loss(
        key="t-1",
        fate=ValueFate.UNCERTAIN,
        checks=("unseen",),
        count=1,
        first_offset=None,
        last_offset=None,
        values=(77,),
        operations=(3,),
        sentence="1 record of t-1.",
    )
    story = page_of(tmp_path, bare).one("article", data_key="t-1").text
    assert "their offsets are not known" in story
    assert "Nothing is known of the way." in story
    assert "1 record of t-1" in story


def test_the_largest_losses_are_told_and_the_others_counted(tmp_path: Path) -> None:
    losses = [replace(LOSS, key=f"t-{number}", count=10 + number) for number in range(9)]
    page = page_of(tmp_path, *losses)
    told = [
        one.attributes["data-key"] for one in page.all("article") if "data-key" in one.attributes
    ]
    assert told == ["t-8", "t-7", "t-6", "t-5", "t-4", "t-3"]
    assert "3 smaller losses are in forensics.json" in page.one("section", id="forensics").text


def test_a_long_way_keeps_what_decided(tmp_path: Path) -> None:
    notes = tuple(
        MetadataNote(metadata_offset=100 + n, time_ns=n * SECOND // 10, text=f"note {n}")
        for n in range(100)
    )
    path = tmp_path / "forensics.json"
    losses = (replace(LOSS, metadata=notes),)
    write_forensics(path, Forensics(run_id="r", losses=losses))
    (story,) = stories_at(path).stories
    words = [moment.what for moment in story.moments]
    assert len(words) + story.left_out == 100 + 10
    assert len(words) == 40
    assert "note 0" not in words
    assert "note 99" in words
    assert any("is elected" in what for what in words)


def test_records_of_one_millisecond_stand_in_the_order_of_the_log(tmp_path: Path) -> None:
    election = LOSS.election
    assert election is not None
    note = MetadataNote(metadata_offset=42, time_ns=election.time_ns, text="just before")
    path = tmp_path / "forensics.json"
    losses = (replace(LOSS, metadata=(note,)),)
    write_forensics(path, Forensics(run_id="r", losses=losses))
    (story,) = stories_at(path).stories
    offsets = [m.metadata_offsets for m in story.moments if m.time_ns == election.time_ns]
    assert offsets == [(42,), (43,)]


def test_without_forensics_there_is_no_such_section(tmp_path: Path) -> None:
    run = write_run(tmp_path, STORY)
    assert parse_page(write_page(run).read_text()).all("section", id="forensics") == []


def test_torn_forensics_are_a_trouble_and_the_rest_is_shown(tmp_path: Path) -> None:
    run = write_run(tmp_path, STORY)
    (run.root / "forensics.json").write_text("{")
    page = parse_page(write_page(run).read_text())
    assert "forensics.json are not JSON" in page.one("p", class_="trouble unread").text
    assert page.one("section", id="sequence").all("svg")


def test_what_could_not_be_looked_into_is_said(tmp_path: Path) -> None:
    run = write_run(tmp_path, STORY)
    trouble = "t-0: its log could not be read"
    write_forensics(run.root / "forensics.json", Forensics(run_id="r", troubles=(trouble,)))
    page = parse_page(write_page(run).read_text())
    assert trouble in page.one("section", id="forensics").text
