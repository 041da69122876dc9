"""Small histories of one object: written by hand, or drawn at random, good and bad.

By hand: `rows(ok("write", 0, 5, value=1), info("write", 3, value=2), refused(4, 6, expected=1))`.

At random: a few processes act on a real object, each operation at a moment between its call and its
return; then, mostly, an answer or a time is spoiled. Times are few, so that many are equal.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa

from fencepost.history.models import Model
from fencepost.history.schema import MODEL_OPERATIONS

Row = dict[str, Any]
_EMPTY: Row = dict.fromkeys(MODEL_OPERATIONS.names)


def ok(f: str, call: int, end: int, **columns: Any) -> Row:
    return _EMPTY | {"f": f, "call_ns": call, "return_ns": end, "outcome": "ok"} | columns


def info(f: str, call: int, end: int | None = None, **columns: Any) -> Row:
    return ok(f, call, 0, **columns) | {"return_ns": end, "outcome": "info", "error": "timeout"}


def fail(f: str, call: int, end: int, **columns: Any) -> Row:
    return ok(f, call, end, **columns) | {"outcome": "fail", "error": "refused-connection"}


def refused(call: int, end: int, **columns: Any) -> Row:
    return ok("cas", call, end, **columns) | {"outcome": "fail"}


def rows(*drawn: Row) -> list[Row]:
    """With indices in the order of the calls, each by a process of its own unless it says so."""
    ordered = sorted(drawn, key=lambda row: row["call_ns"])
    return [
        row
        | {
            "index": index,
            "key": "x",
            "process": index if row["process"] is None else row["process"],
        }
        for index, row in enumerate(ordered)
    ]


def table(history: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(history, schema=MODEL_OPERATIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavour:
    """What is drawn of a model."""

    model: Model
    unique: bool = False
    """Written values never repeat, and there are no swaps."""
    deltas: tuple[int, ...] = (1,)
    """What counters are changed by."""


@dataclass(slots=True)
class _Object:
    """One that does one thing after the other."""

    flavour: Flavour
    random: Random
    value: int | None = None
    version: int = 0
    total: int = 0
    elements: list[int] = field(default_factory=list)
    written: int = 0

    def act(self, row: Row) -> None:
        """Let an operation take effect, and put the right answer into it."""
        match self.flavour.model, row["f"]:
            case Model.COUNTER, "add":
                self.total += row["value"]
            case Model.COUNTER, _:
                row["value"] = self.total
            case Model.SET, "add":
                self.elements.append(row["value"])
            case Model.SET, _:
                row["values"] = sorted(set(self.elements))
            case Model.LOG, "append":
                row["version"] = len(self.elements)
                self.elements.append(row["value"])
            case Model.LOG, _:
                there = dict(enumerate(self.elements))
                row["value"] = there.get(row["version"])
            case model, f:
                self._act_on_a_register(row, f, versioned=model is Model.VERSIONED_REGISTER)

    def _act_on_a_register(self, row: Row, f: str, *, versioned: bool) -> None:
        if f == "read":
            row["value"] = self.value
            row["version"] = self.version if versioned else None
            return
        held = self.version if versioned else self.value
        if f == "cas" and row["expected"] != held:
            row["outcome"] = "fail"
            return
        self.value, self.version = row["value"], self.version + 1
        row["version"] = self.version if versioned else None

    def intent(self, f: str) -> Row:
        """What a client asks for, by guess."""
        guess = self.random.randrange(3)
        match self.flavour.model, f:
            case Model.COUNTER, "add":
                return {"value": self.random.choice(self.flavour.deltas)}
            case Model.SET, "add":
                return {"value": guess + self.random.randrange(2)}
            case Model.LOG, "append":
                self.written += 1
                return {"value": self.written}
            case Model.LOG, _:
                return {"version": guess}
            case Model.REGISTER | Model.VERSIONED_REGISTER, "cas" | "write":
                self.written += 1
                value = self.written if self.flavour.unique else self.random.choice((1, 2, 3))
                versioned = self.flavour.model is Model.VERSIONED_REGISTER
                expected = guess if versioned or guess else None
                return {"value": value} | ({"expected": expected} if f == "cas" else {})
        return {}


_FS = {
    Model.REGISTER: ("read", "read", "write", "cas"),
    Model.VERSIONED_REGISTER: ("read", "read", "cas", "cas", "write"),
    Model.LOG: ("read", "append"),
    Model.SET: ("read", "add"),
    Model.COUNTER: ("read", "add"),
}


def random_rows(flavour: Flavour, random: Random, *, count_max: int = 8) -> list[Row]:
    """A history of at most so many operations; about half of all are not linearizable."""
    drawn = _timed(flavour, random, random.randint(count_max // 2, count_max))
    thing = _Object(flavour, random)
    for row in drawn:
        row.update(thing.intent(row["f"]))
    for _, row in sorted(((row.pop("moment"), n) for n, row in enumerate(drawn))):
        _take_effect(thing, drawn[row], random)
    for _ in range(random.choice((0, 2, 3, 4, 5))):
        _spoil(random.choice(drawn), flavour.model, random)
    return rows(*drawn)


def _timed(flavour: Flavour, random: Random, count: int) -> list[Row]:
    """Operations of a few processes, each with one open at a time, and a moment for each."""
    processes, drawn = random.randint(1, 4), []
    free = [random.randint(0, 2) for _ in range(processes)]
    fs = [f for f in _FS[flavour.model] if f != "cas" or not flavour.unique]
    for _ in range(count):
        process = random.randrange(processes)
        call = free[process]
        end = call + random.choice((0, 1, 1, 2, 4, 7))
        free[process] = end + random.choice((0, 0, 1, 2))
        row = ok(random.choice(fs), call, end, process=process)
        row["moment"] = random.randint(call, end)
        if random.random() < 0.2:
            row |= {"outcome": "info", "error": "timeout"}
            row["moment"] = random.randint(call, call + 12)
            row["return_ns"] = random.choice((None, end))
        drawn.append(row)
    return drawn


def _take_effect(thing: _Object, row: Row, random: Random) -> None:
    if row["outcome"] == "ok" and random.random() < 0.1:
        row |= {"outcome": "fail", "error": "refused-connection"}
    elif row["outcome"] == "ok":
        thing.act(row)
    elif random.random() < 0.7:
        asked = dict(row)
        thing.act(row)
        row |= {"outcome": "info", "version": asked["version"]}
        if row["f"] == "read":
            row |= {"value": None, "values": None}


def _spoil(row: Row, model: Model, random: Random) -> None:
    """Make an answer or a time another one."""
    if row["outcome"] == "ok" and row["f"] == "read" and random.random() < 0.7:
        if row["values"] is not None:
            row["values"] = sorted(set(row["values"]) ^ {random.randrange(4)})
        elif model is Model.COUNTER:
            row["value"] += random.choice((-2, -1, 1, 2))
        else:
            row["value"] = random.choice((None, 1, 2, 3, (row["value"] or 0) + 1))
    elif row["outcome"] == "ok" and row["version"] is not None and random.random() < 0.5:
        row["version"] += random.choice((-1, 1))
    elif row["return_ns"] is not None:
        shift = random.choice((-3, -2, -1, 1, 2, 3))
        row["call_ns"] = max(0, row["call_ns"] + shift)
        row["return_ns"] = max(row["call_ns"], row["return_ns"] + shift)
