from pathlib import Path

import numpy as np
import pytest
from recording_model import KEYS, Consumer, Model, Producer

from fencepost.history.counts import ClientCounts, live_counts
from fencepost.history.failure import HarnessError
from fencepost.history.operation import Outcome
from fencepost.history.segment_format import PROCESS_SHIFT
from fencepost.history.send_recorder import SendRecorder


def producer(raw: Path, *, process: int = 3, slot_count: int = 4) -> Producer:
    return Producer(raw, Model(), process=process, slot_count=slot_count)


def test_values_are_unique_across_processes_and_segments(tmp_path: Path) -> None:
    values = [
        value
        for process in (0, 3, 4)
        for value in producer(tmp_path, process=process).invoke([0] * 11, 5)
    ]
    assert len(set(values)) == 33
    assert values[11:22] == [(3 << PROCESS_SHIFT) + sequence for sequence in range(11)]


def test_a_batch_larger_than_a_segment_rolls_over(tmp_path: Path) -> None:
    producer(tmp_path, slot_count=4).invoke([0] * 11, 5)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"producer-3-{ordinal:06}.segment" for ordinal in range(3)]


def test_a_send_completes_in_whatever_segment_it_was_invoked(tmp_path: Path) -> None:
    sends = producer(tmp_path, slot_count=4)
    values = sends.invoke([0] * 11, 5)
    sends.complete([(value, -1, Outcome.INFO, -192) for value in reversed(values)], 9)
    assert live_counts(tmp_path).info == 11


@pytest.mark.parametrize("chosen", [[0, 1], [7, 20], [11]])
def test_completing_what_is_not_open_is_a_broken_assumption(
    tmp_path: Path, chosen: list[int]
) -> None:
    recorder = SendRecorder(tmp_path, client="p", process=1, keys=KEYS, slot_count=4)
    values = recorder.invoke(np.zeros(10, np.int32), time_ns=1)

    def complete(values: np.ndarray) -> None:
        nothing = np.zeros(len(values), np.int64)
        recorder.complete(
            values,
            offsets=nothing,
            outcomes=nothing.astype(np.uint8),
            errors=nothing.astype(np.int16),
            time_ns=2,
        )

    complete(values[:2])
    with pytest.raises((AssertionError, IndexError)):
        complete((1 << PROCESS_SHIFT) + np.array(chosen))


def test_a_clock_that_goes_back_is_a_broken_assumption(tmp_path: Path) -> None:
    sends = producer(tmp_path)
    sends.invoke([0], 5)
    with pytest.raises(AssertionError, match="invoked at 4 ns after 5 ns"):
        sends.invoke([0], 4)


def test_a_name_that_another_client_has_is_refused(tmp_path: Path) -> None:
    producer(tmp_path)
    with pytest.raises(HarnessError, match=r"producer-3-000000\.segment"):
        producer(tmp_path)


def test_progress_is_read_while_clients_record(tmp_path: Path) -> None:
    model = Model()
    sends = Producer(tmp_path, model, process=1, slot_count=2)
    values = sends.invoke([0, 1, 2, 3, 0], 5)
    sends.complete([(values[0], 7, Outcome.OK, 0), (values[4], -1, Outcome.FAIL, -184)], 8)
    polls = Consumer(tmp_path, model, process=2, slot_count=2, record_count=2)
    for records in ([(0, 7, values[0], 0)] * 3, []):
        polls.complete(polls.invoke(9), records, Outcome.OK, 0, 10 + len(records))
    polls.invoke(20)

    counts = live_counts(tmp_path)
    assert (counts.invoked, counts.ok, counts.fail, counts.info) == (5, 1, 1, 0)
    assert (counts.polls, counts.polled_records) == (2, 3)
    assert (counts.last_ok_send_ns, counts.last_ok_poll_ns) == (8, 13)
    assert counts.by_client == {
        "consumer-2": ClientCounts(polls=2, polled_records=3, last_ok_poll_ns=13),
        "producer-1": ClientCounts(invoked=5, ok=1, fail=1, last_ok_send_ns=8),
    }


def test_without_a_recorder_nothing_is_counted(tmp_path: Path) -> None:
    assert live_counts(tmp_path / "absent").invoked == 0
    (tmp_path / "p-000000.segment").write_bytes(b"FENC")
    assert live_counts(tmp_path).by_client == {"p": ClientCounts()}
