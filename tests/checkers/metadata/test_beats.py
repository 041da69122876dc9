"""Heartbeats as arrays, and the first of each incarnation, tell what requests and answers tell."""

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fencepost.checkers.metadata.beats import ABSENT, TapedHeartbeats, beats_of, in_turn
from fencepost.checkers.metadata.metadata_heartbeats import (
    METADATA_HEARTBEAT,
    heard_first,
    heartbeats_of,
)
from fencepost.checkers.metadata.rpcs import Rpc, rpcs, taken
from fencepost.checkers.metadata.rpcs import in_turn as rpcs_in_turn
from fencepost.checkers.sources import source_of
from fencepost.history.cluster_schema import WIRE

NODES = ("broker-1", "broker-2", "controller-1")
FRAMES = st.lists(
    st.fixed_dictionaries(
        {
            "direction": st.sampled_from(["request", "response"]),
            "api": st.sampled_from(["BrokerHeartbeat", "BrokerHeartbeat", "Fetch"]),
            "action": st.sampled_from(["passed", "passed", "held", "dropped", "answered"]),
            "source": st.sampled_from(NODES),
            "target": st.sampled_from(NODES),
            "connection": st.integers(0, 1),
            "correlation_id": st.integers(0, 2),
            "time_ns": st.integers(0, 9),
            "late_ns": st.none() | st.integers(0, 5),
            "error": st.sampled_from([None, "NONE", "STALE_BROKER_EPOCH"]),
            "broker_id": st.none() | st.integers(1, 2),
            "broker_epoch": st.none() | st.integers(-1, 3),
            "fetch_offset": st.none() | st.integers(0, 9),
            "lowest_acknowledged_offset": st.none() | st.integers(0, 9),
            "fenced": st.none() | st.booleans(),
            "shutting_down": st.none() | st.booleans(),
        }
    ),
    max_size=14,
)


def tape(frames: list[dict[str, Any]]) -> pa.Table:
    absent = {field.name: None for field in WIRE}
    rows = []
    for number, frame in enumerate(sorted(frames, key=lambda one: one["time_ns"])):
        late_ns = frame.pop("late_ns", None)
        forwarded_ns = None if late_ns is None else frame["time_ns"] + late_ns
        stated = {"frame": number, "item": 0, "api_version": 1, "forwarded_ns": forwarded_ns}
        rows.append({**absent, **frame, **stated})
    return pa.Table.from_pylist(rows, schema=WIRE)


def by_rpc(rpc: Rpc) -> tuple[Any, ...]:
    lowest = rpc.answered("lowest_acknowledged_offset") if rpc.ok else None
    numbers = (
        *(rpc.frame, rpc.reached_ns, rpc.of("broker_id"), rpc.of("broker_epoch")),
        *(rpc.of("fetch_offset"), rpc.answer_frame, rpc.answered_ns, lowest),
    )
    told = (rpc.answered("fenced") is False, bool(rpc.answered("shutting_down")))
    return (
        rpc.source,
        rpc.target,
        *(ABSENT if one is None else one for one in numbers),
        *(rpc.ok and one for one in (True, *told)),
    )


def by_beats(beats: TapedHeartbeats) -> list[tuple[Any, ...]]:
    columns = (
        *(beats.frame, beats.reached_ns, beats.broker_id, beats.broker_epoch, beats.applied),
        *(beats.answer_frame, beats.answered_ns, beats.lowest),
        *(beats.ok, beats.told_unfenced, beats.told_to_go),
    )
    words = ([beats.nodes[one] for one in codes] for codes in (beats.source, beats.target))
    return list(zip(*words, *(column.tolist() for column in columns), strict=True))


@given(FRAMES)
def test_arrays_and_requests_tell_the_same(frames: list[dict[str, Any]]) -> None:
    wire = tape(frames)
    beats = beats_of(source_of(wire))
    assert by_beats(beats) == [by_rpc(rpc) for rpc in rpcs(wire, "BrokerHeartbeat")]


@given(FRAMES)
def test_arrays_and_requests_have_one_order(frames: list[dict[str, Any]]) -> None:
    wire = tape(frames)
    beats = beats_of(source_of(wire))
    telling = [
        rpc
        for rpc in rpcs(wire, "BrokerHeartbeat")
        if rpc.ok
        and rpc.reached_ns is not None
        and rpc.answered("lowest_acknowledged_offset") is not None
    ]
    found = [
        (beats.frame[place], [beats.frame[one] for one in before])
        for place, before in in_turn(beats, beats.telling)
    ]
    expected = [(rpc.frame, [one.frame for one in before]) for rpc, before in rpcs_in_turn(telling)]
    assert found == expected


def first_heard_ns(wire: pa.Table) -> dict[tuple[str, int | None, int | None], int | None]:
    found: dict[tuple[str, int | None, int | None], int | None] = {}
    for beats in heartbeats_of(wire).values():
        for beat in taken(beats):
            place = (beat.target, beat.of("broker_id"), beat.of("broker_epoch"))
            found.setdefault(place, beat.reached_ns)
    return found


@given(FRAMES, st.integers(1, 5))
def test_the_first_of_each_batch_tell_when_an_incarnation_was_heard_of(
    frames: list[dict[str, Any]], size: int
) -> None:
    of_zookeeper = [one | {"api": METADATA_HEARTBEAT} for one in frames]
    wire = tape(of_zookeeper)
    first = [heard_first(batch) for batch in wire.to_batches(max_chunksize=size)]
    assert first_heard_ns(pa.Table.from_batches(first, WIRE)) == first_heard_ns(wire)
