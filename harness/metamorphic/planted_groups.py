"""Violations planted into what groups and transactions tell: positions, intakes, outcomes."""

from collections import defaultdict
from collections.abc import Iterator
from random import Random
from typing import Any, Final

from fencepost.harness.metamorphic.copied_run import CopiedRun
from fencepost.harness.metamorphic.planted_rows import (
    FAR,
    SOME,
    Row,
    change_one,
    count_anew,
    drawn_row,
    edited,
    is_same,
    without,
)
from fencepost.history.manifest import Readers
from fencepost.history.operation import FETCH_OFFSETS, SEND_OFFSETS

_INTAKE: Final = ("index",)


def group_ahead(run: CopiedRun, draw: Random) -> bool:
    """The next session of a group began too far, and nobody of it ever read what lies before."""
    readers = [one for one in run.manifest.promises.readers if one.processes]
    if not readers or not run.has("records"):
        return False
    mine = draw.choice(readers)
    polled = _polled(run, mine)
    stretches = [
        (key, offsets[place : place + SOME], offsets[place + SOME])
        for key, offsets in sorted(polled.items())
        for place in range(1, len(offsets) - SOME)
    ]
    if not stretches:
        return False
    key, skipped, next_offset = draw.choice(stretches)

    def is_theirs(row: Row) -> bool:
        theirs = row["process"] % mine.stride in mine.processes
        return bool(row["f"] == "poll" and row["key"] == key and theirs)

    def begun_anew(row: Row) -> Row:
        later = is_theirs(row) and row["offset"] >= next_offset
        return {"session": row["session"] + FAR} if later else {}

    named = ("f", "key", "process", "offset")
    without(run, "records", named, lambda row: is_theirs(row) and row["offset"] in skipped)
    edited(run, "records", (*named, "session"), begun_anew)
    count_anew(run)
    return True


def _polled(run: CopiedRun, readers: Readers) -> dict[str, list[int]]:
    """Return the offsets that some readers read, by key, until one of their polls crashed."""
    theirs = [
        row
        for row in run.table("operations").to_pylist()
        if row["f"] == "poll" and row["process"] % readers.stride in readers.processes
    ]
    crash = min(
        (row["index"] for row in theirs if row["outcome"] != "ok"), default=len(theirs) + FAR
    )
    before = {row["index"] for row in theirs if row["index"] < crash}
    found: dict[str, set[int]] = defaultdict(set)
    for row in run.table("records").to_pylist():
        if row["f"] == "poll" and row["operation"] in before and row["offset"] is not None:
            found[row["key"]].add(row["offset"])
    return {key: sorted(offsets) for key, offsets in found.items()}


def _intakes(run: CopiedRun) -> Iterator[tuple[Row, Row, int]]:
    """Yield each answer to a group, the first sending from it that is ok, and its place there."""
    told: dict[int, Row] = {}
    for row in run.table("group_offsets").to_pylist() if run.has("group_offsets") else ():
        if row["f"] == FETCH_OFFSETS and row["outcome"] == "ok":
            told[row["process"]] = row
        elif row["f"] == SEND_OFFSETS and (answer := told.pop(row["process"], None)) is not None:
            for place, key in enumerate(row["keys"]) if row["outcome"] == "ok" else ():
                stood = answer["offsets"][answer["keys"].index(key)]
                if stood == row["offsets_before"][place] > 0:
                    yield answer, row, place


def _shift(run: CopiedRun, draw: Random, by: int) -> bool:
    """Let a group be told another offset, and the transaction that follows take from there on."""
    fit = [
        (answer, sent, place)
        for answer, sent, place in _intakes(run)
        if sent["offsets_before"][place] + by < sent["offsets"][place]
    ]
    if not fit:
        return False
    answer, sent, place = draw.choice(fit)
    where = answer["keys"].index(sent["keys"][place])

    def shifted(row: Row) -> Row:
        if is_same(row, answer, *_INTAKE):
            return {"offsets": _added(row["offsets"], where, by)}
        if is_same(row, sent, *_INTAKE):
            return {"offsets_before": _added(row["offsets_before"], place, by)}
        return {}

    return edited(run, "group_offsets", (*_INTAKE, "offsets", "offsets_before"), shifted)


def _added(numbers: list[int], place: int, by: int) -> list[int]:
    return [one + by * (at == place) for at, one in enumerate(numbers)]


def input_twice(run: CopiedRun, draw: Random) -> bool:
    """A group was told an offset that is too low, and two transactions took the same input."""
    return _shift(run, draw, -1)


def input_skipped(run: CopiedRun, draw: Random) -> bool:
    """A group was told an offset that is too high, and no transaction took what lies before."""
    return _shift(run, draw, 1)


def group_told_ahead(run: CopiedRun, draw: Random) -> bool:
    """A group was told an offset that no transaction committed, and took nothing from there."""
    rows = run.table("group_offsets").to_pylist() if run.has("group_offsets") else []
    last: dict[int, Row] = {row["process"]: row for row in rows}
    return change_one(
        run,
        draw,
        "group_offsets",
        _INTAKE,
        is_fit=lambda row: (
            row == last.get(row["process"])
            and (row["f"], row["outcome"]) == (FETCH_OFFSETS, "ok")
            and bool(row["offsets"])
        ),
        news=lambda row: {"offsets": _added(row["offsets"], 0, FAR)},
    )


def outcome_contradicted(run: CopiedRun, draw: Random) -> bool:
    """A transaction was committed by its sends, and failed by its own table."""
    return change_one(
        run,
        draw,
        "transactions",
        _INTAKE,
        is_fit=lambda row: _is_committed(row) and bool(row["values"]),
        news=lambda _: {"outcome": "fail"},
    )


def _is_committed(row: Row) -> bool:
    return (row["intent"], row["outcome"]) == ("commit", "ok")


def torn(run: CopiedRun, draw: Random) -> bool:
    """Of a committed transaction nobody ever read the last record."""
    found = drawn_row(
        draw, run, "transactions", lambda row: _is_committed(row) and len(row["values"]) > 1
    )
    if found is None:
        return False
    lost = (found["keys"][-1], found["values"][-1])
    named = ("f", "key", "value")
    without(
        run,
        "records",
        named,
        lambda row: row["f"] != "send" and (row["key"], row["value"]) == lost,
    )
    count_anew(run)
    return True


def aborted_shown(run: CopiedRun, draw: Random) -> bool:
    """A transaction that was read had been aborted."""
    found = drawn_row(draw, run, "transactions", lambda row: _is_committed(row) and row["values"])
    if found is None:
        return False
    sent = set(zip(found["keys"], found["values"], strict=True))
    begin_ns, return_ns = found["begin_ns"], found["return_ns"]

    def failed(row: Row) -> dict[str, Any]:
        is_sent = row["f"] == "send" and (row["key"], row["value"]) in sent
        return {"outcome": "fail", "offset": None} if is_sent else {}

    def unsent(row: Row) -> dict[str, Any]:
        mine = row["process"] == found["process"] and begin_ns <= row["call_ns"] <= return_ns
        return {"outcome": "fail"} if mine and row["f"] == SEND_OFFSETS else {}

    operations = {
        row["operation"]
        for row in run.table("records").to_pylist()
        if row["f"] == "send" and (row["key"], row["value"]) in sent
    }
    edited(
        run,
        "transactions",
        _INTAKE,
        lambda row: {"intent": "abort"} if is_same(row, found, *_INTAKE) else {},
    )
    edited(run, "records", ("f", "key", "value"), failed)
    edited(
        run,
        "operations",
        _INTAKE,
        lambda row: {"outcome": "fail", "error": "ABORTED"} if row["index"] in operations else {},
    )
    if run.has("group_offsets"):
        edited(run, "group_offsets", ("f", "process", "call_ns"), unsent)
    return True
