"""Faults in words: which operations, what they say, and why no order explains them all."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from checkers.linearizability.claims import ENDLESS, NOTHING
from checkers.linearizability.faults import ClaimKind, Fault, Violation, Witness
from checkers.linearizability.witnesses import Found
from checkers.proof import Proof
from history.models import Model
from history.operation import Outcome

__all__ = ["proof_of"]

_Row = Mapping[str, Any]


def proof_of(fault: Fault, found: Found, model: Model) -> Proof:
    """Return the proof of a fault by the operations that were found of it."""
    rows = list(_rows(fault, found))
    return Proof.of(
        "{detail}",
        operations=tuple(dict.fromkeys(row["index"] for row in rows)),
        offsets=(fault.witnesses[0].version - 1,) if model is Model.LOG else (),
        values=_values(fault, model),
        detail=_detail(fault, found, model),
    )


def _rows(fault: Fault, found: Found) -> Iterator[_Row]:
    for witness in fault.witnesses:
        wanted = 2 if witness.kind is ClaimKind.MADE else 1
        for _, row in found.get(witness, ())[:wanted]:
            yield row


def _values(fault: Fault, model: Model) -> tuple[int, ...]:
    """Return the two that were compared: moments in ns, values, or versions."""
    first, last = fault.witnesses[0], fault.witnesses[-1]
    if fault.rule is Violation.TIMES:
        return (first.number, last.number)
    if fault.rule is Violation.TWO_VALUES:
        return tuple(one.number for one in (first, last) if one.number != NOTHING)
    if fault.rule is Violation.JUMP:
        return (first.number, first.version)
    return (first.version - (model is Model.LOG),)


def _detail(fault: Fault, found: Found, model: Model) -> str:
    told = [_told(row, model) for row in _rows(fault, found)]
    thing = _thing(fault.witnesses[0].version, model)
    if fault.rule is Violation.TIMES:
        return _of_times(fault, found, model)
    if fault.rule is Violation.TWO_VALUES:
        begins = [f"{thing} begins with nothing"] if len(told) == 1 else []
        return f"{thing} has one value, and {' and '.join([*begins, *told])}"
    if fault.rule is Violation.MADE_TWICE:
        return f"{thing} was made once, and {' and '.join(told)}"
    if fault.rule is Violation.JUMP:
        return f"a cas makes the version after the one that it expected, and {told[0]}"
    if fault.rule is Violation.BEFORE_FIRST:
        return f"there is no such version to be made or read: {told[0]}"
    return _of_nobody(fault, told, model)


def _of_times(fault: Fault, found: Found, model: Model) -> str:
    early, *late = fault.witnesses
    chain = [_link(one, found, model) for one in late]
    return (
        f"{_thing(early.version, model)} appeared no earlier than {early.number} ns "
        f"({_first(early, found, model)}) and no later than {late[0].number} ns "
        f"({', for '.join(chain)})"
    )


def _link(witness: Witness, found: Found, model: Model) -> str:
    told = _first(witness, found, model)
    if witness.kind is ClaimKind.REFUSED:
        return f"{told}, and {_thing(witness.version - 1, model)} was there when that was called"
    return told


def _of_nobody(fault: Fault, told: Sequence[str], model: Model) -> str:
    first = fault.witnesses[0].version
    thing = _thing(first, model)
    if fault.version_count > 1:
        thing = f"{thing} to {first + fault.version_count - 1 - (model is Model.LOG)}"
    times = [one.number for one in fault.witnesses if one.kind is ClaimKind.BY]
    when = f" by {_clock(times[0])}" if times else ""
    return (
        f"{thing} had appeared{when} ({'; '.join(dict.fromkeys(told))}), no operation that is ok "
        "made it, and none that crashed is left that can have: called by then, with its value"
    )


def _first(witness: Witness, found: Found, model: Model) -> str:
    rows = found.get(witness, ())
    return _told(rows[0][1], model) if rows else "the operations before"


def _told(row: _Row, model: Model) -> str:
    interval = f"in [{row['call_ns']}, {_clock(row['return_ns'])}]"
    return f"{row['f']} {row['index']} {_did(row, model)} {interval}"


def _did(row: _Row, model: Model) -> str:
    value = "nothing" if row["value"] is None else row["value"]
    if model is Model.LOG:
        verb = "found" if row["f"] == "read" else "put"
        return f"{verb} {value} at offset {row['version']}"
    if row["outcome"] == Outcome.FAIL:
        return f"was refused, expecting version {row['expected']}"
    if row["f"] == "read":
        return f"found version {row['version']} with {value}"
    version = row["expected"] + 1 if row["version"] is None else row["version"]
    expecting = f", expecting {row['expected']}" if row["f"] == "cas" else ""
    return f"made version {version} with {value}{expecting}"


def _thing(version: int, model: Model) -> str:
    return f"offset {version - 1}" if model is Model.LOG else f"version {version}"


def _clock(time_ns: int | None) -> str:
    return "no known end" if time_ns is None or time_ns >= ENDLESS else f"{time_ns} ns"
