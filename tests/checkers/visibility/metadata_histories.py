"""A small language for histories of metadata: writes and reads of one topic, a line each.

create  A 3 10-20        topic id A and setting 3, called at 10, acknowledged at 20
alter   4 30-40
grow    2 40-45          have 2 partitions
delete  50-60            `?` after the times: info; `!`: failed
reads   b1 A 70-71       through broker-1: topic id A
reads   b2 =4 70-71      setting 4
reads   b2 none 70-71    no such topic
reads   b2 A/5 70-71     topic id A, partition 0 in leader epoch 5
reads   b2 A*2 70-71     topic id A, with 2 partitions
"""

from typing import Any

import pyarrow as pa

from fencepost.checkers.slices import WHOLE, Slice
from fencepost.checkers.sources import source_of
from fencepost.checkers.visibility.topic_reads import TopicReads, topic_reads
from fencepost.history.request_schema import DESCRIBES, METADATA_WRITES, PARTITION_WRITES

TOPIC = "m-000001"
GROWTH = "create-partitions"
_OUTCOMES = {"?": "info", "!": "fail"}


def tables(text: str) -> dict[str, pa.Table]:
    writes: list[dict[str, Any]] = []
    reads: list[dict[str, Any]] = []
    for line in filter(None, (line.strip() for line in text.splitlines())):
        word, *rest = line.split()
        if word == "reads":
            reads.append(_read(*rest))
        else:
            writes.append(_write(word, rest))
    return numbered(writes, reads)


def told(text: str) -> TopicReads:
    return of_clients(tables(text))


def of_clients(tables: dict[str, pa.Table], part: Slice = WHOLE) -> TopicReads:
    return topic_reads(
        source_of(tables["describes"]),
        topic_writes=source_of(tables["metadata_writes"]),
        partition_writes=source_of(tables["partition_writes"]),
        part=part,
    )


def numbered(writes: list[dict[str, Any]], reads: list[dict[str, Any]]) -> dict[str, pa.Table]:
    """In the order of their calls."""
    for number, write in enumerate(sorted(writes, key=lambda one: one["call_ns"])):
        write["index"] = number
    for number, read in enumerate(sorted(reads, key=lambda one: one["call_ns"])):
        read["read"] = number
    writes.sort(key=lambda one: one["index"])
    reads.sort(key=lambda one: one["read"])
    topic_writes = [write for write in writes if write["f"] != GROWTH]
    partition_writes = [write for write in writes if write["f"] == GROWTH]
    return {
        "metadata_writes": pa.Table.from_pylist(topic_writes, schema=METADATA_WRITES),
        "partition_writes": pa.Table.from_pylist(partition_writes, schema=PARTITION_WRITES),
        "describes": pa.Table.from_pylist(
            [row for read in reads for row in _rows_of(read)], schema=DESCRIBES
        ),
    }


def _rows_of(read: dict[str, Any]) -> list[dict[str, Any]]:
    """A row a partition that it shows."""
    return [{**read, "partition": number} for number in range(read["count"])] or [read]


def a_growth(count: int, call_ns: int, return_ns: int, *, outcome: str = "ok") -> dict[str, Any]:
    write = a_write(GROWTH, call_ns, return_ns, outcome=outcome)
    return write | {"partition_count": count}


def a_write(
    f: str,
    call_ns: int,
    return_ns: int,
    *,
    outcome: str = "ok",
    topic_id: str | None = None,
    number: int | None = None,
) -> dict[str, Any]:
    return {
        "process": 0,
        "f": f,
        "node": "broker-1",
        "topic": TOPIC,
        "topic_id": topic_id if outcome == "ok" else None,
        "config_value": number,
        "call_ns": call_ns,
        "return_ns": return_ns,
        "outcome": outcome,
    }


def a_read(node: str, shown: str, call_ns: int, return_ns: int) -> dict[str, Any]:
    read: dict[str, Any] = {
        "process": int(node[-1]),
        "node": node,
        "call_ns": call_ns,
        "return_ns": return_ns,
        "topic": TOPIC,
        "error": "NONE",
        "count": 0,
    }
    if shown == "none":
        return read | {"error": "UNKNOWN_TOPIC_OR_PARTITION"}
    if shown.startswith("="):
        return read | {"config_value": int(shown[1:])}
    shown, _, count = shown.partition("*")
    topic_id, _, leader_epoch = shown.partition("/")
    return read | {
        "topic_id": topic_id,
        "count": int(count or 1),
        "leader": 1,
        "leader_epoch": int(leader_epoch or 0),
    }


def _write(word: str, rest: list[str]) -> dict[str, Any]:
    *made, times = rest
    outcome = _OUTCOMES.get(times[-1], "ok")
    call_ns, return_ns = map(int, times.rstrip("?!").split("-"))
    if word == "grow":
        return a_growth(int(made[0]), call_ns, return_ns, outcome=outcome)
    f = {"create": "create-topic", "alter": "alter-config", "delete": "delete-topic"}[word]
    topic_id = made[0] if f == "create-topic" else None
    number = None if f == "delete-topic" else int(made[-1])
    return a_write(f, call_ns, return_ns, outcome=outcome, topic_id=topic_id, number=number)


def _read(broker: str, shown: str, times: str) -> dict[str, Any]:
    call_ns, return_ns = map(int, times.split("-"))
    return a_read(f"broker-{broker[1:]}", shown, call_ns, return_ns)
