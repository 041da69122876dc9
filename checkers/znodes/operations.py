"""The operations on one znode, as the kernels take them, and as clauses of proofs.

An operation says something by what became of it:

- ok: it took effect, or read, at one moment between call and return, both included;
- fail without an error: it was refused at one moment in between;
- info, of a write: it may have taken effect at any moment after its call;
- anything else says nothing, and is left out.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa

from fencepost.checkers.anomaly import Found, found
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import OPEN_NS
from fencepost.history.operation import Outcome

CHANGES: Final = frozenset(("create", "set", "cas", "delete"))
READS: Final = frozenset(("read", "sync-read", "final-read"))
COLUMNS: Final = (
    "index",
    "process",
    "session",
    "server",
    "key",
    "f",
    "call_ns",
    "return_ns",
    "outcome",
    "error",
    "expected",
    "life",
    "version",
    "zxid",
    "value",
)
"""The columns of ZNODE_OPERATIONS that operations are made of: all."""

_Wrong = TypeVar("_Wrong")


@dataclass(frozen=True, slots=True, kw_only=True)
class ZnodeOperation:
    """One operation on a znode. See `history.models` for its columns."""

    index: int
    process: int
    session: int
    server: str
    f: str
    outcome: str
    call: int
    end: int
    """Its return; `OPEN_NS` of what may take effect at any time after its call."""
    expected: int | None = None
    life: int | None = None
    version: int | None = None
    zxid: int | None = None
    value: int | None = None

    @property
    def is_ok(self) -> bool:
        """True if it took effect, or was answered."""
        return self.outcome == Outcome.OK

    @property
    def is_refused(self) -> bool:
        """True if it is a write that was refused."""
        return self.outcome == Outcome.FAIL

    @property
    def is_read(self) -> bool:
        """True if it changes nothing."""
        return self.f in READS


def znodes_of(rows: pa.Table) -> list[ZnodeOperation]:
    """Return the operations of one key that say something, by index, from ZNODE_OPERATIONS.

    Raises ValueError, naming the operation, if one cannot be understood.
    """
    listed = rows.select(COLUMNS).sort_by("index").to_pylist()
    return [_znode(row) for row in listed if _says_something(row)]


def cited(operations: Iterable[ZnodeOperation]) -> tuple[int, ...]:
    """Return their indices, in order, each once."""
    return tuple(sorted({one.index for one in operations}))


def told(one: ZnodeOperation, *, zxid: str = "") -> Proof:
    """Return the clause of an operation: its index, its answer and its times.

    `zxid`: the name by which the proof says the zxid of the answer; empty if it does not.
    """
    did = _did(one)
    ended = one.end != OPEN_NS
    until = "{return_} s" if ended else "no known end"
    return Proof.of(
        f"{one.f} {{operation}} {{did}} in [{{call}}, {until}]",
        operations={"operation": one.index},
        moments={"call": one.call, "return_": one.end if ended else None},
        zookeeper_ids={zxid: one.zxid} if zxid else {},
        sources=dict.fromkeys(
            ["call", "return_", zxid, *(fact.name for fact in did.facts)], "operation"
        ),
        did=did,
    )


def told_each(operations: Iterable[ZnodeOperation]) -> Proof:
    """Return the clause of several operations."""
    return Proof.joined("; ", map(told, operations))


def did(one: ZnodeOperation) -> str:
    """Return in words what became of an operation."""
    return _did(one).sentence


def found_by_znode(
    check: str,
    keys: Iterable[str],
    wrong: Mapping[str, Sequence[_Wrong]],
    *,
    cases: Mapping[str, int],
    proof: Callable[[_Wrong], Proof],
) -> list[tuple[str, Found]]:
    """Return the findings on each of these znodes, in order; `proof`: of one that is `wrong`."""

    def found_on(key: str, mine: Sequence[_Wrong]) -> Found:
        never = np.arange(len(mine), dtype=np.int64)
        return found(
            check,
            key,
            cases=cases.get(key, 0),
            never=never,
            proof=lambda number: proof(mine[number]),
        )

    return [(key, found_on(key, wrong.get(key, ()))) for key in sorted(keys)]


def _says_something(row: Mapping[str, Any]) -> bool:
    if row["outcome"] == Outcome.INFO:
        return row["f"] in CHANGES
    return row["outcome"] == Outcome.OK or (row["f"] in CHANGES and row["error"] is None)


def _znode(row: Mapping[str, Any]) -> ZnodeOperation:
    crashed = row["outcome"] == Outcome.INFO or row["return_ns"] is None
    one = ZnodeOperation(
        index=row["index"],
        process=row["process"],
        session=row["session"],
        server=row["server"],
        f=row["f"],
        outcome=row["outcome"],
        call=row["call_ns"],
        end=OPEN_NS if crashed else row["return_ns"],
        expected=row["expected"],
        life=row["life"],
        version=row["version"],
        zxid=row["zxid"],
        value=row["value"],
    )
    for mistake in _mistakes(one):
        raise ValueError(f"operation {one.index}, {one.f}, {mistake}")
    return one


def _mistakes(one: ZnodeOperation) -> Iterator[str]:
    if one.f not in CHANGES | READS:
        yield "is nothing that is done to a znode"
    if one.end < one.call:
        yield "returned before it was called"
    if (one.life is None) != (one.version is None):
        yield "has a life without a version, or the other way round"
    if one.is_ok and not one.is_read and one.life is None:
        yield "made nothing that it tells"
    if one.f == "cas" and one.expected is None:
        yield "expects nothing"


def _did(one: ZnodeOperation) -> Proof:
    expecting = "" if one.expected is None else " expecting version {expected}"
    value = "None" if one.value is None else "{value}"
    state = "version {version} of life {life}"
    if one.outcome == Outcome.INFO:
        writing = "" if one.value is None else f" of {value}"
        rule = f"crashed{writing}{expecting}"
    elif one.is_refused:
        rule = f"was refused{expecting}"
    elif one.life is None:
        rule = "found no znode"
    elif one.f == "delete":
        rule = f"ended {state}{expecting}"
    else:
        rule = f"{'found' if one.is_read else 'made'} {state} with {value}{expecting}"
    numbers: dict[str, Any] = {"expected": one.expected, "version": one.version}
    return Proof.of(
        rule,
        values={"value": one.value} if "{value}" in rule else {},
        zookeeper_ids={"life": one.life} if "{life}" in rule else {},
        **{name: number for name, number in numbers.items() if f"{{{name}}}" in rule},
    )
