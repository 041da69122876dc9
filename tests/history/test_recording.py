"""Recorders, then the seal, then the reader, against a recording made of dicts."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recording_model import KEYS, Consumer, Model, Producer

from history import merge, records, spill
from history.operation import Outcome
from history.reader import load_table
from history.run_directory import RunDirectory

# Small enough that every seam of the seal is met: pieces, parts, batches, segments.
SEAMS = ((merge, "_PIECE_SLOTS", 3), (records, "_PIECE_ROWS", 4), (spill, "_BATCH_ROWS", 2))

key = st.integers(0, len(KEYS) - 1)
outcome = st.sampled_from(Outcome)
error = st.sampled_from([0, -192, -184, 19, 31_000])
record = st.tuples(key, st.integers(0, 99), st.integers(0, 1 << 50), st.integers(0, 3))
end = st.tuples(st.integers(0, 99), st.integers(-1, 99), outcome, error)

send = st.tuples(st.just("send"), st.integers(0, 2), st.lists(key, max_size=7))
ends = st.tuples(st.just("ends"), st.integers(0, 2), st.lists(end, max_size=7))
poll = st.tuples(st.just("poll"), st.integers(0, 1), st.none() | key)
returned = st.lists(record, max_size=6)
append = st.tuples(st.just("append"), st.integers(0, 1), st.integers(0, 9), returned)
polled = st.tuples(
    st.just("polled"), st.integers(0, 1), st.integers(0, 9), returned, outcome, error
)
step = st.tuples(st.integers(0, 2), send | ends | poll | append | polled)


@settings(max_examples=80, deadline=None)
@given(steps=st.lists(step, max_size=40), slot_count=st.integers(1, 5))
def test_what_was_recorded_is_what_is_read(steps: list[tuple], slot_count: int) -> None:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        for module, name, small in SEAMS:
            patch.setattr(module, name, small)
        run = RunDirectory(Path(directory))
        run.raw.mkdir()
        model = perform(steps, run.raw, slot_count)
        assert load_table(run, "operations").to_pylist() == model.operation_rows()
        assert load_table(run, "records").to_pylist() == model.record_rows()
        assert not run.raw.exists()


def perform(steps: list[tuple], raw: Path, slot_count: int) -> Model:
    """Do the steps; a step that needs an open operation where there is none is left out."""
    model = Model()
    producers = [Producer(raw, model, process=n, slot_count=slot_count) for n in range(3)]
    consumers = [
        Consumer(raw, model, process=7 + n, slot_count=slot_count, record_count=5) for n in range(2)
    ]
    time_ns = 0
    for wait_ns, (what, who, *rest) in steps:
        time_ns += wait_ns
        if what in ("send", "ends"):
            produce(producers[who], what, rest, time_ns)
        else:
            consume(consumers[who], what, rest, time_ns)
    for client in (*producers, *consumers):
        client.recorder.close()
    return model


def produce(producer: Producer, what: str, rest: list, time_ns: int) -> None:
    if what == "send":
        producer.invoke(rest[0], time_ns)
        return
    chosen: dict[int, tuple] = {}
    values = sorted(producer.open)
    for number, *how in rest[0] if values else []:
        value = values[number % len(values)]
        chosen.setdefault(value, (value, *how))
    producer.complete(list(chosen.values()), time_ns)


def consume(consumer: Consumer, what: str, rest: list, time_ns: int) -> None:
    if what == "poll":
        consumer.invoke(time_ns, rest[0])
    elif consumer.open:
        sequence = sorted(consumer.open)[rest[0] % len(consumer.open)]
        if what == "append":
            consumer.append(sequence, rest[1])
        else:
            consumer.complete(sequence, *rest[1:], time_ns)
