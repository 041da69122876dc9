"""What is recorded many at a time is what would be recorded one by one."""

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fencepost.history.counts import Counts, live_counts
from fencepost.history.operation import F, Outcome
from fencepost.history.poll_recorder import PollRecorder
from fencepost.history.raw import read_raw
from fencepost.history.segment_format import SLOT
from fencepost.history.send_recorder import SendRecorder
from fencepost.workloads.simulated.polls import RecordedPolls, Returned
from fencepost.workloads.simulated.sends import BatchEnd, RecordedSends

KEYS = ("t-0", "t-1", "t-2")
OUTCOMES = st.sampled_from(Outcome)
RUNS = st.tuples(
    st.integers(0, 2),
    st.integers(0, 99),
    st.lists(st.integers(0, 1 << 50), max_size=5).map(tuple),
    st.integers(0, 9),
)
"""(key, first offset, values, session)."""
POLLS = st.lists(st.tuples(st.integers(0, 3), st.lists(RUNS, max_size=4), OUTCOMES), max_size=20)
"""(ns since the last, what it returned, how it ended)."""
SENDS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(1, 7), OUTCOMES), max_size=20
)
"""(ns since the last, first key, how many, how they ended)."""

Run = tuple[int, int, tuple[int, ...], int]
Poll = tuple[int, list[Run], Outcome]
Send = tuple[int, int, int, Outcome]


@given(
    polls=POLLS, open_ns=st.none() | st.just(99), rows=st.integers(1, 9), slots=st.integers(1, 9)
)
def test_polls(polls: list[Poll], open_ns: int | None, rows: int, slots: int) -> None:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        at_once, by_one = (
            PollRecorder(
                Path(where), client="c", process=3, keys=KEYS, slot_count=slots, record_count=rows
            )
            for where in (one, other)
        )
        _poll_at_once(at_once, polls, open_ns)
        _poll_one_by_one(by_one, polls, open_ns)
        assert _recorded(Path(one)) == _recorded(Path(other))


@given(sends=SENDS, slots=st.integers(1, 9), every=st.integers(1, 6))
def test_sends(sends: list[Send], slots: int, every: int) -> None:
    """`every`: so many calls are recorded with their ends at a time; the last may stay open."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        at_once, by_one = (
            SendRecorder(Path(where), client="p", process=2, keys=KEYS, slot_count=slots)
            for where in (one, other)
        )
        ended = len(sends) // every * every
        _send_at_once(at_once, sends, every)
        _send_one_by_one(by_one, sends, ended)
        assert _recorded(Path(one)) == _recorded(Path(other))


def _recorded(directory: Path) -> tuple[list[object], list[object], Counts]:
    """Every slot and, by their operations, every row; and the counts."""
    segments = [one for client in read_raw(directory).clients for one in client.segments]
    names = list(SLOT.names or ())
    slots = [slot for one in segments for slot in one.slots()[names].tolist()]
    rows = [row for one in segments for row in one.rows().tolist()]
    return slots, sorted(rows, key=lambda row: row[0]), live_counts(directory)


def _poll_at_once(recorder: PollRecorder, polls: list[Poll], open_ns: int | None) -> None:
    recorded = RecordedPolls(recorder)
    now = 0
    for wait_ns, runs, outcome in polls:
        now += wait_ns
        returned = Returned()
        for run in runs:
            returned.add(*run)
        number = recorded.invoke(time_ns=now, f=F.FINAL_READ, key=1)
        recorded.complete(number, returned, time_ns=now + 1, outcome=outcome, error=7)
    if open_ns is not None:
        recorded.invoke(time_ns=open_ns)
    recorded.close()


def _poll_one_by_one(recorder: PollRecorder, polls: list[Poll], open_ns: int | None) -> None:
    now = 0
    for wait_ns, runs, outcome in polls:
        now += wait_ns
        records = [
            (key, offset, value, session)
            for key, first, values, session in runs
            for offset, value in enumerate(values, first)
        ]
        columns = np.array(records, np.int64).reshape(-1, 4).T
        recorder.complete(
            recorder.invoke(time_ns=now, f=F.FINAL_READ, key=1),
            time_ns=now + 1,
            keys=columns[0].astype(np.int32),
            offsets=columns[1],
            values=columns[2],
            sessions=columns[3].astype(np.int32),
            outcome=outcome,
            error=7,
        )
    if open_ns is not None:
        recorder.invoke(time_ns=open_ns)
    recorder.close()


def _send_at_once(recorder: SendRecorder, sends: list[Send], every: int) -> None:
    recorded = RecordedSends(recorder, key_count=len(KEYS))
    ends: list[BatchEnd] = []
    now = 0
    for wait_ns, key, count, outcome in sends:
        now += wait_ns
        first = recorded.invoke(key, count, time_ns=now)
        ends.append(
            BatchEnd(tuple(range(first, first + count)), _base(outcome), outcome, 3, now + 1)
        )
        if len(ends) == every:
            recorded.complete(ends)
            ends = []
    recorded.close()


def _send_one_by_one(recorder: SendRecorder, sends: list[Send], ended: int) -> None:
    now = 0
    for place, (wait_ns, key, count, outcome) in enumerate(sends):
        now += wait_ns
        keys = np.array([(key + place) % len(KEYS) for place in range(count)], np.int32)
        values = recorder.invoke(keys, time_ns=now)
        base = _base(outcome)
        if place < ended:
            recorder.complete(
                values,
                offsets=np.array([base + one if base >= 0 else -1 for one in range(count)]),
                outcomes=np.full(count, outcome.code, np.uint8),
                errors=np.full(count, 3, np.int16),
                time_ns=now + 1,
            )
    recorder.close()


def _base(outcome: Outcome) -> int:
    return 5 if outcome is Outcome.OK else -1
