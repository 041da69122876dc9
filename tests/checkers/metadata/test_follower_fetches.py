"""What followers' Fetches told, by a tape that has few of them, against all there were."""

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fencepost.checkers.metadata.follower_fetches import begun_first, follower_fetches
from fencepost.history.cluster_schema import WIRE
from fencepost.nemesis.wire.fetches import Fetches

LINK = ("broker-2", "broker-1")


@dataclass(frozen=True)
class Fetch:
    connection: int
    named: frozenset[int]
    begins: bool
    """A session of its own; else it goes on with the last one."""
    passed_on: bool
    registers: bool
    """The follower has registered anew before it."""


def fetches(*, begins: st.SearchStrategy[bool]) -> st.SearchStrategy[list[Fetch]]:
    one = st.builds(
        Fetch,
        connection=st.integers(0, 1),
        named=st.frozensets(st.integers(0, 2)),
        begins=begins,
        passed_on=st.booleans(),
        registers=st.sampled_from((False, False, True)),
    )
    return st.lists(one, max_size=12)


def played(history: list[Fetch]) -> tuple[dict[tuple[int, int], int], pa.Table]:
    """When each (partition, epoch) was first fetched, slowly; and the tape."""
    first: dict[tuple[int, int], int] = {}
    rows: list[dict[str, Any]] = []
    told: defaultdict[int, Fetches] = defaultdict(Fetches)
    session: frozenset[int] = frozenset()
    epoch = 3
    for time, one in enumerate(history):
        epoch += one.registers
        tells = told[one.connection].tells(epoch, one.named)
        if one.passed_on:  # Else the leader's session is as it was.
            session = one.named if one.begins else session | one.named
            told[one.connection].told(epoch, one.named)
            for partition in session:
                first.setdefault((partition, epoch), time)
        if tells or not one.passed_on:
            rows += [
                _row(time, one, epoch, item) for item in enumerate(sorted(one.named) or [None])
            ]
    return first, pa.Table.from_pylist(rows, schema=WIRE)


def _row(time: int, one: Fetch, epoch: int, item: tuple[int, int | None]) -> dict[str, Any]:
    place, partition = item
    return {
        "frame": time,
        "item": place,
        "connection": one.connection,
        "source": LINK[0],
        "target": LINK[1],
        "direction": "request",
        "time_ns": time,
        "forwarded_ns": time if one.passed_on else None,
        "action": "forwarded" if one.passed_on else "held",
        "api": "Fetch",
        "api_key": 1,
        "api_version": 17,
        "correlation_id": time,
        "size_bytes": 100,
        "topic_id": None if partition is None else "id-t",
        "partition": partition,
        "broker_epoch": epoch,
        "session_epoch": 0 if one.begins else 1,
    }


def known(tape: pa.Table) -> dict[tuple[int, int], int]:
    """The same by the kernel."""
    found: dict[tuple[int, int], int] = {}
    by_tape = follower_fetches(tape)
    for partition in range(3):
        for told in by_tape.told(LINK, ("id-t", partition)):
            assert told.broker_epoch is not None
            found.setdefault((partition, told.broker_epoch), told.reached_ns)
    return found


@given(fetches(begins=st.booleans()))
def test_what_a_follower_has_told_is_never_said_to_be_told_later(history: list[Fetch]) -> None:
    truth, tape = played(history)
    by_tape = known(tape)
    assert all(by_tape[which] <= time for which, time in truth.items())


@given(fetches(begins=st.just(True)))
def test_without_sessions_it_is_known_exactly(history: list[Fetch]) -> None:
    truth, tape = played(history)
    assert known(tape) == truth


@given(fetches(begins=st.just(True)))
def test_whose_fetches_were_heard_is_known_by_what_their_connections_began_with(
    history: list[Fetch],
) -> None:
    incarnations = list(accumulate(one.registers for one in history))
    ended = [
        replace(one, connection=10 * number + one.connection)
        for one, number in zip(history, incarnations, strict=True)
    ]
    _, tape = played(ended)
    for number in range(3):
        heard = [
            time for time, one in enumerate(ended) if one.passed_on and incarnations[time] >= number
        ]
        since = next((t for t, one in enumerate(incarnations) if one >= number), len(ended))
        by_tape = follower_fetches(tape).heard_ns(LINK, since_ns=since)
        assert by_tape == min(heard, default=None)


def test_a_fetch_of_the_metadata_log_tells_a_broker_nothing_as_a_leader() -> None:
    """A combined node is asked for it by brokers, as a controller."""
    one = Fetch(connection=1, named=frozenset({0}), begins=True, passed_on=True, registers=False)
    row = _row(3, one, 7, (0, 0))
    for topic, told in (("t", {(0, 7): 3}), ("__cluster_metadata", {})):
        tape = pa.Table.from_pylist([row | {"topic": topic}], schema=WIRE)
        assert known(tape) == told


@given(
    fetches(begins=st.booleans()),
    st.lists(st.integers(0, 9), min_size=12, max_size=12),
    st.sampled_from((14, 17)),
    st.integers(1, 5),
)
def test_the_first_rows_of_sessions_tell_of_a_partition_what_all_rows_do(
    history: list[Fetch], delays: list[int], version: int, size: int
) -> None:
    rows = played(history)[1].to_pylist()
    for row in rows:
        row["api_version"] = version
        if version < 15:
            row["broker_epoch"] = None
        if row["forwarded_ns"] is not None:
            row["forwarded_ns"] += delays[row["frame"]]
    tape = pa.Table.from_pylist(rows, schema=WIRE)
    whole = follower_fetches(tape)
    for partition in range(3):
        kept = []
        for batch in tape.to_batches(max_chunksize=size):
            mine = [one == partition for one in batch.column("partition").to_pylist()]
            of_none = [one is None for one in batch.column("partition").to_pylist()]
            kept.append(batch.filter(pa.array(begun_first(batch) | mine | of_none)))
        part = follower_fetches(pa.Table.from_batches(kept, WIRE))
        place = ("id-t", partition)
        assert set(part.told(LINK, place)) == set(whole.told(LINK, place))
        for since_ns in range(len(history) + 1):
            heard_ns = whole.heard_ns(LINK, since_ns=since_ns)
            assert part.heard_ns(LINK, since_ns=since_ns) == heard_ns


def test_of_sessions_that_begin_alike_few_rows_are_left() -> None:
    one = Fetch(connection=1, named=frozenset({0, 1}), begins=True, passed_on=True, registers=False)
    rows = [_row(time, one, 7, item) for time in range(50) for item in enumerate((0, 1))]
    assert begun_first(pa.RecordBatch.from_pylist(rows, WIRE)).sum() == 1
