"""Requests and their answers, against a slow obvious way to pair them; many are as few are."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencepost.checkers.metadata import rpcs as taped
from fencepost.checkers.metadata.rpcs import Rpc, Rpcs, in_turn, rpcs, taken
from fencepost.history.cluster_schema import WIRE

APIS = ("AlterPartition", "IsrChange")
ITEMS = st.lists(
    st.fixed_dictionaries(
        {
            "topic": st.sampled_from(["t", "u", None]),
            "topic_id": st.sampled_from([None, "id-t"]),
            "partition": st.sampled_from([0, 1, None]),
            "broker_epoch": st.none() | st.integers(0, 1),
            "isr": st.sampled_from([None, [1], [1, 2]]),
            "error": st.sampled_from([None, "NONE", "FENCED_LEADER_EPOCH"]),
        }
    ),
    min_size=1,
    max_size=3,
)
CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "api": st.sampled_from([*APIS, "Fetch"]),
            "source": st.sampled_from(["broker-1", "broker-2"]),
            "correlation_id": st.integers(0, 2),
            "time_ns": st.integers(0, 9),
            "action": st.sampled_from(["passed", "passed", "dropped", "answered"]),
            "forwarded_ns": st.none() | st.integers(9, 12),
            "asked": ITEMS,
            "answered": st.none() | ITEMS,
            "later_ns": st.integers(-2, 4),
            "by": st.sampled_from(["passed", "passed", "passed", "answered"]),
        }
    ),
    min_size=1,
    max_size=6,
)


def tape(calls: list[dict[str, Any]]) -> pa.Table:
    absent = {field.name: None for field in WIRE}
    frames = []
    for call in calls:
        asked, answered = call["asked"], call["answered"] or ()
        said = {name: call[name] for name in ("api", "source", "correlation_id", "time_ns")}
        said |= {"target": "controller-1", "connection": 0, "api_version": 1}
        said |= {name: call[name] for name in ("action", "forwarded_ns")}
        frames.append([absent | said | one | {"direction": "request"} for one in asked])
        told = said | {"time_ns": call["time_ns"] + call["later_ns"], "action": call["by"]}
        frames.append([absent | told | one | {"direction": "response"} for one in answered])
    rows = [
        row | {"frame": number, "item": item}
        for number, items in enumerate(frames)
        for item, row in enumerate(items)
    ]
    rows.sort(key=lambda row: (row["time_ns"], row["frame"], row["item"]))
    return pa.Table.from_pylist(rows, schema=WIRE)


Place = tuple[int, int]


def slowly_paired(rows: list[dict[str, Any]]) -> list[tuple[Place, Place | None]]:
    """Each request and the row that answers it, by the rules as they are told."""

    def is_asked(row: dict[str, Any]) -> bool:
        return bool(row["direction"] == "request")

    def place(row: dict[str, Any]) -> Place:
        return row["frame"], row["item"]

    def answer(request: dict[str, Any]) -> Place | None:
        same = [r for r in rows if all(r[n] == request[n] for n in taped_ids)]
        again = [r["time_ns"] for r in same if is_asked(r) and r["time_ns"] > request["time_ns"]]
        until_ns = min(again, default=1000)
        answers = [
            row
            for row in same
            if not is_asked(row)
            and row["action"] != "answered"
            and request["time_ns"] <= row["time_ns"] < until_ns
        ]
        if request["partition"] is not None:
            for row in answers:
                by = "topic_id" if row["topic_id"] and request["topic_id"] else "topic"
                if row["partition"] == request["partition"] and row[by] == request[by]:
                    return place(row)
        whole = [row for row in answers if row["partition"] is None]
        placed = [row for row in whole if row["item"] == request["item"]]
        told = (placed[-1:] or whole[:1])[:1]
        return place(told[0]) if told else None

    taped_ids = ("api", "connection", "correlation_id")
    return [(place(row), answer(row)) for row in rows if is_asked(row) and row["api"] in APIS]


@pytest.fixture(params=["at hand", "made when asked for"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "made when asked for":
        monkeypatch.setattr(taped, "_AT_HAND", -1)
        monkeypatch.setattr(taped, "_AT_ONCE", 3)


fuzzed: Callable[[Callable[..., None]], Callable[..., None]] = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200
)


@pytest.mark.usefixtures("kept")
@fuzzed
@given(calls=CALLS)
def test_each_request_has_its_answer(calls: list[dict[str, Any]]) -> None:
    wire = tape(calls)
    found = [
        (
            (rpc.frame, rpc.request.item),
            rpc.response and (rpc.response.frame, rpc.response.item),
        )
        for rpc in rpcs(wire, *APIS)
    ]
    assert found == slowly_paired(wire.to_pylist())


@pytest.mark.usefixtures("kept")
@fuzzed
@given(calls=CALLS)
def test_what_several_are_told_is_what_each_is(calls: list[dict[str, Any]]) -> None:
    several = rpcs(tape(calls), *APIS)
    each = list(several)
    assert several.ok.tolist() == [rpc.ok for rpc in each]
    assert several.asked_ns.tolist() == [rpc.asked_ns for rpc in each]
    for name in ("broker_epoch", "isr", "error"):
        assert several.of(name).to_pylist() == [rpc.of(name) for rpc in each]
        assert several.answered(name).to_pylist() == [rpc.answered(name) for rpc in each]
    assert list(several.taken()) == taken(each)
    assert list(several.asked_between(3, 7)) == [rpc for rpc in each if 3 < rpc.asked_ns < 7]
    assert [several[place] for place in range(len(several))] == each
    assert list(several[1:3]) == each[1:3]
    assert list(in_turn(several)) == list(in_turn(each))


@pytest.mark.usefixtures("kept")
@fuzzed
@given(calls=CALLS)
def test_groups_are_those_of_a_loop(calls: list[dict[str, Any]]) -> None:
    several = rpcs(tape(calls), *APIS)
    expected: dict[tuple[Any, ...], list[Rpc]] = {}
    for rpc in several:
        if rpc.of("broker_epoch") is not None:
            expected.setdefault((rpc.source, rpc.of("broker_epoch")), []).append(rpc)
    grouped = several.by("source", "broker_epoch")
    assert all(isinstance(mine, Rpcs) for mine in grouped.values())
    assert {key: list(mine) for key, mine in grouped.items()} == expected
