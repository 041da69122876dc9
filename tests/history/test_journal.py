import json
import threading
from pathlib import Path

import pytest
from sealed_runs import sealed_table

from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError
from fencepost.history.journal import EventJournal, FaultJournal, ReadJournal, SampleJournal
from fencepost.history.run_directory import RunDirectory

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
    faults = sealed_table(run, "faults").to_pylist()
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


def test_a_fault_says_what_it_was_done_for(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    with FaultJournal(run.raw, CLOCK) as journal:
        journal.begin("kill", ["broker-1"], kind="wipe")
        journal.begin("wipe", ["broker-1"])
    rows = sealed_table(run, "faults").to_pylist()
    assert [(row["fault"], row["kind"]) for row in rows] == [("kill", "wipe"), ("wipe", "wipe")]


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
    samples = sealed_table(run, "samples").to_pylist()
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
    assert sealed_table(run, "samples")["value"].to_pylist() == [1.0]


@pytest.mark.parametrize("line", ["garbage", "[1]", '{"event": "explode", "index": 0}'])
def test_a_line_that_is_none_of_ours_is_refused_by_place(tmp_path: Path, line: str) -> None:
    run = run_in(tmp_path)
    (run.raw / "faults.jsonl").write_text(f"{line}\n")
    with pytest.raises(HarnessError, match=r"faults\.jsonl"):
        sealed_table(run, "faults")


def test_an_end_without_a_begin_is_refused_by_place(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    line = {"event": "end", "index": 3, "time_ns": 5, "evidence": "back"}
    (run.raw / "faults.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(HarnessError, match=r"faults\.jsonl"):
        sealed_table(run, "faults")


def test_a_journal_is_begun_once(tmp_path: Path) -> None:
    with (
        FaultJournal(tmp_path, CLOCK),
        pytest.raises(HarnessError, match=r"cannot create .*faults\.jsonl"),
    ):
        FaultJournal(tmp_path, CLOCK)


def write(topic: str, call_ns: int, *, process: int = 0) -> dict[str, object]:
    f = "delete-topic"
    return {"process": process, "f": f, "node": "broker-1", "topic": topic, "call_ns": call_ns}


def test_an_event_without_an_end_is_info(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    with EventJournal(run.raw, "metadata_writes") as journal:
        journal.begin(write("a", 1))
        ended = journal.begin(write("b", 2))
        journal.end(ended, {"outcome": "ok", "return_ns": 3})
    rows = sealed_table(run, "metadata_writes").to_pylist()
    assert [(row["index"], row["topic"], row["outcome"], row["return_ns"]) for row in rows] == [
        (0, "a", "info", None),
        (1, "b", "ok", 3),
    ]


def test_a_note_adds_to_an_event_whether_it_ends_or_not(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    begun = {"process": 0, "transactional_id": "x", "intent": "commit"}
    with EventJournal(run.raw, "transactions") as journal:
        for begin_ns in (1, 2):
            number = journal.begin({**begun, "begin_ns": begin_ns})
            journal.note(number, {"keys": ["t-0"], "values": [begin_ns], "end_call_ns": 5})
        journal.end(0, {"outcome": "fail", "error": "FENCED", "return_ns": 6})
    first, second = sealed_table(run, "transactions").to_pylist()
    assert (first["values"], first["outcome"], first["end_call_ns"]) == ([1], "fail", 5)
    assert (second["values"], second["outcome"], second["end_call_ns"]) == ([2], "info", 5)


def test_several_writers_are_numbered_as_one_by_the_times_of_their_calls(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    with (
        EventJournal(run.raw, "metadata_writes", writer="client-0") as one,
        EventJournal(run.raw, "metadata_writes", writer="client-1") as other,
    ):
        one.begin(write("a", 1))
        other.begin(write("b", 2))
        other.begin(write("d", 9))
        one.end(one.begin(write("c", 5)), {"outcome": "ok", "return_ns": 6})
    rows = sealed_table(run, "metadata_writes").to_pylist()
    assert [(row["index"], row["topic"]) for row in rows] == list(enumerate("abcd"))


def test_reads_are_numbered_in_the_order_of_their_calls_not_of_their_returns(
    tmp_path: Path,
) -> None:
    run = run_in(tmp_path)
    shared = {"process": 0, "node": "broker-1", "error": "NONE"}
    with ReadJournal(run.raw, CLOCK) as journal:
        begun = [journal.begin() for _ in range(4)]
        journal.drop(begun[0][0])
        for number, call_ns in reversed(begun[1:3]):
            items = [{"topic": f"of-{number}", "partition": place} for place in range(2)]
            journal.end(number, call_ns=call_ns, columns=shared, items=items)
    rows = sealed_table(run, "describes").to_pylist()
    assert [(row["read"], row["topic"], row["partition"]) for row in rows] == [
        (0, "of-1", 0),
        (0, "of-1", 1),
        (1, "of-2", 0),
        (1, "of-2", 1),
    ]
    assert rows[0]["call_ns"] <= rows[2]["call_ns"] <= rows[2]["return_ns"] <= rows[0]["return_ns"]


@pytest.mark.parametrize("event", ["begin", "note", "end", "explode"])
def test_an_event_that_makes_no_sense_is_refused_by_place(tmp_path: Path, event: str) -> None:
    run = run_in(tmp_path)
    line = {event: 7, "outcome": "ok"}
    (run.raw / "metadata_writes.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(HarnessError, match=r"metadata_writes\.jsonl"):
        sealed_table(run, "metadata_writes")
