"""What the seal makes of files that are cut, soiled or foreign."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recording_model import KEYS, Consumer, Model, Producer
from sealed_runs import sealed_table

from fencepost.history.failure import HarnessError
from fencepost.history.operation import Outcome
from fencepost.history.run_directory import RunDirectory
from fencepost.history.seal import seal
from fencepost.history.send_recorder import SendRecorder

SEGMENT_BYTES = 4096 * 2 + 6 * 64


def recorded(root: Path) -> tuple[RunDirectory, Model]:
    """A run of one producer with two segments, six sends in the first, one consumer, one poll."""
    run = RunDirectory(root)
    run.raw.mkdir()
    model = Model()
    sends = Producer(run.raw, model, process=1, slot_count=6)
    values = sends.invoke([0, 1, 2, 3, 0, 1, 2], 5)
    sends.complete([(value, 9, Outcome.OK, 0) for value in values[::2]], 8)
    polls = Consumer(run.raw, model, process=2, slot_count=3, record_count=8)
    polls.complete(polls.invoke(9), [(0, 7, values[0], 0)] * 3, Outcome.OK, 0, 10)
    for client in (sends, polls):
        client.recorder.close()
    return run, model


@settings(max_examples=2 * settings().max_examples // 5)
@given(size=st.integers(0, SEGMENT_BYTES))
def test_a_segment_that_was_cut_is_read_as_far_as_it_goes_and_counted(size: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        run, model = recorded(Path(directory))
        segment = run.raw / "producer-1-000000.segment"
        assert segment.stat().st_size == SEGMENT_BYTES
        with segment.open("r+b") as file:
            file.truncate(size)
        operations = sealed_table(run, "operations").drop_columns(["index"]).to_pylist()
        whole = model.operation_rows()
        for row in whole:
            del row["index"]
        kept = max(0, size - 2 * 4096) // 64
        assert operations == whole[:kept] + whole[6:]
        samples = sealed_table(run, "samples").to_pylist()
        lost = {"time_ns": 0, "source": "producer-1", "metric": "cut_segment_count", "value": 1.0}
        assert samples == ([lost] if size < SEGMENT_BYTES else [])


def test_polled_rows_that_were_cut_leave_the_rest(tmp_path: Path) -> None:
    run, _ = recorded(tmp_path)
    segment = run.raw / "consumer-2-000000.polled"
    with segment.open("r+b") as file:
        file.truncate(2 * 4096 + 3 * 64 + 2 * 32 + 5)
    assert sealed_table(run, "operations")["record_count"].to_pylist()[-1] == 2
    assert sealed_table(run, "samples")["metric"].to_pylist() == ["cut_segment_count"]


def test_a_garbage_tail_changes_nothing(tmp_path: Path) -> None:
    run, model = recorded(tmp_path)
    for path in run.raw.iterdir():
        with path.open("ab") as file:
            file.write(b"\xa5" * 777)
    assert sealed_table(run, "operations").to_pylist() == model.operation_rows()
    assert sealed_table(run, "records").to_pylist() == model.record_rows()
    assert sealed_table(run, "samples").num_rows == 0


def test_an_empty_recording_is_an_empty_history(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.raw.mkdir()
    for name in ("operations", "records", "faults", "samples"):
        assert sealed_table(run, name).num_rows == 0


def test_a_segment_that_was_not_finished_creating_is_not_there(tmp_path: Path) -> None:
    run, model = recorded(tmp_path)
    (run.raw / "producer-1-000002.segment.new").write_bytes(b"\0" * 100)
    assert sealed_table(run, "operations").to_pylist() == model.operation_rows()
    assert not run.raw.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not a segment at all", "is not a segment of a history: it starts b'not a se'"),
        (b"FENCPOST" + b"\x07" * 8192, "has segment format"),
    ],
)
def test_a_foreign_file_is_refused_by_name(tmp_path: Path, content: bytes, message: str) -> None:
    run, _ = recorded(tmp_path)
    foreign = run.raw / "notes-000000.segment"
    foreign.write_bytes(content)
    with pytest.raises(HarnessError, match=message) as raised:
        seal(run)
    assert str(foreign) in str(raised.value)
    assert not run.history.exists()
    assert len(list(run.raw.iterdir())) == 4


@pytest.mark.parametrize(
    ("at", "message"),
    [
        (16, "checksum of its header"),
        (4096, "checksum of its header"),
        (8192 + 64, "its slots are not numbered"),
        (8192 + 32, "a slot has a key that the file does not list"),
        (8192 + 13, "its calls go back in time"),
        (8192 + 38, "a slot has an unknown code"),
    ],
)
def test_a_damaged_segment_is_refused_by_name(tmp_path: Path, at: int, message: str) -> None:
    run, _ = recorded(tmp_path)
    segment = run.raw / "producer-1-000000.segment"
    with segment.open("r+b") as file:
        file.seek(at)
        file.write(b"\x63")
    with pytest.raises(HarnessError, match=message) as raised:
        seal(run)
    assert str(segment) in str(raised.value)
    assert [path.name for path in run.root.iterdir()] == ["raw"]


def test_a_segment_missing_between_others_is_noticed(tmp_path: Path) -> None:
    run, _ = recorded(tmp_path)
    (run.raw / "producer-1-000000.segment").unlink()
    with pytest.raises(HarnessError, match=r"missing .* producer-1-000000\.segment"):
        seal(run)


def test_two_clients_of_one_process_number_are_noticed(tmp_path: Path) -> None:
    run, _ = recorded(tmp_path)
    SendRecorder(run.raw, client="twin", process=1, keys=KEYS, slot_count=1).close()
    with pytest.raises(HarnessError, match="two clients recorded as process 1"):
        seal(run)
