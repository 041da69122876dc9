"""Recorders, then the seal, then the reader, against a recording made of dicts."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from recording_model import KEYS, Consumer, Model, Producer
from sealed_runs import sealed_table

from fencepost.history import merge, seal
from fencepost.history.operation import Outcome
from fencepost.history.run_directory import RunDirectory

pytestmark = pytest.mark.slow

# The seams of the seal, where it cuts its work: each is met with small numbers, and crossed with
# large ones.
SEAMS = ((merge, "_PIECE_SLOTS"), (merge, "_PIECE_ROWS"), (seal, "_BATCH_ROWS"))

key = st.integers(0, len(KEYS) - 1)
outcome = st.sampled_from(Outcome)
error = st.sampled_from([0, -192, -184, 19, 31_000])
record = st.tuples(key, st.integers(0, 99), st.integers(0, 1 << 50), st.integers(0, 3))
end = st.tuples(st.integers(0, 99), st.integers(-1, 99), outcome, error)

send = st.tuples(st.just("send"), st.integers(0, 1), st.lists(key, max_size=7))
ends = st.tuples(st.just("ends"), st.integers(0, 1), st.lists(end, max_size=7))
poll = st.tuples(st.just("poll"), st.integers(0, 1), st.none() | key)
returned = st.lists(record, max_size=4)
append = st.tuples(st.just("append"), st.integers(0, 1), st.integers(0, 9), returned)
polled = st.tuples(
    st.just("polled"), st.integers(0, 1), st.integers(0, 9), returned, outcome, error
)
step = st.tuples(st.integers(0, 2), send | ends | poll | append | polled)
sizes = st.sampled_from([1, 2, 3, 5, 1000])


def one_record(offset: int) -> list[tuple[int, int, int, int]]:
    return [(0, offset, offset, 0)]


@settings(max_examples=4 * settings().max_examples // 5)
@given(
    steps=st.lists(step, max_size=40),
    slot_count=st.integers(1, 5),
    record_count=st.integers(1, 5) | st.just(100),
    seams=st.tuples(sizes, sizes, sizes),
)
# Two final reads open at once, whose records come in turns.
@example(
    steps=[
        (1, ("poll", 0, 0)),
        (1, ("poll", 0, 0)),
        *[(1, ("append", 0, turn % 2, one_record(turn))) for turn in range(6)],
    ],
    slot_count=5,
    record_count=100,
    seams=(1000, 1000, 1000),
)
# A key that is polled before it is sent to, all in one piece.
@example(
    steps=[
        (1, ("poll", 0, None)),
        (1, ("polled", 0, 0, one_record(1), Outcome.OK, 0)),
        (1, ("send", 0, [0, 1, 2, 3])),
        (1, ("poll", 0, None)),
        (0, ("send", 0, [0])),
    ],
    slot_count=5,
    record_count=100,
    seams=(1000, 1000, 1000),
)
def test_what_was_recorded_is_what_is_read(
    steps: list[tuple], slot_count: int, record_count: int, seams: tuple[int, int, int]
) -> None:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        for (module, name), size in zip(SEAMS, seams, strict=True):
            patch.setattr(module, name, size)
        run = RunDirectory(Path(directory))
        run.raw.mkdir()
        model = perform(steps, run.raw, slot_count, record_count)
        assert sealed_table(run, "operations").to_pylist() == model.operation_rows()
        assert sealed_table(run, "records").to_pylist() == model.record_rows()
        assert not run.raw.exists()


def perform(steps: list[tuple], raw: Path, slot_count: int, record_count: int) -> Model:
    """Do the steps; a step that needs an open operation is left out without one."""
    model = Model()
    producers = [Producer(raw, model, process=n, slot_count=slot_count) for n in range(2)]
    consumers = [
        Consumer(raw, model, process=7 + n, slot_count=slot_count, record_count=record_count)
        for n in range(2)
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
