"""Linearizability by trying every order of every subset: slow, obvious, and nobody else's code.

Works on rows of MODEL_OPERATIONS as dictionaries. An order is good if each operation stands at a
moment between its call and its return, moments never going back, and each answer is what an object
that does one thing after the other would have given.
"""

from collections.abc import Callable
from typing import Any

from fencepost.history.models import Model

Row = dict[str, Any]
Answers = Callable[[Any, Row], tuple[bool, Any]]
"""Whether the object in this state would have answered so, and its state afterwards."""

_LATE = 10**30


def is_linearizable(rows: list[Row], model: Model) -> bool:
    """Whether some order of those that took effect, and of some that may have, is good."""
    must = [row for row in rows if row["outcome"] == "ok" or _was_refused(row)]
    may = [row for row in rows if row["outcome"] == "info"]
    initial, answers = _OBJECTS[model]
    return any(
        _has_good_order(must + subset, initial, answers, moment=-1) for subset in _subsets(may)
    )


def _was_refused(row: Row) -> bool:
    return row["f"] == "cas" and row["outcome"] == "fail" and row["error"] is None


def _subsets(rows: list[Row]) -> list[list[Row]]:
    if not rows:
        return [[]]
    others = _subsets(rows[1:])
    return others + [[rows[0], *other] for other in others]


def _has_good_order(rows: list[Row], state: Any, answers: Answers, *, moment: int) -> bool:
    if not rows:
        return True
    for place, row in enumerate(rows):
        at = max(moment, row["call_ns"])
        if at > _end(row):
            continue
        right, after = answers(state, row)
        rest = rows[:place] + rows[place + 1 :]
        if right and _has_good_order(rest, after, answers, moment=at):
            return True
    return False


def _end(row: Row) -> int:
    open_ended = row["outcome"] == "info" or row["return_ns"] is None
    return _LATE if open_ended else row["return_ns"]


def _register(state: Any, row: Row) -> tuple[bool, Any]:
    match row["f"], row["outcome"]:
        case "read", "ok":
            return state == row["value"], state
        case "read", _:
            return True, state
        case "write", _:
            return True, row["value"]
        case "cas", "fail":
            return state != row["expected"], state
    return state == row["expected"], row["value"]


def _versioned(state: Any, row: Row) -> tuple[bool, Any]:
    version, value = state
    match row["f"], row["outcome"]:
        case "read", "ok":
            return row["version"] in (None, version) and value == row["value"], state
        case "read", _:
            return True, state
        case "cas", "fail":
            return version != row["expected"], state
    known = row["version"] is None or row["version"] == version + 1
    expected = row["f"] == "write" or version == row["expected"]
    return known and expected, (version + 1, row["value"])


def _log(state: Any, row: Row) -> tuple[bool, Any]:
    if row["f"] == "append":
        return row["version"] in (None, len(state)), [*state, row["value"]]
    if row["outcome"] != "ok":
        return True, state
    there = dict(enumerate(state)).get(row["version"])
    return there == row["value"], state


def _set(state: Any, row: Row) -> tuple[bool, Any]:
    if row["f"] == "add":
        return True, {*state, row["value"]}
    return row["outcome"] != "ok" or state == set(row["values"]), state


def _counter(state: Any, row: Row) -> tuple[bool, Any]:
    if row["f"] == "add":
        return True, state + row["value"]
    return row["outcome"] != "ok" or state == row["value"], state


_OBJECTS: dict[Model, tuple[Any, Answers]] = {
    Model.REGISTER: (None, _register),
    Model.VERSIONED_REGISTER: ((0, None), _versioned),
    Model.LOG: ([], _log),
    Model.SET: (set(), _set),
    Model.COUNTER: (0, _counter),
}
