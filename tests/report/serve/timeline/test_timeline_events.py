"""The events of a run as typed arrays, its rows, and the first difference of two runs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from story_runs import HELD_AT, STORY
from synthetic_cluster import Tape, isr, story_tape
from synthetic_run import SECOND, write_run

from fencepost.bench.timeline import synthetic_run
from fencepost.harness.trials.plan import drawn_plan
from fencepost.harness.trials.store import store_trial
from fencepost.history.failure import HarnessError
from fencepost.history.run_directory import RunDirectory
from fencepost.report.serve.timeline.block import KINDS
from fencepost.report.serve.timeline.compare import first_difference
from fencepost.report.serve.timeline.opened import OpenRun, opened

pytestmark = pytest.mark.slow


def decoded(body: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    size = int.from_bytes(body[:4], "little")
    header = json.loads(body[4 : 4 + size])
    columns, offset = {}, 4 + size
    for one in header["columns"]:
        dtype = np.dtype("<" + one["type"])
        columns[one["name"]] = np.frombuffer(body, dtype, one["length"], offset)
        offset += -(-one["length"] * dtype.itemsize // 8) * 8
    assert offset == len(body)
    return header, columns


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return write_run(tmp_path_factory.mktemp("story"), STORY)


def test_every_row_of_the_tables_is_an_event(story: RunDirectory) -> None:
    run = OpenRun(story)
    header, events = decoded(run.events(0, run.reader.end_ns))
    kinds = np.bincount(events["kind"], minlength=len(KINDS))
    wire = pq.read_table(story.table_path("wire"))
    asked = pc.sum(pc.equal(wire["direction"], "request")).as_py()
    log = pq.read_table(story.table_path("metadata_log"))
    per_node = log.filter(pc.invert(log["snapshot"]))["node"].value_counts().to_pylist()
    operations = sum(
        len(pq.read_table(f)) for f in story.table_path("operations").glob("*.parquet")
    )
    assert kinds.tolist() == [
        asked,
        len(wire) - asked,
        operations,
        max(one["counts"] for one in per_node),
    ]
    assert header["many"] is False
    assert (np.diff(events["time"]) >= 0).all()


def test_an_event_has_its_link_its_fate_its_key_and_how_long_it_was_held(
    story: RunDirectory,
) -> None:
    run = OpenRun(story)
    header, events = decoded(run.events(0, run.reader.end_ns))
    (place,) = np.flatnonzero(events["fate"] == header["fates"].index("released"))
    assert events["time"][place] == round(HELD_AT * SECOND)
    assert events["took"][place] == pytest.approx((16.902 - HELD_AT) * SECOND, rel=1e-6)
    assert header["whats"][events["what"][place]] == "AlterPartition"
    assert header["keys"][events["key"][place]] == "t-0"
    assert header["lanes"][events["link"][place]] == {
        "kind": "link",
        "name": "broker-1 → controller-1",
    }
    assert events["epoch"][place] == 1
    assert header["brokerEpochs"][events["brokerEpoch"][place]] == "2"


def test_the_counts_of_a_run_are_those_of_its_events(tmp_path: Path) -> None:
    run = OpenRun(synthetic_run(tmp_path, events=20_000))
    overview, whole = decoded(run.overview())
    _, events = decoded(run.events(0, run.reader.end_ns))
    counts = whole["counts"].reshape(len(overview["lanes"]), overview["buckets"])
    both = np.concatenate([events["lane"], events["link"][events["kind"] < 2]])
    assert overview["events"] == len(events["time"]) == 20_000
    assert counts.sum(axis=1).tolist() == np.bincount(both, minlength=len(counts)).tolist()
    bucket = events["time"] * overview["buckets"] // (overview["end"] + 1)
    assert counts[1:].sum() - (events["kind"] < 2).sum() == np.bincount(bucket.astype(int)).sum()


def test_a_span_has_what_reaches_into_it_and_nothing_else(tmp_path: Path) -> None:
    run = OpenRun(synthetic_run(tmp_path, events=20_000))
    _, every = decoded(run.events(0, run.reader.end_ns))
    begin, end = 5 * SECOND, 7 * SECOND
    _, some = decoded(run.events(begin, end))
    until = every["time"] + np.maximum(every["took"].astype(float), 0)
    assert len(some["time"]) == pytest.approx(
        ((every["time"] <= end) & (until >= begin)).sum(), abs=2
    )
    assert (some["time"] < begin).any()


def test_a_span_of_too_many_events_is_told_to_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = OpenRun(synthetic_run(tmp_path, events=2_000))
    monkeypatch.setattr("fencepost.report.serve.timeline.opened.EVENTS_MAX", 1_999)
    header, _ = decoded(run.events(0, run.reader.end_ns))
    assert header["many"] is True


def test_a_frame_of_several_partitions_is_found_by_each(tmp_path: Path) -> None:
    tape = Tape()
    items = [isr(1, 2), {**isr(1), "partition": 3}]
    tape.asked(2.0, "broker-1", "controller-1", "AlterPartition", *items)
    run = OpenRun(write_run(tmp_path, replace(STORY, rate=0, wire=tape.table())))
    header, events = decoded(run.events(0, run.reader.end_ns))
    keys = [header["keys"][one] for one in events["key"][events["kind"] == 0]]
    assert sorted(keys) == ["t-0", "t-3"]


def test_the_row_of_an_event_is_that_of_its_table(story: RunDirectory) -> None:
    run = OpenRun(story)
    wire = pq.read_table(story.table_path("wire"))
    frame = wire.filter(pc.equal(wire["action"], "released"))["frame"][0].as_py()
    (row,) = run.rows("request", frame)
    assert (row["table"], row["api"], row["rule"]) == ("wire", "AlterPartition", "join")
    assert "producer_id" not in row
    assert run.rows("operation", 3)[0]["index"] == 3
    assert run.rows("request", 10**9) == []
    assert run.rows("nonsense", 3) == []


def test_findings_and_steps_are_pins(story: RunDirectory) -> None:
    header, _ = decoded(OpenRun(story).overview())
    assert {"step"} <= {pin["kind"] for pin in header["pins"]}
    assert any("join" in pin["text"] for pin in header["pins"])
    times = [pin["t"] for pin in header["pins"]]
    assert times == sorted(times)


def test_a_run_is_read_anew_once_its_files_have_changed(tmp_path: Path) -> None:
    run = write_run(tmp_path, STORY)
    first = opened(run.root)
    assert opened(run.root) is first
    manifest = run.manifest_path.read_text().replace(
        "Kills and pauses", "Changed: kills and pauses"
    )
    run.manifest_path.write_text(manifest)
    assert opened(run.root).manifest.title.startswith("Changed")


def test_no_run_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="is not a run"):
        opened(tmp_path)


def test_a_run_without_tables_has_no_event(tmp_path: Path) -> None:
    run = OpenRun(write_run(tmp_path, replace(STORY, sealed=False)))
    header, _ = decoded(run.overview())
    assert header["events"] == 0


# Two runs.


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> dict[str, OpenRun]:
    root = tmp_path_factory.mktemp("trials") / "storm"
    seeds = {"one": 2, "again": 2, "other": 3}
    for name, seed in seeds.items():
        store_trial(drawn_plan(seed), without_rules=(), root=root / name, name="storm")
    return {name: OpenRun(RunDirectory(root / name)) for name in seeds}


def test_the_same_seed_has_no_difference(trials: dict[str, OpenRun]) -> None:
    difference, count = first_difference(trials["one"], trials["again"])
    assert difference is None
    assert count > 100


def test_another_seed_has_a_first_difference(trials: dict[str, OpenRun]) -> None:
    difference, _ = first_difference(trials["one"], trials["other"])
    assert difference is not None
    assert any(differs for *_, differs in difference.names)


def with_wire(run: RunDirectory, tape: pa.Table) -> OpenRun:
    pq.write_table(tape, run.table_path("wire"))
    return OpenRun(run)


def test_the_first_difference_is_the_frame_that_says_something_else(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, STORY) for name in ("a", "b")]
    tape = story_tape().table()
    said = tape["error"].to_pylist()
    place = said.index("DUPLICATE_BROKER_REGISTRATION")
    said[place] = "NONE"
    column = tape.schema.get_field_index("error")
    changed = tape.set_column(column, tape.schema.field("error"), pa.array(said, pa.string()))
    difference, _ = first_difference(OpenRun(runs[0]), with_wire(runs[1], changed))
    assert difference is not None
    assert difference.lane == "controller-1 → broker-2"
    assert [name for name, *_, differs in difference.names if differs] == ["error"]
    assert difference.centre_ns(of_b=False) == tape["time_ns"][place].as_py()
    assert difference.lane_count == 1


def test_times_and_drawn_ids_are_no_difference(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, STORY) for name in ("a", "b")]
    tape = story_tape().table()
    for name, by in (("time_ns", 7), ("correlation_id", 100), ("connection", 5)):
        column = tape.schema.get_field_index(name)
        moved = pc.add(tape[name], pa.scalar(by, tape.schema.field(name).type))
        tape = tape.set_column(column, tape.schema.field(name), moved)
    assert first_difference(OpenRun(runs[0]), with_wire(runs[1], tape))[0] is None


def test_a_run_that_ends_earlier_differs_at_its_end(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, STORY) for name in ("a", "b")]
    tape = story_tape().table()
    difference, _ = first_difference(
        OpenRun(runs[0]), with_wire(runs[1], tape.slice(0, len(tape) - 1))
    )
    assert difference is not None
    assert difference.a is not None
    assert difference.b is None
