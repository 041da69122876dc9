"""Versioned registers and logs are checked without a search: one schedule decides.

Let t_k be the moment at which version k appears, and t_0 the beginning (`claims` says how a log has
versions, too). Versions appear in their order, t_k ≤ t_{k+1}; intervals are closed; and every
operation is a condition on these moments:

- an ok read of version k in [call, end]: t_k ≤ end and t_{k+1} ≥ call, and k has the value it read;
- an ok read of a log that found version k: t_k ≤ end, and the value; one that did not: t_k ≥ call;
- an ok write, `cas` or append that made version k: call ≤ t_k ≤ end, the value, and no other
  operation made k; an ok `cas` made the version after the one it expected;
- a `cas` that was refused, expecting e: t_e ≥ call or t_{e+1} ≤ end, for e did not hold at some
  moment in between (of an e that never appears, that holds);
- a crashed `cas` expecting e may have made e + 1, at its call or later; a crashed write or append
  may have made any one version, at its call or later; crashed reads and failures with an error say
  nothing;
- a version that appeared was made: by an ok operation, or by one that crashed and wrote its value.
  Version 0 has no maker and no value.

**Why one schedule is enough.** All conditions but the last are closed under taking the later of two
schedules, moment by moment: bounds are, and if of two schedules that keep a refusal one has t_e ≥
call, so has the later one; if neither has, both have t_{e+1} ≤ end, and so does the later one. So
if there are any schedules that keep the upper bounds and the refusals there is a latest one
(`schedule` finds it), and every lower bound can be kept exactly if the latest schedule keeps it. A
crashed operation that made version k is one more lower bound of t_k. So the last condition can be
met exactly if crashed operations can be found for the versions that need them such that each was
called by the latest moment of its version (`makers`). A version after the last one that a client
saw needs a maker only if its latest moment is a moment at all: if a refusal is not explained
without it. Hence: the operations are linearizable exactly if no value or maker contradicts another,
the latest schedule keeps all lower bounds, and there is such a matching.

**Price.** O(n) for n operations, with a sort of those refusals and crashed operations that nothing
simpler settles. Memory is that of the versions. A key can be cut into ranges of versions, which
exchange a few numbers (`slab`, `conclusion`). The order of two operations of one process is that of
their intervals, as for different processes.

Source: linearizability, Herlihy and Wing 1990; the reduction to one moment a version, and the
latest schedule, are ours, and are tested against trying all orders.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.anomaly import Found, found
from fencepost.checkers.linearizability.claims import ENDLESS, claims_of, model_rows
from fencepost.checkers.linearizability.conclusion import Conclusion, concluded
from fencepost.checkers.linearizability.faults import ClaimKind, Fault, Violation, Witness
from fencepost.checkers.linearizability.slab import Slab
from fencepost.checkers.linearizability.witnesses import FoundWitnesses, sought
from fencepost.checkers.linearizability.witnesses import FoundWitnesses as Sighted
from fencepost.checkers.proof import Proof
from fencepost.history.models import Model
from fencepost.history.operation import Outcome

NAME: Final = "nonlinearizable"
PIECE_ROWS: Final = 1 << 17
"""Operations that are worked on together: what is made of them stays in the processor's cache."""
VERSIONED: Final = frozenset((Model.VERSIONED_REGISTER, Model.LOG))
"""The models that are checked so."""
_Row = Mapping[str, Any]


def nonlinearizable(key: str, rows: pa.Table, model: Model) -> Found:
    """Find what is wrong with the operations of one key, MODEL_OPERATIONS in any order, in memory.

    Raises ValueError if a word is not the model's.
    """
    conclusion = conclusion_of(rows, model)
    witnesses = witnesses_of(conclusion)
    sighted = sought(rows, model, witnesses) if witnesses else {}
    return found_of(key, conclusion, model, sighted=sighted)


def conclusion_of(rows: pa.Table, model: Model) -> Conclusion:
    """Return the faults of the operations of one key, without the operations that prove them."""
    slab = Slab(0, extent(_highest_in(rows), rows.num_rows), limit=rows.num_rows)
    taken(slab, rows, model)
    return concluded([slab.summary()])


def taken(slab: Slab, rows: pa.Table, model: Model, *, owned: bool = True) -> None:
    """Have a slab take these rows: `claims.COLUMNS` of MODEL_OPERATIONS, of any part of a key."""
    for first in range(0, rows.num_rows, PIECE_ROWS):
        piece = model_rows(rows.slice(first, PIECE_ROWS), model)
        slab.add(claims_of(piece, model), owned=owned)


def extent(highest: int, operation_count: int) -> int:
    """Return the end of the versions that can matter, if none above `highest` is named in any row.

    Each version but the first takes an operation to make it. One more is needed, for a refusal of
    the highest to lower.
    """
    return max(0, min(highest, operation_count)) + 2


def found_of(key: str, conclusion: Conclusion, model: Model, *, sighted: Sighted) -> Found:
    """Return the proofs of what is wrong; `sighted`: what was found of `witnesses_of` it."""
    proofs = [_proof_of(fault, sighted, model) for fault in conclusion.faults]
    told = found(
        NAME,
        key,
        cases=conclusion.case_count,
        never=np.arange(len(proofs), dtype=np.int64),
        proof=proofs.__getitem__,
        doubt=conclusion.doubt,
    )
    return replace(told, never_count=conclusion.fault_count)


def witnesses_of(conclusion: Conclusion) -> tuple[Witness, ...]:
    """Return all witnesses that have to be found for the proofs."""
    return tuple(dict.fromkeys(one for fault in conclusion.faults for one in fault.witnesses))


def _highest_in(rows: pa.Table) -> int:
    """Return a bound: no higher version is named, nor made by an operation that expects one.

    What lies beneath a null counts, too: not to look for nulls takes a third of the time, and to
    have room for versions that are not there changes no answer.
    """
    chunks = (chunk for name in ("version", "expected") for chunk in rows.column(name).chunks)
    return max((int(_beneath(chunk).max()) for chunk in chunks if len(chunk)), default=0) + 1


def _beneath(chunk: pa.Array) -> NDArray[np.int64]:
    """Return the numbers as they lie in memory, whether or not they are null."""
    memory = chunk.buffers()[1]
    return np.frombuffer(memory, dtype=np.int64, offset=8 * chunk.offset, count=len(chunk))


def _proof_of(fault: Fault, found: FoundWitnesses, model: Model) -> Proof:
    """Return the proof of a fault by the operations that were found of it."""
    told = [_told(row, model) for row in _rows(fault, found)]
    thing = _thing(fault.witnesses[0].version, model)
    match fault.rule:
        case Violation.TIMES:
            return _of_times(fault, found, model)
        case Violation.TWO_VALUES:
            begins = [thing.further(" begins with nothing")] if len(told) == 1 else []
            return Proof.of(
                "{thing} has one value, and {told}",
                thing=thing,
                told=Proof.joined(" and ", [*begins, *told]),
            )
        case Violation.MADE_TWICE:
            return Proof.of(
                "{thing} was made once, and {told}",
                thing=thing,
                told=Proof.joined(" and ", told),
            )
        case Violation.JUMP:
            return Proof.of(
                "a cas makes the version after the one that it expected, and {told}", told=told[0]
            )
        case Violation.BEFORE_FIRST:
            return Proof.of("there is no such version to be made or read: {told}", told=told[0])
        case Violation.NOBODY:
            return _of_nobody(fault, told, model)


def _rows(fault: Fault, found: FoundWitnesses) -> Iterator[_Row]:
    for witness in fault.witnesses:
        wanted = 2 if witness.kind is ClaimKind.MADE else 1
        for _, row in found.get(witness, ())[:wanted]:
            yield row


def _of_times(fault: Fault, found: FoundWitnesses, model: Model) -> Proof:
    early, *late = fault.witnesses
    return Proof.of(
        "{thing} appeared no earlier than {earliest} s ({told}) and no later than {latest} s "
        "({chain})",
        moments={"earliest": early.number, "latest": late[0].number},
        thing=_thing(early.version, model),
        told=_first(early, found, model),
        chain=Proof.joined(", for ", [_link(one, found, model) for one in late]),
    )


def _link(witness: Witness, found: FoundWitnesses, model: Model) -> Proof:
    told = _first(witness, found, model)
    if witness.kind is not ClaimKind.REFUSED:
        return told
    return Proof.of(
        "{told}, and {thing} was there when that was called",
        told=told,
        thing=_thing(witness.version - 1, model),
    )


def _of_nobody(fault: Fault, told: Sequence[Proof], model: Model) -> Proof:
    first = fault.witnesses[0].version
    thing = _thing(first, model)
    if fault.version_count > 1:
        last = first + fault.version_count - 1 - (model is Model.LOG)
        thing = thing.further(" to {last}", values={"last": last})
    times = [one.number for one in fault.witnesses if one.kind is ClaimKind.BY]
    by = "" if not times else " by no known end" if times[0] >= ENDLESS else " by {by} s"
    distinct = {one.sentence: one for one in told}
    return Proof.of(
        f"{{thing}} had appeared{by} ({{told}}), no operation that is ok made it, and none that "
        "crashed is left that can have: called by then, with its value",
        moments={"by": times[0] if times and times[0] < ENDLESS else None},
        thing=thing,
        told=Proof.joined("; ", distinct.values()),
    )


def _first(witness: Witness, found: FoundWitnesses, model: Model) -> Proof:
    rows = found.get(witness, ())
    return _told(rows[0][1], model) if rows else Proof.of("the operations before")


def _told(row: _Row, model: Model) -> Proof:
    """Return the clause of an operation: what it did, and when."""
    ended = row["return_ns"] is not None and row["return_ns"] < ENDLESS
    did = _did(row, model)
    return Proof.of(
        f"{row['f']} {{operation}} {{did}} in "
        f"[{{call}}, {'{return_} s' if ended else 'no known end'}]",
        operations={"operation": row["index"]},
        moments={"call": row["call_ns"], "return_": row["return_ns"] if ended else None},
        sources=dict.fromkeys(["call", "return_", *(one.name for one in did.facts)], "operation"),
        did=did,
    )


def _did(row: _Row, model: Model) -> Proof:
    value = "nothing" if row["value"] is None else "{value}"
    values = {"value": row["value"]}
    if model is Model.LOG:
        verb = "found" if row["f"] == "read" else "put"
        return Proof.of(
            f"{verb} {value} at offset {{offset}}",
            values=values,
            offsets={"offset": row["version"]},
        )
    if row["outcome"] == Outcome.FAIL:
        return Proof.of("was refused, expecting version {expected}", expected=row["expected"])
    if row["f"] == "read":
        return Proof.of(
            f"found version {{version}} with {value}", values=values, version=row["version"]
        )
    version = row["expected"] + 1 if row["version"] is None else row["version"]
    made = Proof.of(f"made version {{version}} with {value}", values=values, version=version)
    if row["f"] != "cas":
        return made
    return made.further(", expecting {expected}", expected=row["expected"])


def _thing(version: int, model: Model) -> Proof:
    """Return the clause of the version that the fault is about."""
    if model is Model.LOG:
        return Proof.of("offset {fault_offset}", offsets={"fault_offset": version - 1})
    return Proof.of("version {fault_version}", values={"fault_version": version})
