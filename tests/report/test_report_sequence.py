"""The sequence picture: what is drawn of a run, and what is said of the rest."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from page_tree import Element, parse_page
from story_runs import STORY
from synthetic_cluster import (
    TOPIC_ID,
    MetadataLog,
    Tape,
    isr,
)
from synthetic_run import SECOND, RunSpec, result, verdict_with, write_run

from fencepost.checkers.anomaly import Anomaly
from fencepost.checkers.proof import Proof
from fencepost.checkers.verdict import Validity
from fencepost.history.cluster_schema import METADATA_LOG, WIRE
from fencepost.history.manifest import RunState
from fencepost.report.arrows import ARROWS_MAX, ArrowFate
from fencepost.report.page import write_page
from fencepost.report.reading import read_run
from fencepost.report.sequence import SequenceScene, Window, scene_of

pytestmark = pytest.mark.slow


def told(tape: Tape | None = None, log: MetadataLog | None = None, **changes: object) -> RunSpec:
    """A short run of the story's cluster with this on its wire and in its log."""
    return replace(
        STORY,
        rate=0,
        wire=(tape or Tape()).table(),
        metadata_log=(log or MetadataLog()).table(),
        faults=(),
        play="",
        **changes,  # type: ignore[arg-type]  # by name
    )


def scene(results: Path, spec: RunSpec, window: Window | None = None) -> SequenceScene:
    run = write_run(results, spec)
    return scene_of(run, read_run(run), window=window)


def page_of(results: Path, spec: RunSpec, window: Window | None = None) -> Element:
    return parse_page(write_page(write_run(results, spec), window=window).read_text())


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Element:
    return page_of(tmp_path_factory.mktemp("story"), STORY).one("section", id="sequence")


def events(section: Element, look: str) -> list[str]:
    """The titles of the events that look so, in the order in which they stand."""
    return [
        group.one("title").text
        for group in section.all("g")
        if {"event", *look.split()} <= set((group.attributes.get("class") or "").split())
    ]


def test_the_nodes_stand_side_by_side_controllers_first(story: Element) -> None:
    names = [text.text for text in story.all("text", class_="node")]
    assert names[:3] == ["controller-1", "broker-1", "broker-2"]


def test_a_held_frame_waits_from_when_it_was_sent_to_when_it_was_let_go(story: Element) -> None:
    (held,) = [g for g in story.all("g", class_="pill") if "held by join" in g.text]
    assert held
    sent, arrived = (
        story.one("g", id=name).one("title").text for name in _names(story, "arrow disturbed")
    )
    assert "AlterPartition v2 broker-1 → controller-1" in sent
    assert "released by join, passed on 16.902 s, 10.2 s later" in sent
    assert arrived.startswith("AlterPartition arrives, 10.2 s late: AlterPartition t-0 isr [1, 2]")
    (wait,) = [
        line.attributes for line in story.one("svg", class_="sequence").all("line", class_="held")
    ]
    assert wait["x1"] == wait["x2"]
    assert float(wait["y2"] or 0) - float(wait["y1"] or 0) > 100


def _names(section: Element, look: str) -> list[str]:
    return [
        group.attributes["id"] or ""
        for group in section.one("svg", class_="sequence").all("g")
        if set(look.split()) <= set((group.attributes.get("class") or "").split())
    ]


def test_an_answer_that_came_at_once_stands_with_its_question(story: Element) -> None:
    words = [text.text for text in story.all("text", class_="words")]
    assert "BrokerRegistration → ok epoch 2" in words
    assert "AlterPartition t-0 isr [1] → ok isr [1]" in words


def test_a_refusal_is_named_and_its_repeats_are_counted(story: Element) -> None:
    (refused,) = events(story, "arrow refused")
    assert "DUPLICATE_BROKER_REGISTRATION" in refused
    words = [text.text for text in story.all("text", class_="words")]
    assert "BrokerRegistration → DUPLICATE_BROKER_REGISTRATION , 3 times" in words


def test_the_metadata_log_tells_what_changed_and_what_it_was_before(story: Element) -> None:
    decided = [text.text for text in story.all("text", class_="decision")]
    for words in (
        "controller-1 leads, controller epoch 1",
        "broker 2 registers, broker epoch 33",
        "t-0: ISR [1, 2] → [1]",
        "t-0: ISR [1] → [1, 2]",
        "t-0: leader 1 → 2, ISR [1, 2] → [2]",
        "broker 2 is fenced",
    ):
        assert words in decided
    assert "PartitionChangeRecord at metadata offset 36" in events(story, "decided")[-5]


def test_everything_stands_in_the_order_of_time(story: Element) -> None:
    clocks = [float(text.text) for text in story.all("text", class_="clock")]
    ys = [float(text.attributes["y"] or 0) for text in story.all("text", class_="clock")]
    assert clocks == sorted(clocks)
    assert ys == sorted(set(ys))
    assert any("later" in text.text for text in story.all("text", class_="pause"))


def test_the_steps_of_the_play_stand_at_their_times_in_the_run(tmp_path: Path) -> None:
    found = {step.text: step.time_ns / SECOND for step in scene(tmp_path, STORY).steps}
    assert found["pause broker-2"] == pytest.approx(2.61, abs=0.01)
    assert found["release join"] == pytest.approx(16.898, abs=0.01)
    assert "hold join: AlterPartition from broker-1 where isr includes 2" in found
    assert "await isr t-0 [1]" in found


def test_faults_of_nodes_are_bars_and_rules_are_not(story: Element) -> None:
    titles = [group.one("title").text for group in story.all("g", class_="fault")]
    assert [title.split(" pid")[0] for title in titles] == [
        "kill broker-1",
        "pause broker-2",
        "kill broker-2",
        "wipe broker-2",
    ]
    assert all("registered again" in title for title in titles)


def test_what_is_folded_away_is_counted(story: Element) -> None:
    (remark,) = [p.text for p in story.all("p", class_="note remark")]
    assert remark == "Not drawn, for nothing was done to them: 160 BrokerHeartbeat."


def test_heartbeats_are_drawn_where_a_rule_held_them_or_they_were_refused(tmp_path: Path) -> None:
    tape = Tape()
    for at, action, rule, until in (
        (1.0, "forwarded", None, 1.001),
        (2.0, "released", "slow", 4.0),
        (5.0, "forwarded", "registered:broker-1", 5.001),
    ):
        flags = {"action": action, "rule": rule, "until": until}
        asked = tape.asked(at, "broker-1", "controller-1", "BrokerHeartbeat", **flags)
        tape.answered(asked, until + 0.01)
    asked = tape.asked(6.0, "broker-1", "controller-1", "BrokerHeartbeat")
    tape.answered(asked, 6.01, error="STALE_BROKER_EPOCH")
    found = scene(tmp_path, told(tape))
    assert [(arrow.sent_ns // SECOND, arrow.is_answer) for arrow in found.arrows] == [
        (2, False),
        (4, True),
        (6, True),
    ]
    assert "Not drawn, for nothing was done to them: 5 BrokerHeartbeat." in found.remarks


@pytest.mark.parametrize(
    ("action", "until", "fate"),
    [
        ("forwarded", 3.001, ArrowFate.PASSED),
        ("cut", 3.001, ArrowFate.PASSED),
        ("delayed", 3.4, ArrowFate.LATE),
        ("released", 9.0, ArrowFate.LATE),
        ("undeliverable", 9.0, ArrowFate.LATE),
        ("held", None, ArrowFate.WAITING),
        ("dropped", None, ArrowFate.LOST),
        ("answered", None, ArrowFate.LOST),
        ("undeliverable", None, ArrowFate.LOST),
    ],
)
@pytest.mark.usefixtures("without_plots")
def test_what_became_of_a_frame(
    tmp_path: Path, action: str, until: float | None, fate: ArrowFate
) -> None:
    tape = Tape()
    rule = None if action == "forwarded" else "rule-7"
    flags = {"action": action, "rule": rule, "until": until}
    tape.asked(3.0, "broker-1", "controller-1", "AlterPartition", isr(1), **flags)
    (arrow,) = scene(tmp_path, told(tape)).arrows
    assert arrow.fate is fate
    section = page_of(tmp_path / "page", told(tape)).one("section", id="sequence")
    svg = section.one("svg", class_="sequence")
    assert len(svg.all("path", class_="cross")) == (
        action == "undeliverable" or fate is ArrowFate.LOST
    )
    assert len(svg.all("line", class_="held")) == (fate in (ArrowFate.LATE, ArrowFate.WAITING))
    assert ("rule-7" in svg.text) == (rule is not None)


def test_a_frame_that_rules_did_not_touch_and_that_decides_nothing_is_not_drawn(
    tmp_path: Path,
) -> None:
    tape = Tape()
    tape.asked(3.0, "broker-2", "broker-1", "Fetch")
    found = scene(tmp_path, told(tape))
    assert found.arrows == ()
    assert found.is_empty


def test_items_beyond_the_first_two_are_counted(tmp_path: Path) -> None:
    tape = Tape()
    items = [{"topic": "t", "partition": number, "isr": [1]} for number in range(5)]
    tape.asked(3.0, "broker-1", "controller-1", "AlterPartition", *items)
    (arrow,) = scene(tmp_path, told(tape)).arrows
    assert arrow.words == "AlterPartition t-0 isr [1], t-1 isr [1] and 3 more"


def test_a_topic_that_a_frame_states_by_id_has_the_name_that_the_log_gave_it(
    tmp_path: Path,
) -> None:
    tape, log = Tape(), MetadataLog()
    log.add(4, 1.0, "TopicRecord", topic="__offsets", topic_id=TOPIC_ID)
    items = [
        {"topic_id": TOPIC_ID, "partition": 0, "isr": [1]},
        {"topic": "t", "partition": 7, "isr": [1]},
    ]
    tape.asked(3.0, "broker-1", "controller-1", "AlterPartition", *items)
    (arrow,) = scene(tmp_path, told(tape, log)).arrows
    assert arrow.words == "AlterPartition t-7 isr [1], __offsets-0 isr [1]", "the run's own first"


def test_a_long_run_is_shown_around_what_was_held(tmp_path: Path) -> None:
    tape = Tape()
    for number in range(1000):
        asked = tape.asked(
            10.0 + number, "broker-1", "controller-1", "AlterPartition", isr(1, number)
        )
        tape.answered(asked, 10.001 + number, isr(1, number, error="NONE"))
    flags = {"action": "released", "rule": "join", "until": 620.0}
    tape.asked(600.0, "broker-2", "controller-1", "AlterPartition", isr(9), **flags)
    found = scene(tmp_path, told(tape, seconds=2000.0))
    assert not found.whole
    assert found.window == Window(from_ns=595 * SECOND, to_ns=625 * SECOND)
    assert "join" in {arrow.rule for arrow in found.arrows}
    assert 20 < len(found.arrows) <= ARROWS_MAX


def test_a_storm_of_disturbed_frames_is_shown_from_its_begin(tmp_path: Path) -> None:
    tape = Tape()
    for number in range(4 * ARROWS_MAX):
        flags = {"action": "dropped", "rule": f"storm-{number}", "until": None}
        tape.asked(100.0 + number, "broker-2", "broker-1", "Fetch", **flags)
    found = scene(tmp_path, told(tape, seconds=2000.0))
    assert found.window.from_ns == 95 * SECOND
    assert found.window.to_ns < 200 * SECOND
    assert found.arrows[0].sent_ns == 100 * SECOND


def test_the_picture_is_bounded_and_keeps_what_is_nearest_to_the_held(tmp_path: Path) -> None:
    tape = Tape()
    for number in range(3 * ARROWS_MAX):
        tape.asked(
            10.0 + number * 0.01, "broker-1", "controller-1", "AlterPartition", isr(1, number)
        )
    flags = {"action": "dropped", "rule": "lost", "until": None}
    tape.asked(13.0, "broker-2", "controller-1", "AlterPartition", isr(9), **flags)
    found = scene(tmp_path, told(tape))
    assert len(found.arrows) == ARROWS_MAX
    times = [arrow.sent_ns / SECOND for arrow in found.arrows]
    assert times == sorted(times)
    assert min(times) == pytest.approx(13.0 - ARROWS_MAX / 2 / 100, abs=0.02)
    left_out = f"There was no room for {2 * ARROWS_MAX + 1} AlterPartition"
    assert any(remark.startswith(left_out) for remark in found.remarks)


@pytest.mark.usefixtures("without_plots")
def test_a_window_of_the_users_is_what_is_shown(tmp_path: Path) -> None:
    window = Window(from_ns=9 * SECOND, to_ns=14 * SECOND)
    found = scene(tmp_path, STORY, window)
    assert {arrow.api for arrow in found.arrows} == {"BrokerRegistration"}
    assert [note.metadata_offset for note in found.notes] == [28, 33, 34]
    section = page_of(tmp_path / "page", STORY, window).one("section", id="sequence")
    assert "From 9.000 s to 14.000 s" in section.text


def test_partitions_that_change_alike_are_one_note(tmp_path: Path) -> None:
    log = MetadataLog()
    for partition in range(5):
        log.add(10 + partition, 3.0, "PartitionChangeRecord", partition=partition, leader=2)
    (note,) = scene(tmp_path, told(log=log)).notes
    assert note.text == "t-0, t-1, t-2 and 2 more: leader none → 2"


def test_nodes_that_disagree_about_an_offset_are_named(tmp_path: Path) -> None:
    log = MetadataLog()
    for node, leader in (("controller-1", 1), ("controller-3", 1), ("controller-2", 2)):
        log.add(10, 3.0, "PartitionChangeRecord", node=node, leader=leader)
    found = [note.text for note in scene(tmp_path, told(log=log)).notes]
    assert found == [
        "t-0: leader none → 1 (only on controller-1, controller-3)",
        "t-0: leader 1 → 2 (only on controller-2)",
    ]


def test_an_older_snapshot_is_where_the_log_begins(tmp_path: Path) -> None:
    log = MetadataLog()
    log.add(5, 1.0, "PartitionRecord", isr=[1, 2], leader=1)
    log.rows[-1]["snapshot"] = True
    log.add(6, 2.0, "PartitionChangeRecord", isr=[1])
    (note,) = scene(tmp_path, told(log=log)).notes
    assert note.text == "t-0: ISR [1, 2] → [1]"


@pytest.mark.parametrize("offset", [36, (1 << 32) + 36])
def test_a_long_offset_such_as_a_zxid_has_room_behind_the_time(tmp_path: Path, offset: int) -> None:
    log = MetadataLog()
    log.add(offset, 1.0, "PartitionChangeRecord", leader=2)
    section = page_of(tmp_path, told(log=log)).one("section", id="sequence")
    number, time = (section.one("text", class_=look) for look in ("offset", "clock"))
    end, right = (float(one.attributes["x"] or 0) for one in (number, time))
    assert end - len(number.text) * 7.6 > right


def test_an_unclean_election_is_called_so(tmp_path: Path) -> None:
    log = MetadataLog()
    log.add(6, 2.0, "PartitionChangeRecord", leader=2, leader_recovery_state=1)
    (note,) = scene(tmp_path, told(log=log)).notes
    assert note.text == "t-0: leader none → 2 uncleanly"


@pytest.mark.usefixtures("without_plots")
def test_a_proof_leads_to_the_frames_and_decisions_that_it_names(tmp_path: Path) -> None:
    joined = Anomaly(
        check="stale-epoch-join",
        key="t-0",
        allowed=False,
        proof=Proof.of(
            "Broker 2 joined at metadata offset {joined} on the word of its earlier incarnation.",
            metadata_offsets={"joined": 36, "registered": 999},
            frames={"frame": 166, "answer_frame": 99_999},
            sources={"broker_epoch": "frame"},
            broker_epoch=7,
        ),
    )
    checked = verdict_with(result("stale-epoch-join", Validity.INVALID, reason="A join.", count=1))
    page = page_of(tmp_path, replace(STORY, anomalies=[joined], verdict=checked))
    links = [link.attributes["href"] for link in page.one("article").all("a")]
    assert links[:3] == ["#metadata-36", "#frame-166", "#frame-166"], "the last is a source"
    assert "999" in page.one("article").text
    for link in links[:2]:
        assert page.one("g", id=(link or "").removeprefix("#"))
    assert "proven" in (page.one("g", id="frame-166").attributes["class"] or "")


def test_a_frame_that_a_proof_names_is_drawn_whatever_its_api(tmp_path: Path) -> None:
    tape = Tape()
    tape.asked(3.0, "broker-2", "broker-1", "Fetch")
    run = write_run(tmp_path, told(tape))
    (arrow,) = scene_of(run, read_run(run), proven={0}).arrows
    assert arrow.proven


def _without_tables(spec: RunSpec) -> RunSpec:
    return replace(spec, wire=None, metadata_log=None)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_without_tables, "This run has no tape of what its nodes said to each other."),
        (_without_tables, "This run did not record the metadata log."),
        (
            lambda spec: replace(spec, wire=WIRE.empty_table()),
            "The wire was recorded, and nothing went over it.",
        ),
        (
            lambda spec: replace(spec, metadata_log=METADATA_LOG.empty_table()),
            "The metadata log that was recorded ties no decision to a time of this run.",
        ),
        (
            lambda spec: replace(spec, origin_utc_ns=0),
            "The metadata log that was recorded ties no decision to a time of this run.",
        ),
    ],
)
def test_what_was_not_recorded_is_said(
    tmp_path: Path, change: Callable[[RunSpec], RunSpec], says: str
) -> None:
    page = page_of(tmp_path, change(STORY))
    assert says in page.one("section", id="sequence").text
    assert page.all("p", class_="trouble unread") == []


@pytest.mark.parametrize("name", ["wire", "metadata_log"])
@pytest.mark.usefixtures("without_plots")
def test_a_table_that_is_torn_is_said_and_the_rest_is_drawn(tmp_path: Path, name: str) -> None:
    run = write_run(tmp_path, STORY)
    run.table_path(name).write_bytes(b"torn")
    section = parse_page(write_page(run).read_text()).one("section", id="sequence")
    assert str(run.table_path(name)) in section.text
    assert section.all("svg", class_="sequence")


@pytest.mark.usefixtures("without_plots")
def test_a_torn_play_is_said_and_the_rest_is_drawn(tmp_path: Path) -> None:
    section = page_of(tmp_path, replace(STORY, play="- {at: 3s, kill")).one(
        "section", id="sequence"
    )
    assert "cannot read the play" in section.text
    assert section.all("svg", class_="sequence")


@pytest.mark.usefixtures("without_plots")
def test_a_run_that_left_nothing_has_no_such_section(tmp_path: Path) -> None:
    spec = RunSpec(state=RunState.FAILED, failure="no port", sealed=False)
    assert page_of(tmp_path, spec).all("section", id="sequence") == []


@pytest.mark.usefixtures("without_plots")
def test_hostile_words_on_the_wire_are_shown_and_not_acted_on(tmp_path: Path) -> None:
    script = '"><script>alert(1)</script>'
    tape = Tape()
    flags = {"action": "dropped", "rule": script, "until": None}
    tape.asked(3.0, script, "controller-1", script, {"topic": script, "partition": 0}, **flags)
    log = MetadataLog()
    log.add(6, 2.0, "TopicRecord", topic=script, topic_id="x")
    run = write_run(tmp_path, told(tape, log))
    text = write_page(run).read_text()
    page = parse_page(text)
    assert script in page.one("section", id="sequence").text
    assert len([s for s in page.all("script") if "alert(1)" in s.text]) == 0
    assert not [e for e in page.walk() if any(name.startswith("on") for name in e.attributes)]


def test_every_event_tells_of_itself_and_names_are_unique(story: Element) -> None:
    groups = [
        group
        for group in story.all("g")
        if "event" in (group.attributes.get("class") or "").split()
    ]
    assert len(groups) > 30
    assert all(group.attributes["aria-label"] and group.one("title").text for group in groups)
    names = [e.attributes["id"] for e in story.walk() if "id" in e.attributes]
    assert len(names) == len(set(names))


@pytest.mark.usefixtures("without_plots")
def test_a_tape_of_another_schema_is_said(tmp_path: Path) -> None:
    run = write_run(tmp_path, STORY)
    table = pa.table({"frame": ["one"], "item": [0], "time_ns": [1]})
    pq.write_table(table, run.table_path("wire"))
    assert parse_page(write_page(run).read_text()).one("section", id="sequence").all("svg")
