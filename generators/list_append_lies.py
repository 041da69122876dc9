"""Lies: the smallest histories that show each anomaly of lists of transactions, to be planted.

A lie is written as its transactions, one a line: when it was called and returned (µs), its outcome,
and its steps; `x+1` appends 1 to x, `x=1.2` reads [1 2], `x=` reads []. Transactions of one letter
are of one process.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from history.models import Isolation

__all__ = ["LIES", "Lie", "transactions_of"]

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lie:
    """A small history that is wrong in one way."""

    check: str
    """The check that must find it …"""
    level: Isolation
    """… and the weakest isolation that forbids it."""
    kind: str
    """The class of the cycle; empty for what is wrong with a list."""
    text: str

    def rows(self, number: int, *, moment_ns: int, first_process: int) -> list[Row]:
        """Return rows of MICRO_OPERATIONS with keys and transactions (negative) of its own."""
        rows = transactions_of(self.text)
        for row in rows:
            row["transaction"] = -1 - 100 * number - row["transaction"]
            row["key"] = f"lie-{number}-{row['key']}"
            row["process"] = first_process - row["process"]
            row["call_ns"] += moment_ns
            row["return_ns"] = row["return_ns"] and row["return_ns"] + moment_ns
        return rows


def transactions_of(text: str) -> list[Row]:
    """Return rows of MICRO_OPERATIONS, by key, transaction and position; a line a transaction.

    They are numbered by their calls, and those called at one time by their lines.

    `A 0-10 ok x+1 y=1.2`: process A called it at 0 µs and it returned at 10 µs; `0-` never did.
    """
    rows: list[Row] = []
    lines = [line.split() for line in text.splitlines() if line.strip()]
    lines.sort(key=lambda words: int(words[1].partition("-")[0]))
    for number, (process, times, outcome, *steps) in enumerate(lines):
        call, _, end = times.partition("-")
        shared = {
            "transaction": number,
            "process": ord(process) - ord("A"),
            "call_ns": int(call) * 1000,
            "return_ns": int(end) * 1000 if end else None,
            "outcome": outcome,
            "error": None if outcome == "ok" else "REQUEST_TIMED_OUT",
        }
        rows += [shared | _step(step) | {"position": place} for place, step in enumerate(steps)]
    return sorted(rows, key=lambda row: (row["key"], row["transaction"], row["position"]))


def _step(text: str) -> Row:
    if "+" in text:
        key, _, value = text.partition("+")
        return {"key": key, "f": "append", "value": int(value), "values": None}
    key, _, values = text.partition("=")
    read = None if values == "?" else [int(value) for value in values.split(".") if value]
    return {"key": key, "f": "read", "value": None, "values": read}


def _cycle(kind: str, level: Isolation, text: str) -> Lie:
    return Lie(check="dependency-cycle", level=level, kind=kind, text=text)


def _odd(check: str, level: Isolation, text: str) -> Lie:
    return Lie(check=check, level=level, kind="", text=text)


_WRITES_CROSS: Final = "A {} ok x+1 y+1\nB {} ok x+2 y+2\nC {} ok x=1.2 y=2.1"
_STRICT: Final = Isolation.STRICT_SERIALIZABLE

LIES: Final[Mapping[str, Lie]] = {
    "G0": _cycle("G0", Isolation.READ_UNCOMMITTED, _WRITES_CROSS.format("0-10", "0-10", "0-10")),
    "G1c": _cycle("G1c", Isolation.READ_COMMITTED, "A 0-10 ok x+1 y=1\nB 0-10 ok y+1 x=1"),
    "G-single": _cycle("G-single", Isolation.SNAPSHOT, "A 0-10 ok x= y=1\nB 0-10 ok x+1 y+1"),
    "G-nonadjacent": _cycle(
        "G-nonadjacent",
        Isolation.SNAPSHOT,
        "A 0-10 ok x= w=1\nB 0-10 ok x+1 y+1\nC 0-10 ok y=1 z=\nD 0-10 ok z+1 w+1",
    ),
    "G2-item": _cycle("G2-item", Isolation.SERIALIZABLE, "A 0-10 ok x= y+1\nB 0-10 ok y= x+1"),
    "G0-process": _cycle("G0-process", _STRICT, "A 0-10 ok x+1\nA 10-20 ok x+2\nB 0-20 ok x=2.1"),
    "G1c-process": _cycle("G1c-process", _STRICT, "A 0-10 ok x=1\nA 10-20 ok x+1"),
    "G-single-process": _cycle("G-single-process", _STRICT, "A 0-10 ok x+1\nA 10-20 ok x="),
    "G-nonadjacent-process": _cycle(
        "G-nonadjacent-process",
        _STRICT,
        "A 0-10 ok x+1\nA 10-20 ok y=\nB 0-20 ok y+1 z+1\nC 0-20 ok z=1 x=",
    ),
    "G2-item-process": _cycle(
        "G2-item-process",
        _STRICT,
        "A 0-10 ok x+1\nA 10-20 ok y=\nB 0-20 ok y+1 w=\nC 0-20 ok w+1 x=",
    ),
    "G0-realtime": _cycle("G0-realtime", _STRICT, "A 0-10 ok x+1\nB 20-30 ok x+2\nC 0-30 ok x=2.1"),
    "G1c-realtime": _cycle("G1c-realtime", _STRICT, "A 0-10 ok x=1\nB 20-30 ok x+1"),
    "G-single-realtime": _cycle("G-single-realtime", _STRICT, "A 0-10 ok x+1\nB 20-30 ok x="),
    "G-nonadjacent-realtime": _cycle(
        "G-nonadjacent-realtime",
        _STRICT,
        "A 0-10 ok x+1\nB 20-30 ok y=\nC 0-30 ok y+1 z+1\nD 0-30 ok z=1 x=",
    ),
    "G2-item-realtime": _cycle(
        "G2-item-realtime",
        _STRICT,
        "A 0-10 ok x+1\nB 20-30 ok y=\nC 0-30 ok y+1 w=\nD 0-30 ok w+1 x=",
    ),
    "aborted-element": _odd(
        "aborted-element", Isolation.READ_COMMITTED, "A 0-10 fail x+1\nB 0-10 ok x=1"
    ),
    "garbage-element": _odd("garbage-element", Isolation.READ_UNCOMMITTED, "A 0-10 ok x=1"),
    "duplicate-element": _odd(
        "duplicate-element", Isolation.READ_UNCOMMITTED, "A 0-10 ok x+1\nB 0-10 ok x=1.1"
    ),
    "incompatible-order": _odd(
        "incompatible-order",
        Isolation.READ_UNCOMMITTED,
        "A 0-10 ok x+1\nB 0-10 ok x+2\nC 0-10 ok x=1\nD 0-10 ok x=2",
    ),
    "intermediate-read": _odd(
        "intermediate-read", Isolation.READ_COMMITTED, "A 0-10 ok x+1 x+2\nB 0-10 ok x=1"
    ),
    "dirty-update": _odd(
        "dirty-update",
        Isolation.READ_COMMITTED,
        "A 0-10 fail x+1\nB 0-10 ok x+2\nC 0-10 ok x=1.2",
    ),
    "internal-inconsistency": _odd(
        "internal-inconsistency", Isolation.READ_UNCOMMITTED, "A 0-10 ok x+1 x="
    ),
    "lost-update": _odd("lost-update", Isolation.SNAPSHOT, "A 0-10 ok x= x+1\nB 0-10 ok x= x+2"),
}
"""The lies by the anomaly that each shows. Some show more: half of a transaction is in a circle,
too.
"""
