"""Small histories of versioned registers and logs, drawn at random, and all their orders tried.

About half of what is drawn is not linearizable: operations are made up by an object that behaves,
with long and equal times, and then some of their answers and times are changed. `python
small_versions.py 100000` tries so many, whole and in slabs of one to four versions.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.linearizability.claims import ALWAYS, ENDLESS, NOTHING, ModelRows, claims_of
from fencepost.checkers.linearizability.conclusion import Conclusion, SlabRun, concluded, entries
from fencepost.checkers.linearizability.operations import FS
from fencepost.checkers.linearizability.slab import Slab, Summary
from fencepost.checkers.linearizability.versioned import conclusion_of, extent
from fencepost.history.models import Model
from fencepost.history.schema import MODEL_OPERATIONS

NEVER = 1 << 40
LAST = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One operation; its columns as in MODEL_OPERATIONS."""

    f: str
    call: int
    end: int | None
    outcome: str = "ok"
    error: str | None = None
    expected: int | None = None
    version: int | None = None
    value: int | None = None


def table(operations: list[Op]) -> pa.Table:
    """MODEL_OPERATIONS of one key, `k`; the index is the place in the list."""
    rows = [
        {
            "index": index,
            "process": index,
            "key": "k",
            "f": one.f,
            "call_ns": one.call,
            "return_ns": one.end,
            "outcome": one.outcome,
            "error": one.error,
            "expected": one.expected,
            "version": one.version,
            "value": one.value,
            "values": None,
        }
        for index, one in enumerate(operations)
    ]
    return pa.Table.from_pylist(rows, schema=MODEL_OPERATIONS)


def rows_of(operations: list[Op], model: Model) -> ModelRows:
    """The same as arrays, as `model_rows` makes them of the table, and faster."""

    def numbers(name: str, null: int) -> NDArray[np.int64]:
        listed = [getattr(one, name) for one in operations]
        return np.array([null if one is None else one for one in listed], dtype=np.int64)

    outcomes = ("ok", "fail", "info")
    kinds = [FS[model].index(one.f) * 3 + outcomes.index(one.outcome) for one in operations]
    return ModelRows(
        kind=np.array(kinds, dtype=np.int8),
        call=numbers("call", ALWAYS),
        end=numbers("end", ENDLESS),
        expected=numbers("expected", NOTHING),
        version=numbers("version", NOTHING),
        value=numbers("value", NOTHING),
        erred=np.array([one.error is not None for one in operations], dtype=np.bool_),
    )


def drawn(random: Random, model: Model) -> list[Op]:
    """A small history."""
    count = random.randint(2, 9)
    times = sorted(random.randint(0, LAST) for _ in range(count))
    state: list[int | None] = [] if model is Model.LOG else [None]
    made = [_happened(random, model, time, state) for time in times]
    changes = random.choice([0, 2, 4, 7, 10])
    for _ in range(changes):
        place = random.randrange(count)
        made[place] = _changed(random, model, made[place])
    random.shuffle(made)
    return made


def _happened(random: Random, model: Model, time: int, state: list[int | None]) -> Op:
    call = max(0, time - random.choice([0, 0, 1, 1, 3]))
    end = min(LAST, time + random.choice([0, 0, 1, 1, 3]))
    value = random.randint(1, 2)
    if model is Model.LOG:
        return _of_log(random, state, call=call, end=end, value=value)
    version = len(state) - 1
    if random.random() < 0.35:
        return Op(f="read", call=call, end=end, version=version, value=state[-1])
    crashes = random.random() < 0.25
    if random.random() < 0.3:
        if not crashes or random.random() < 0.6:
            state.append(value)
        if crashes:
            return Op(f="write", call=call, end=None, outcome="info", value=value)
        return Op(f="write", call=call, end=end, version=version + 1, value=value)
    expected = version if random.random() < 0.6 else max(0, version + random.randint(-1, 1))
    held = expected == version
    if crashes:
        if held and random.random() < 0.6:
            state.append(value)
        return Op(f="cas", call=call, end=None, outcome="info", expected=expected, value=value)
    if not held:
        return Op(f="cas", call=call, end=end, outcome="fail", expected=expected, value=value)
    state.append(value)
    return Op(f="cas", call=call, end=end, expected=expected, version=version + 1, value=value)


def _of_log(random: Random, state: list[int | None], *, call: int, end: int, value: int) -> Op:
    if random.random() < 0.5:
        offset = random.randint(0, len(state))
        there = state[offset] if offset < len(state) else None
        return Op(f="read", call=call, end=end, version=offset, value=there)
    if random.random() < 0.3:
        if random.random() < 0.6:
            state.append(value)
        return Op(f="append", call=call, end=None, outcome="info", value=value)
    state.append(value)
    return Op(f="append", call=call, end=end, version=len(state) - 1, value=value)


def _changed(random: Random, model: Model, one: Op) -> Op:
    words = ["version", "value", "times", "times", "crash", "refuse", "fail"]
    kept = 3 if model is Model.LOG and random.random() < 0.7 else random.randint(6, 7)
    what = random.choice(words[:kept])
    if what == "version" and one.version is not None:
        version = max(-1, one.version + random.choice([-1, 1]))
        both = one.f == "cas" and random.random() < 0.8
        return replace(one, version=version, expected=version - 1 if both else one.expected)
    if what == "value" and one.value is not None:
        return replace(one, value=3 - one.value)
    if what == "crash" and one.f != "read":
        return replace(one, outcome="info", version=None, end=random.choice([None, one.end]))
    if what == "fail":
        return replace(one, outcome="fail", error="timeout", version=None)
    if what == "refuse" and one.f == "cas" and one.end is not None:
        return replace(one, outcome="fail", error=None, version=None)
    shift = random.randint(-3, 3)
    call = min(LAST, max(0, one.call + shift))
    return replace(one, call=call, end=None if one.end is None else max(call, one.end + shift))


def linearizable(operations: list[Op], model: Model) -> bool:
    """Whether some order explains all answers: all are tried."""
    seen: set[tuple[frozenset[int], tuple[object, ...]]] = set()
    must = frozenset(i for i, one in enumerate(operations) if _owes(one))
    may = frozenset(
        i for i, one in enumerate(operations) if one.outcome == "info" and one.f != "read"
    )

    def tried(left: frozenset[int], state: tuple[object, ...]) -> bool:
        if not left & must:
            return True
        if (left, state) in seen:
            return False
        seen.add((left, state))
        first = min(_end(operations[i]) for i in left)
        return any(
            tried(left - {i}, after)
            for i in left
            if operations[i].call <= first
            for after in _after(operations[i], state, model)
        )

    return tried(must | may, () if model is Model.LOG else (0, None))


def _owes(one: Op) -> bool:
    refused = one.outcome == "fail" and one.f == "cas" and one.error is None
    return one.outcome == "ok" or refused


def _end(one: Op) -> int:
    return NEVER if one.outcome == "info" or one.end is None else one.end


def _after(one: Op, state: tuple[object, ...], model: Model) -> Iterator[tuple[object, ...]]:
    if model is Model.LOG:
        yield from _after_log(one, state)
        return
    version, value = state
    assert isinstance(version, int)
    if one.outcome == "fail":
        if one.expected != version:
            yield state
    elif one.f == "read":
        if (one.version, one.value) == (version, value):
            yield state
    elif one.f != "write" and one.expected != version:
        return
    elif one.outcome == "info" or one.version == version + 1:
        yield (version + 1, one.value)


def _after_log(one: Op, state: tuple[object, ...]) -> Iterator[tuple[object, ...]]:
    if one.f == "append":
        if one.outcome == "info" or one.version == len(state):
            yield (*state, one.value)
        return
    assert one.version is not None
    inside = 0 <= one.version < len(state)
    if (state[one.version] if inside else None) == one.value:
        yield state


def whole(operations: list[Op], model: Model) -> Conclusion:
    """What the kernel says."""
    return conclusion_of(table(operations), model)


def in_slabs(operations: list[Op], model: Model, *, versions: int) -> Conclusion:
    """What the kernel says of slabs of so many versions, taken in two pieces."""
    limit = len(operations)
    pieces = [
        claims_of(rows_of(some, model), model)
        for some in (operations[: limit // 2], operations[limit // 2 :])
    ]
    bounds = [*range(0, extent(limit + 1, limit), versions), extent(limit + 1, limit)]
    slabs = []
    for first, end in pairwise(bounds):
        slab = Slab(first, end, limit=limit)
        for piece in pieces:
            slab.add(piece, owned=first == 0)
        slabs.append(slab)
    runs = [SlabRun.first(slab.summary()) for slab in slabs]
    while asked := entries(runs):
        for place, entry in asked.items():
            runs[place] = runs[place].again(slabs[place].summary(entry), entry)
            assert runs[place].again_count <= 2
    summaries: list[Summary] = [run.summary for run in runs]
    return concluded(summaries)


def main(count: int) -> None:
    """Try so many histories of each model, and say how many were not linearizable."""
    for model in (Model.VERSIONED_REGISTER, Model.LOG):
        random, wrong, refused = Random(f"{model} {count}"), 0, 0
        for number in range(count):
            operations = drawn(random, model)
            truth = linearizable(operations, model)
            wrong += not truth
            refused += any(one.outcome == "fail" and one.error is None for one in operations)
            versions = random.randint(1, 4)
            for found in (
                whole(operations, model),
                in_slabs(operations, model, versions=versions),
            ):
                assert (found.fault_count == 0) == truth, (number, operations, found, truth)
                assert not found.doubt, (number, operations, found)
        print(f"{model}: {count} agree, {wrong} not linearizable, {refused} with refusals")  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]))
