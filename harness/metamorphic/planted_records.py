"""Violations planted into what clients and replicas tell of records."""

from collections.abc import Mapping
from itertools import pairwise
from random import Random
from typing import Any, Final

import pyarrow.compute as pc

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


def _acknowledged(row: Row) -> bool:
    return row["f"] == "send" and row["outcome"] == "ok" and row["offset"] is not None


_PLACE: Final = ("operation", "position")


def lost(run: CopiedRun, draw: Random) -> bool:
    """An acknowledged record is nowhere: what is there has another value."""
    return change_one(
        run,
        draw,
        "records",
        _PLACE,
        is_fit=_acknowledged,
        news=lambda row: {"value": row["value"] + FAR},
    )


def twice(run: CopiedRun, draw: Random) -> bool:
    """All replicas have a record twice, under one producer epoch, and clients read it twice."""
    sent = drawn_row(draw, run, "records", _acknowledged)
    if sent is None or not run.has("replica_records"):
        return False
    key, at, names = (
        sent["key"],
        sent["offset"],
        ("value", "producer_id", "producer_epoch", "digest"),
    )
    logs = {
        (row["node"], row["offset"]): row
        for row in run.table("replica_records")
        .filter(pc.equal(run.table("replica_records")["key"], key))
        .to_pylist()
    }

    def again(row: Row) -> Mapping[str, Any]:
        first = logs.get((row["node"], at))
        is_next = row["key"] == key and row["offset"] == at + 1 and first is not None
        return {name: first[name] for name in names} if is_next and first is not None else {}

    def read(row: Row) -> Mapping[str, Any]:
        is_read = row["f"] != "send" and row["key"] == key and row["offset"] == at + 1
        return {"value": sent["value"]} if is_read else {}

    edited(run, "records", ("f", "key", "offset"), read)
    return edited(run, "replica_records", ("key", "node", "offset"), again)


def key_unrecorded(run: CopiedRun, draw: Random) -> bool:
    """No client has told anything of a key, whose replicas are full."""
    sent = drawn_row(draw, run, "records", _acknowledged)
    if sent is None:
        return False
    without(run, "records", ("key",), lambda row: row["key"] == sent["key"])
    count_anew(run)
    return True


def sends_without_record(run: CopiedRun, draw: Random) -> bool:
    """Half of a producer's acknowledged sends have no record."""
    sent = drawn_row(draw, run, "records", _acknowledged)
    if sent is None:
        return False
    named = ("f", "process", "operation")
    without(
        run,
        "records",
        named,
        lambda row: is_same(row, sent, "f", "process") and row["operation"] % 2 == 0,
    )
    count_anew(run)
    return True


def offset_elsewhere(run: CopiedRun, draw: Random) -> bool:
    """A send was acknowledged at an offset at which another record lies."""
    rows = run.table("records").to_pylist() if run.has("records") else []
    # Before the first record of a transaction lies, perhaps, what ended the one before it.
    taken = {(row["key"], row["offset"]) for row in rows}
    return change_one(
        run,
        draw,
        "records",
        _PLACE,
        is_fit=lambda row: _acknowledged(row) and (row["key"], row["offset"] - 1) in taken,
        news=lambda row: {"offset": row["offset"] - 1},
    )


def read_unsent(run: CopiedRun, draw: Random) -> bool:
    """A consumer read a value that was never sent."""
    return change_one(
        run,
        draw,
        "records",
        _PLACE,
        is_fit=lambda row: row["f"] == "poll",
        news=lambda row: {"value": row["value"] + FAR},
    )


def polled_back(run: CopiedRun, draw: Random) -> bool:
    """A poll returned two records of a key in the wrong order."""
    rows = run.table("records").to_pylist()
    polls = sorted(
        (row for row in rows if row["f"] == "poll"),
        key=lambda row: (row["operation"], row["key"], row["position"]),
    )
    pairs = [
        (one, two)
        for one, two in pairwise(polls)
        if is_same(one, two, "operation", "key") and two["offset"] > one["offset"]
    ]
    if not pairs:
        return False
    one, two = draw.choice(pairs)
    swapped = {
        (row["operation"], row["position"]): {"offset": other["offset"], "value": other["value"]}
        for row, other in ((one, two), (two, one))
    }
    return edited(
        run, "records", _PLACE, lambda row: swapped.get((row["operation"], row["position"]), {})
    )


def poll_skipped(run: CopiedRun, draw: Random) -> bool:
    """A consumer never got the records of one poll, and went on behind them."""
    polled = drawn_row(draw, run, "records", lambda row: row["f"] == "poll" and row["offset"] > 0)
    if polled is None:
        return False
    named = ("f", "process", "key", "offset")
    without(
        run,
        "records",
        named,
        lambda row: (
            is_same(row, polled, "f", "process", "key")
            and 0 <= row["offset"] - polled["offset"] < SOME
        ),
    )
    count_anew(run)
    return True


def _replica_record(run: CopiedRun, draw: Random) -> Row | None:
    """Draw a record that another replica has as well."""
    rows = run.table("replica_records").to_pylist() if run.has("replica_records") else []
    ends: dict[tuple[str, str], int] = {}
    for row in rows:
        place = (row["key"], row["node"])
        ends[place] = max(ends.get(place, -1), row["offset"])
    inner = [
        row
        for row in rows
        if not row["control"]
        and 0 < row["offset"] < min(end for (key, _), end in ends.items() if key == row["key"])
    ]
    return draw.choice(inner) if inner else None


def replica_diverges(run: CopiedRun, draw: Random) -> bool:
    """One replica has another record at an offset than the others."""
    found = _replica_record(run, draw)
    if found is None:
        return False
    other = {"value": (found["value"] or 0) + FAR, "digest": found["digest"] ^ 1}
    named = ("key", "node", "offset")
    return edited(
        run, "replica_records", named, lambda row: other if is_same(row, found, *named) else {}
    )


def replica_hole(run: CopiedRun, draw: Random) -> bool:
    """One replica lacks a record in the middle of its log."""
    found = _replica_record(run, draw)
    if found is None:
        return False
    named = ("key", "node", "offset")
    without(run, "replica_records", named, lambda row: is_same(row, found, *named))
    return edited(
        run,
        "replicas",
        ("key", "node", "record_count"),
        lambda row: (
            {"record_count": row["record_count"] - 1} if is_same(row, found, "key", "node") else {}
        ),
    )


def all_replicas_short(run: CopiedRun, draw: Random) -> bool:
    """Every replica of a key ends before its last twenty records."""
    found = _replica_record(run, draw)
    if found is None:
        return False
    rows = [row for row in run.table("replicas").to_pylist() if row["key"] == found["key"]]
    end = max(row["log_end_offset"] for row in rows) - SOME
    if end <= 0:
        return False
    lost: dict[str, int] = {}

    def is_lost(row: Row) -> bool:
        gone = bool(row["key"] == found["key"] and row["offset"] >= end)
        lost[row["node"]] = lost.get(row["node"], 0) + gone
        return gone

    without(run, "replica_records", ("key", "node", "offset"), is_lost)

    def shorter(row: Row) -> Mapping[str, Any]:
        if row["key"] != found["key"]:
            return {}
        return {
            "log_end_offset": min(row["log_end_offset"], end),
            "high_watermark": None
            if row["high_watermark"] is None
            else min(row["high_watermark"], end),
            "record_count": row["record_count"] - lost.get(row["node"], 0),
        }

    return edited(
        run,
        "replicas",
        ("key", "node", "log_end_offset", "high_watermark", "record_count"),
        shorter,
    )


def old_leader_wrote(run: CopiedRun, draw: Random) -> bool:
    """A record lies on all replicas in a leader epoch that had ended long before it was sent."""
    rows = run.table("replica_records").to_pylist() if run.has("replica_records") else []
    epochs: dict[str, set[int]] = {}
    for row in rows:
        epochs.setdefault(row["key"], set()).add(row["leader_epoch"])
    newest = {
        (row["key"], row["offset"])
        for row in rows
        if row["leader_epoch"] == max(epochs[row["key"]])
    }
    sent = drawn_row(
        draw,
        run,
        "records",
        lambda row: (
            _acknowledged(row)
            and len(epochs.get(row["key"], ())) > 1
            and (row["key"], row["offset"]) in newest
            and (row["key"], row["offset"] - 1) in newest
        ),
    )
    if sent is None:
        return False
    old = {"leader_epoch": min(epochs[sent["key"]])}
    return edited(
        run,
        "replica_records",
        ("key", "offset"),
        lambda row: old if is_same(row, sent, "key", "offset") else {},
    )
