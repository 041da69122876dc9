"""A small language for histories, so that a case is read at a glance.

One line an operation:

    p1 send t-0 v1 -> ok @0              a send; acknowledged at offset 0
    p1 send t-0 v2 -> ok                 acknowledged, offset unknown
    p1 send t-0 v3 -> fail
    p1 send t-0 v4 -> info               crashed; its return was never seen
    c1 poll -> t-0 [v1@0 v2@1]           an ok poll; several keys may follow each other
    c1 poll -> t-0 [v1@0] t-1 [v9@0]
    c1 poll -> t-0 s1 [v1@0]             in session 1 of that key (0 unless said)
    c1 poll -> info t-0 [v1@0]           a crashed poll, and what it was given
    c1 poll -> nothing                   an ok poll that returned no record
    r1 final t-0 -> [v1@0]               a complete final read; `-> info [v1@0]` for a partial one

Lines follow each other in time: line n is called at 10 n and returns at 10 n + 5. A line may end in
`in 5..95` (called at 5, returned at 95). Processes are numbered by name, in order of appearance;
values are their numbers (v17 is 17). `#` starts a comment.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.history.schema import OPERATIONS, RECORDS

Row = dict[str, Any]

_TIMES = re.compile(r"\s+in (\d+)\.\.(\d+|open)$")
_GIVEN = re.compile(r"(?:(?P<key>\S+-\d+)\s+)?(?:s(?P<session>\d+)\s+)?\[(?P<records>[^\]]*)\]")
_F = {"send": "send", "poll": "poll", "final": "final-read"}


@dataclass(frozen=True)
class History:
    """The two tables that the lines say."""

    operations: pa.Table
    records: pa.Table

    def of_key(self, key: str) -> pa.Table:
        """The records of one key."""
        return self.records.filter(pc.equal(self.records.column("key"), key))


@dataclass
class _Builder:
    processes: dict[str, int] = field(default_factory=dict)
    operations: list[Row] = field(default_factory=list)
    records: list[Row] = field(default_factory=list)


def history(text: str) -> History:
    """The history that these lines say; operations are numbered by their calls."""
    lines = [line.split("#")[0].strip() for line in text.strip().splitlines()]
    return built([_parsed(number, line) for number, line in enumerate(filter(None, lines))])


def built(operations: list[Row]) -> History:
    """The history of these operations: process, f, key, call_ns, return_ns, outcome, rows."""
    build = _Builder()
    for index, operation in enumerate(sorted(operations, key=lambda one: one["call_ns"])):
        _add(build, index, dict(operation))
    build.records.sort(key=lambda row: (row["key"], row["operation"], row["position"]))
    return History(
        operations=pa.Table.from_pylist(build.operations, schema=OPERATIONS),
        records=pa.Table.from_pylist(build.records, schema=RECORDS),
    )


def _parsed(number: int, line: str) -> Row:
    times = _TIMES.search(line)
    call, ret = (times[1], times[2]) if times else (10 * number, 10 * number + 5)
    call, ret = int(call), None if ret == "open" else int(ret)
    left, _, right = (line[: times.start()] if times else line).partition(" -> ")
    process, verb, *rest = left.split()
    words = right.split()
    outcome = words[0] if words[0] in ("ok", "fail", "info") else "ok"
    operation = {
        "process": process,
        "f": _F[verb],
        "key": rest[0] if rest else None,
        "call_ns": call,
        "return_ns": None if outcome == "info" and not times else ret,
        "outcome": outcome,
    }
    rows = _sent(rest, words) if verb == "send" else list(_given(right, operation["key"]))
    return operation | {"rows": rows}


def _sent(rest: list[str], words: list[str]) -> list[Row]:
    key, value = rest
    offset = int(words[1][1:]) if len(words) > 1 else None
    return [{"key": key, "value": int(value[1:]), "offset": offset, "session": 0}]


def _given(text: str, only_key: str | None) -> Iterator[Row]:
    for match in _GIVEN.finditer(text):
        for record in match["records"].split():
            value, _, offset = record.partition("@")
            yield {
                "key": match["key"] or only_key,
                "value": int(value[1:]),
                "offset": int(offset) if offset else None,
                "session": int(match["session"] or 0),
            }


def _add(build: _Builder, index: int, operation: Row) -> None:
    rows = operation.pop("rows")
    process = build.processes.setdefault(operation["process"], len(build.processes))
    error = None if operation["outcome"] == "ok" else "SOME_ERROR"
    build.operations.append(
        operation | {"index": index, "process": process, "error": error, "record_count": len(rows)}
    )
    shared = {name: operation[name] for name in ("f", "outcome", "call_ns", "return_ns")}
    for position, row in enumerate(rows):
        place = {"operation": index, "position": position, "process": process}
        build.records.append(row | place | shared)
