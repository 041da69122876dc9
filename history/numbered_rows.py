"""The tables whose rows have numbers in the order of their calls, put together from journals.

Every writer numbers its own from 0 and writes when something ends, so a journal is nearly in order;
the journals of several writers are merged by the times of the calls and numbered anew. In memory is
what was begun before the oldest that is still open.

A client that was killed leaves what it had begun without an end: an event that is info, a read that
claims nothing and is left out.
"""

import heapq
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from history.cluster_schema import CLUSTER_TABLES
from history.failure import HarnessError
from history.journal import journal_lines, journal_paths

__all__ = ["NUMBERED", "numbered_rows"]

NUMBERED: Final = {
    "describes": ("read", "call_ns"),
    "metadata_writes": ("index", "call_ns"),
    "partition_writes": ("index", "call_ns"),
    "transactions": ("index", "begin_ns"),
    "group_offsets": ("index", "call_ns"),
}
"""The number's column of each table, and the column of the time that it follows."""

_EVENTS: Final = ("begin", "note", "end")
_OPEN: Final[dict[str, dict[str, Any]]] = {
    "metadata_writes": {"outcome": "info"},
    "partition_writes": {"outcome": "info"},
    "transactions": {"outcome": "info", "keys": [], "values": []},
    "group_offsets": {"outcome": "info", "keys": [], "offsets": []},
}

_Rows = list[dict[str, Any]]


def numbered_rows(raw: Path, table: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a numbered table, in order, from all its journals in `raw`.

    Raises HarnessError, naming file and line, for a line that makes no sense.
    """
    number_column, time_column = NUMBERED[table]
    streams = [_in_order(_ended(path, table)) for path in journal_paths(raw, table)]
    merged = heapq.merge(*streams, key=lambda rows: rows[0][time_column])
    for number, rows in enumerate(merged):
        for row in rows:
            yield {**row, number_column: number}


def _in_order(ended: Iterable[tuple[int, _Rows]]) -> Iterator[_Rows]:
    """Yield rows by their numbers. A number that never comes is one whose writer died meanwhile."""
    waiting: list[tuple[int, _Rows]] = []
    following = 0
    for number, rows in ended:
        heapq.heappush(waiting, (number, rows))
        while waiting and waiting[0][0] == following:
            following += 1
            yield from _any(heapq.heappop(waiting)[1])
    while waiting:
        yield from _any(heapq.heappop(waiting)[1])


def _any(rows: _Rows) -> list[_Rows]:
    """Return the rows as a list; a read that was left out has a number, and no rows."""
    return [rows] if rows else []


def _ended(path: Path, table: str) -> Iterator[tuple[int, _Rows]]:
    """Yield each number once, with its rows, in the order of their ends; then what is open."""
    known, required = _columns(table)
    open_rows: dict[int, dict[str, Any]] = {}
    for place, line in enumerate(journal_lines(path), start=1):
        try:
            if "read" in line:
                number, rows = _read(line)
            else:
                number, rows = _event(line, open_rows, _OPEN[table])
        except (KeyError, TypeError, ValueError) as error:
            raise HarnessError(f"{path}:{place} is not a line of {table}: {line}") from error
        if rows is None:
            continue
        if not all(required <= row.keys() <= known for row in rows):
            raise HarnessError(f"{path}:{place} does not have the columns of {table}: {line}")
        yield number, rows
    for number, row in open_rows.items():
        if not required <= row.keys() <= known:
            raise HarnessError(f"{path} begins a {table} {number} without its columns: {row}")
        yield number, [row]


def _read(line: dict[str, Any]) -> tuple[int, _Rows | None]:
    return line["read"], [line["columns"] | item for item in line["items"]]


def _event(
    line: dict[str, Any], open_rows: dict[int, dict[str, Any]], unended: dict[str, Any]
) -> tuple[int, _Rows | None]:
    (event,) = line.keys() & set(_EVENTS)
    number = line.pop(event)
    if event == "begin":
        open_rows[number] = unended | line
        return number, None
    open_rows[number] |= line
    return number, [open_rows.pop(number)] if event == "end" else None


def _columns(table: str) -> tuple[set[str], set[str]]:
    """Return the columns that a row may have, and must have, before it is numbered."""
    schema = CLUSTER_TABLES[table]
    numbered = {NUMBERED[table][0]}
    required = {field.name for field in schema if not field.nullable}
    return set(schema.names) - numbered, required - numbered
