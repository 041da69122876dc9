"""Contradictions between the tables of a run: what one of them tells is not so in another."""

from collections import Counter
from random import Random
from typing import Final

import pyarrow as pa

from fencepost.harness.metamorphic.copied_run import CopiedRun
from fencepost.harness.metamorphic.planted_rows import (
    FAR,
    SOME,
    Row,
    change_one,
    drawn_row,
    edited,
    is_same,
    on_zookeeper,
    rows_of,
    without,
)

_ASKED: Final = ("BrokerHeartbeat", "MetadataHeartbeat", "AlterPartition", "IsrChange")


def record_retold(run: CopiedRun, draw: Random) -> bool:
    """A record was read by another process than its operation tells."""
    return change_one(
        run,
        draw,
        "records",
        ("operation", "position"),
        is_fit=lambda row: row["f"] == "poll",
        news=lambda row: {"process": row["process"] + FAR},
    )


def copy_retold(run: CopiedRun, draw: Random) -> bool:
    """One node's copy of a record of the metadata log has its digest and another ISR."""
    if on_zookeeper(run):
        return False
    rows = [row for row in rows_of(run, "metadata_log") if row["isr"] and not row["snapshot"]]
    copied = [row for row in rows if any(_is_copy(row, other) for other in rows)]
    if not copied:
        return False
    found = draw.choice(copied)
    named = ("node", "snapshot", "metadata_offset")
    other = {"isr": [*found["isr"], 99]}
    return edited(
        run, "metadata_log", named, lambda row: other if is_same(row, found, *named) else {}
    )


def _is_copy(row: Row, other: Row) -> bool:
    same = is_same(row, other, "metadata_offset", "controller_epoch", "digest")
    return same and row["node"] != other["node"]


def log_begins_later(run: CopiedRun, draw: Random) -> bool:
    """Every replica of a key has lost its first twenty records, and says so."""
    found = drawn_row(draw, run, "replicas", lambda row: row["record_count"] > 2 * SOME)
    if found is None:
        return False
    lost: dict[str, int] = {}

    def is_lost(row: Row) -> bool:
        gone = bool(row["key"] == found["key"] and row["offset"] < SOME)
        lost[row["node"]] = lost.get(row["node"], 0) + gone
        return gone

    def later(row: Row) -> Row:
        count = row["record_count"] - lost.get(row["node"], 0)
        changed = {"log_start_offset": SOME, "record_count": count}
        return changed if row["key"] == found["key"] else {}

    without(run, "replica_records", ("key", "node", "offset"), is_lost)
    return edited(run, "replicas", ("key", "node", "record_count"), later)


def fault_gone(run: CopiedRun, draw: Random) -> bool:
    """A fault that excuses what followed is not told of."""
    count = len(rows_of(run, "faults"))
    place = draw.randrange(count - 1) if count > 1 else None
    return place is not None and run.change(
        "faults", lambda rows: pa.concat_tables([rows.slice(0, place), rows.slice(place + 1)])
    )


def frame_redirected(run: CopiedRun, draw: Random) -> bool:
    """A frame went to another node than the others of its connection."""
    rows = rows_of(run, "wire")
    targets = sorted({row["target"] for row in rows})
    connections = Counter(row["connection"] for row in rows)

    def another(row: Row) -> Row:
        return {"target": draw.choice([one for one in targets if one != row["target"]])}

    return len(targets) > 1 and change_one(
        run,
        draw,
        "wire",
        ("frame",),
        is_fit=lambda row: connections[row["connection"]] > 1,
        news=another,
    )


def answer_unasked(run: CopiedRun, draw: Random) -> bool:
    """An answer to a heartbeat or to an ISR change stands on the tape without its request."""
    return change_one(
        run,
        draw,
        "wire",
        ("frame",),
        is_fit=lambda row: row["direction"] == "response" and row["api"] in _ASKED,
        news=lambda row: {"correlation_id": row["correlation_id"] + FAR},
    )


def value_sent_twice(run: CopiedRun, draw: Random) -> bool:
    """Two sends sent one value, which nothing could tell apart then."""
    sends = [row for row in rows_of(run, "records") if row["f"] == "send"]
    by_key: dict[str, list[Row]] = {}
    for row in sends:
        by_key.setdefault(row["key"], []).append(row)
    several = [rows for _, rows in sorted(by_key.items()) if len(rows) > 1]
    if not several:
        return False
    one, other = draw.sample(draw.choice(several), 2)
    named = ("f", "operation", "position")
    value = {"value": one["value"]}
    return edited(run, "records", named, lambda row: value if is_same(row, other, *named) else {})


def describes_blank(run: CopiedRun, draw: Random) -> bool:
    """No read of metadata tells of any leader or ISR."""
    del draw
    blank = {"leader": None, "isr": None}
    return edited(run, "describes", ("read",), lambda _row: blank)


def fatal_line(run: CopiedRun, draw: Random) -> bool:
    """A node's log has a line of a fault that its code holds impossible."""
    if "log_findings" not in run.manifest.recorded:
        return False
    row = {
        "node": draw.choice(sorted(run.manifest.node_ids)),
        "file": "server.log",
        "line": 4711,
        "finding": "fatal-fault",
        "text": "ERROR Encountered fatal fault: planted",
    }
    return run.change(
        "log_findings",
        lambda rows: pa.concat_tables([rows, pa.Table.from_pylist([row], schema=rows.schema)]),
    )
