"""Violations planted into what lies on the disks of replicas, and into the order of records."""

from collections import defaultdict
from collections.abc import Callable
from itertools import combinations, pairwise
from random import Random
from typing import Any, Final

from fencepost.harness.metamorphic.copied_run import CopiedRun
from fencepost.harness.metamorphic.planted_rows import (
    FAR,
    Row,
    change_one,
    drawn_row,
    edited,
    is_same,
    rows_of,
)

_PLACE: Final = ("operation", "position")
_LOGGED: Final = ("key", "node", "offset")


def _committed(run: CopiedRun) -> list[Row]:
    """Return the records of replicas that lie below the end of every replica of their key."""
    rows = rows_of(run, "replica_records")
    ends: dict[tuple[str, str], int] = {}
    for row in rows:
        place = (row["key"], row["node"])
        ends[place] = max(ends.get(place, -1), row["offset"])
    end: dict[str, int] = {}
    for (key, _), last in ends.items():
        end[key] = min(end.get(key, last), last)
    several = {key for key, _ in ends if sum(one == key for one, _ in ends) > 1}
    return [row for row in rows if row["key"] in several and 0 < row["offset"] < end[row["key"]]]


def _on_one(
    run: CopiedRun, draw: Random, is_fit: Callable[[Row], bool], news: Callable[[Row], Row]
) -> bool:
    """Change a committed record on one replica."""
    fit = [row for row in _committed(run) if is_fit(row)]
    if not fit:
        return False
    found = draw.choice(fit)
    changed = news(found)
    return edited(
        run,
        "replica_records",
        _LOGGED,
        lambda row: changed if is_same(row, found, *_LOGGED) else {},
    )


def content_differs(run: CopiedRun, draw: Random) -> bool:
    """One replica has a record with the value of the others, and another content."""
    return _on_one(
        run, draw, lambda row: not row["control"], lambda row: {"digest": row["digest"] ^ 1}
    )


def epoch_differs(run: CopiedRun, draw: Random) -> bool:
    """One replica has a record under another leader epoch than the others."""
    return _on_one(
        run,
        draw,
        lambda row: not row["control"],
        lambda row: {"leader_epoch": row["leader_epoch"] + 1},
    )


def time_differs(run: CopiedRun, draw: Random) -> bool:
    """One replica has a record with another timestamp than the others."""
    return _on_one(
        run,
        draw,
        lambda row: not row["control"],
        lambda row: {"timestamp_ms": row["timestamp_ms"] + 1000},
    )


def committed_turned(run: CopiedRun, draw: Random) -> bool:
    """A transaction's marker says on every replica that it was aborted, and it was committed."""
    return _on_marker(run, draw, lambda row: bool(row["committed"]), {"committed": False})


def marker_of_nobody(run: CopiedRun, draw: Random) -> bool:
    """A transaction's marker is of a producer that had no transaction."""
    return _on_marker(run, draw, lambda _row: True, {"producer_id": FAR})


def _on_marker(run: CopiedRun, draw: Random, is_fit: Callable[[Row], bool], news: Row) -> bool:
    """Change a transaction's marker on every replica."""
    return change_one(
        run,
        draw,
        "replica_records",
        ("key", "offset"),
        is_fit=lambda row: row["control"] and is_fit(row),
        news=lambda _row: news,
    )


def producer_id_of_two(run: CopiedRun, draw: Random) -> bool:
    """Two producers were given one producer id."""
    sent = {
        (row["key"], row["value"]): row["process"]
        for row in rows_of(run, "records")
        if row["f"] == "send"
    }
    ids: dict[tuple[str, int], set[int]] = defaultdict(set)
    for row in rows_of(run, "replica_records"):
        process = sent.get((row["key"], row["value"]))
        if process is not None and row["producer_id"] >= 0 and not row["transactional"]:
            ids[row["key"], row["producer_id"]].add(process)
    pairs = [
        (one, other)
        for (key, one), (of_key, other) in combinations(sorted(ids), 2)
        if key == of_key and not ids[key, one] & ids[key, other]
    ]
    if not pairs:
        return False
    one, other = draw.choice(pairs)
    return edited(
        run,
        "replica_records",
        ("producer_id",),
        lambda row: {"producer_id": other} if row["producer_id"] == one else {},
    )


def value_exchanged(run: CopiedRun, draw: Random) -> bool:
    """Every replica has another value at an offset than the one that was acknowledged there."""
    rows = rows_of(run, "records")
    acknowledged = {
        (row["key"], row["offset"])
        for row in rows
        if (row["f"], row["outcome"]) == ("send", "ok") and row["offset"] is not None
    }
    fit = [row for row in _committed(run) if (row["key"], row["offset"]) in acknowledged]
    if not fit:
        return False
    found = draw.choice(fit)
    other = {"value": (found["value"] or 0) + FAR, "digest": found["digest"] ^ 1}
    return edited(
        run,
        "replica_records",
        ("key", "offset"),
        lambda row: other if is_same(row, found, "key", "offset") else {},
    )


def watermark_beyond_end(run: CopiedRun, draw: Random) -> bool:
    """A replica's high watermark lies beyond the end of its log."""
    found = drawn_row(draw, run, "replicas", lambda row: row["high_watermark"] is not None)
    if found is None:
        return False
    return edited(
        run,
        "replicas",
        ("key", "node", "log_end_offset", "high_watermark"),
        lambda row: (
            {"high_watermark": row["log_end_offset"] + 10}
            if is_same(row, found, "key", "node")
            else {}
        ),
    )


def polled_again(run: CopiedRun, draw: Random) -> bool:
    """A consumer went back though it had kept a key: a poll returned what an earlier one had."""
    last: dict[tuple[Any, ...], Row] = {}
    fit: list[tuple[Row, Row]] = []
    polls = (row for row in rows_of(run, "records") if row["f"] == "poll")
    for row in sorted(polls, key=lambda one: (one["operation"], one["position"])):
        of = (row["process"], row["key"], row["session"])
        before = last.get(of)
        if before is not None and before["operation"] < row["operation"]:
            fit.append((before, row))
        last[of] = row
    if not fit:
        return False
    before, found = draw.choice(fit)
    news = {"offset": before["offset"], "value": before["value"]}
    return edited(
        run, "records", ("f", *_PLACE), lambda row: news if is_same(row, found, *_PLACE) else {}
    )


def read_before_sent(run: CopiedRun, draw: Random) -> bool:
    """A record was read a while before it was sent."""
    sent = {
        (row["key"], row["value"]): row["call_ns"]
        for row in rows_of(run, "records")
        if row["f"] == "send"
    }
    found = drawn_row(
        draw,
        run,
        "records",
        lambda row: row["f"] == "poll" and (row["key"], row["value"]) in sent,
    )
    if found is None:
        return False
    later_ns = found["return_ns"] + 1_000_000_000
    operation = next(
        row["operation"]
        for row in rows_of(run, "records")
        if row["f"] == "send" and is_same(row, found, "key", "value")
    )
    times = {"call_ns": later_ns, "return_ns": later_ns + 1_000_000}
    edited(
        run,
        "records",
        ("operation",),
        lambda row: times if row["operation"] == operation else {},
    )
    return edited(
        run, "operations", ("index",), lambda row: times if row["index"] == operation else {}
    )


def failed_read(run: CopiedRun, draw: Random) -> bool:
    """A record was read whose send surely failed."""
    read = {(row["key"], row["value"]) for row in rows_of(run, "records") if row["f"] == "poll"}
    found = drawn_row(
        draw,
        run,
        "records",
        lambda row: row["f"] == "send" and (row["key"], row["value"]) in read,
    )
    if found is None:
        return False
    edited(
        run,
        "records",
        ("operation",),
        lambda row: {"outcome": "fail", "offset": None} if is_same(row, found, "operation") else {},
    )
    return edited(
        run,
        "operations",
        ("index",),
        lambda row: (
            {"outcome": "fail", "error": "MSG_SIZE_TOO_LARGE"}
            if row["index"] == found["operation"]
            else {}
        ),
    )


def sends_swapped(run: CopiedRun, draw: Random) -> bool:
    """Two records of one producer lie in the wrong order, for every client and on every replica."""
    sends = [
        row
        for row in rows_of(run, "records")
        if (row["f"], row["outcome"]) == ("send", "ok") and row["offset"] is not None
    ]
    sends.sort(key=lambda row: (row["process"], row["key"], row["operation"]))
    pairs = [
        (one, two)
        for one, two in pairwise(sends)
        if is_same(one, two, "process", "key")
        and one["offset"] < two["offset"]
        and (one["return_ns"] or 0) < two["call_ns"]
    ]
    if not pairs:
        return False
    one, two = draw.choice(pairs)
    swapped = {one["value"]: two, two["value"]: one}

    def clients(row: Row) -> Row:
        if row["key"] != one["key"]:
            return {}
        if row["f"] == "send" and row["value"] in swapped:
            return {"offset": swapped[row["value"]]["offset"]}
        at = {one["offset"]: two["value"], two["offset"]: one["value"]}
        read = row["f"] != "send" and row["offset"] in at
        return {"value": at[row["offset"]]} if read else {}

    edited(run, "records", ("key", "f", "value", "offset"), clients)
    logged = {
        row["offset"]: row
        for row in rows_of(run, "replica_records")
        if row["key"] == one["key"] and row["value"] in swapped
    }
    exchanged = {one["offset"]: two["offset"], two["offset"]: one["offset"]}

    def replicas(row: Row) -> Row:
        other = logged.get(exchanged.get(row["offset"], -1))
        if row["key"] != one["key"] or other is None:
            return {}
        return {name: other[name] for name in ("value", "digest")}

    edited(run, "replica_records", ("key", "offset"), replicas)
    return True
