import json
import threading
from pathlib import Path

import pytest

from history.clock import Clock
from history.failure import HarnessError
from history.journal import FaultJournal, SampleJournal
from history.reader import load_table
from history.run_directory import RunDirectory

CLOCK = Clock(0)


def run_in(root: Path) -> RunDirectory:
    run = RunDirectory(root)
    run.raw.mkdir()
    return run


def test_a_fault_is_told_from_its_begin_to_its_heal(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    with FaultJournal(run.raw, CLOCK) as journal:
        killed = journal.begin("kill", ["broker-1", "broker-2"])
        paused = journal.begin("pause", ["broker-3"])
        journal.effect(killed, "pid 4711 is gone")
        journal.effect(killed, "and was not seen again")
        journal.end(killed, "broker-1 is back")
    faults = load_table(run, "faults").to_pylist()
    first, second = faults
    assert (first["index"], first["fault"], first["targets"]) == (
        killed,
        "kill",
        ["broker-1", "broker-2"],
    )
    assert first["begin_ns"] <= second["begin_ns"] <= first["effect_ns"] <= first["end_ns"]
    assert (first["evidence"], first["heal_evidence"]) == ("pid 4711 is gone", "broker-1 is back")
    assert second["index"] == paused
    assert [second[name] for name in ("effect_ns", "evidence", "end_ns", "heal_evidence")] == [
        None
    ] * 4


def test_threads_do_not_tear_each_other_s_lines(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    with SampleJournal(run.raw, CLOCK) as journal:
        threads = [
            threading.Thread(
                target=lambda source: [journal.add(source, "count", n) for n in range(200)],
                args=(f"client-{number}",),
            )
            for number in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=30)
    samples = load_table(run, "samples").to_pylist()
    for number in range(4):
        mine = [row["value"] for row in samples if row["source"] == f"client-{number}"]
        assert mine == [float(n) for n in range(200)]


@pytest.mark.parametrize("kept", [0, 1, 30])
def test_a_torn_last_line_is_left_out(tmp_path: Path, kept: int) -> None:
    run = run_in(tmp_path)
    with SampleJournal(run.raw, CLOCK) as journal:
        journal.add("run", "acknowledged_count", 1)
        journal.add("run", "acknowledged_count", 2)
    path = run.raw / "samples.jsonl"
    first, _, rest = path.read_bytes().partition(b"\n")
    path.write_bytes(first + b"\n" + rest[:kept])
    assert load_table(run, "samples")["value"].to_pylist() == [1.0]


@pytest.mark.parametrize("line", ["garbage", "[1]", '{"event": "explode", "index": 0}'])
def test_a_line_that_is_none_of_ours_is_refused_by_place(tmp_path: Path, line: str) -> None:
    run = run_in(tmp_path)
    (run.raw / "faults.jsonl").write_text(f"{line}\n")
    with pytest.raises(HarnessError, match=r"faults\.jsonl"):
        load_table(run, "faults")


def test_an_end_without_a_begin_is_refused_by_place(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    line = {"event": "end", "index": 3, "time_ns": 5, "evidence": "back"}
    (run.raw / "faults.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(HarnessError, match=r"faults\.jsonl"):
        load_table(run, "faults")


def test_a_journal_is_begun_once(tmp_path: Path) -> None:
    with (
        FaultJournal(tmp_path, CLOCK),
        pytest.raises(HarnessError, match=r"cannot create .*faults\.jsonl"),
    ):
        FaultJournal(tmp_path, CLOCK)
