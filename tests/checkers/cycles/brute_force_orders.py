"""Transactions over lists, judged by trying every order: slow, obvious, and of no kernel's making.

Strict serializability and serializability: some order of the transactions that took place (all ok
ones, any of the crashed ones) explains every read, each transaction at once on the lists as they
are. Snapshot isolation: every transaction reads the lists as they were at some moment before its
commit, and no other committed an append to a list of its own in between.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, permutations, product
from typing import Final

import pyarrow as pa

from fencepost.history.schema import MICRO_OPERATIONS


@dataclass(frozen=True, slots=True)
class Step:
    """An append of a value, or (value None) a read of a list; None: not known."""

    key: str
    value: int | None
    read: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Transaction:
    process: int
    call: int
    end: int | None
    outcome: str
    steps: tuple[Step, ...]


Lists = dict[str, tuple[int, ...]]


def is_serializable(history: Sequence[Transaction], *, strict: bool) -> bool:
    return any(_explains(order, strict=strict) for order in _orders(history))


def is_snapshot(history: Sequence[Transaction]) -> bool:
    """Commits in some order; each reads after some number of the commits before its own."""
    return any(
        _explains_snapshots(order, begins)
        for order in _orders(history)
        for begins in product(*(range(place + 1) for place in range(len(order))))
    )


def _orders(history: Sequence[Transaction]) -> Iterator[tuple[Transaction, ...]]:
    sure = [one for one in history if one.outcome == "ok"]
    maybe = [one for one in history if one.outcome == "info"]
    subsets = chain.from_iterable(combinations(maybe, n) for n in range(len(maybe) + 1))
    for some in subsets:
        yield from permutations([*sure, *some])


def _explains(order: Sequence[Transaction], *, strict: bool) -> bool:
    if strict and any(
        later.end is not None and later.end < earlier.call
        for place, earlier in enumerate(order)
        for later in order[place + 1 :]
    ):
        return False
    if strict and not _keeps_processes(order):
        return False
    lists: Lists = {}
    for transaction in order:
        after = _applied(lists, transaction)
        if after is None:
            return False
        lists = after
    return True


def _keeps_processes(order: Sequence[Transaction]) -> bool:
    """A process's transactions, of which the earlier one is ok, in the order it called them."""
    return not any(
        later.process == earlier.process
        and later.outcome == "ok"
        and later.call < earlier.call
        and later.end is not None
        and later.end <= earlier.call
        for place, earlier in enumerate(order)
        for later in order[place + 1 :]
    )


def _applied(lists: Lists, transaction: Transaction) -> Lists | None:
    """The lists after the transaction; None if it did not read what is there."""
    lists = dict(lists)
    for step in transaction.steps:
        there = lists.get(step.key, ())
        if step.value is not None:
            lists[step.key] = (*there, step.value)
        elif transaction.outcome == "ok" and step.read is not None and step.read != there:
            return None
    return lists


def _explains_snapshots(order: Sequence[Transaction], begins: Sequence[int]) -> bool:
    versions: list[Lists] = [{}]
    for place, transaction in enumerate(order):
        written = {step.key for step in transaction.steps if step.value is not None}
        between = order[begins[place] : place]
        if any(
            step.key in written and step.value is not None for one in between for step in one.steps
        ):
            return False
        after = _applied(versions[begins[place]], transaction)
        if after is None:
            return False
        versions.append({**versions[-1], **{key: after[key] for key in written}})
    return True


_KEYS: Final = ("x", "y")
_APART: Final = 1000
"""Between the times and the processes of histories in one table."""


def random_history(seed: int, *, final_reads: bool = False) -> list[Transaction]:
    """A few transactions, played on lists with some carelessness, and some reads tampered with."""
    rng = random.Random(seed)
    count = rng.randint(2, 4)
    care = rng.choice(["serial", "serial", "snapshot", "none", "none"])
    made: list[Transaction] = []
    lists: Lists = {}
    past: list[Lists] = [{}]
    value = 0
    clock = 0
    for number in range(count):
        outcome = rng.choices(["ok", "info", "fail"], [8, 1, 1])[0]
        happened = outcome == "ok" or (outcome == "info" and rng.random() < 0.5)
        view = dict(lists if care == "serial" else rng.choice(past))
        own: Lists = {}
        steps: list[Step] = []
        for _ in range(rng.randint(1, 3)):
            key = rng.choice(_KEYS)
            there = view.get(key, ())
            if rng.random() < 0.5:
                value += 1
                steps.append(Step(key, value))
                own[key] = (*own.get(key, ()), value)
                view[key] = (*there, value)
            else:
                if care == "none" and rng.random() < 0.2:
                    there = rng.choice(past).get(key, ())
                steps.append(Step(key, None, _tampered(there, value, rng)))
        if happened or (care == "none" and rng.random() < 0.3):
            lists = dict(lists)
            for key, values in own.items():
                lists[key] = (*lists.get(key, ()), *values)
            past.append(lists)
        clock += rng.randint(0, 3)
        reach = rng.choice([0, 1, 4])
        made.append(
            Transaction(
                process=rng.choice([0, number + 1]) if outcome != "info" else number + 10,
                call=clock - rng.randint(0, reach),
                end=None if outcome == "info" else clock + rng.randint(0, reach),
                outcome=outcome,
                steps=tuple(steps),
            )
        )
    made = _without_overlaps(made)
    if final_reads:
        steps = [Step(key, None, lists.get(key, ())) for key in _KEYS]
        made.append(Transaction(99, clock, clock + 9, "ok", tuple(steps)))
    return sorted(made, key=lambda one: one.call)


def _without_overlaps(made: Sequence[Transaction]) -> list[Transaction]:
    """A process has one transaction open at a time: an overlapping one is of another process."""
    kept: list[Transaction] = []
    for number, one in enumerate(made):
        overlaps = any(
            other.process == one.process
            and (other.end is None or other.end > one.call or other.call >= one.call)
            for other in kept
        )
        process = 20 + number if overlaps else one.process
        kept.append(Transaction(process, one.call, one.end, one.outcome, one.steps))
    return kept


def _tampered(there: tuple[int, ...], last: int, rng: random.Random) -> tuple[int, ...]:
    chance = rng.random()
    if there and chance < 0.04:
        return there[:-1]
    if there and chance < 0.06:
        return there[::-1]
    if chance < 0.07:
        return (*there, rng.randint(1, last + 1))
    return there


def table_of(*histories: Sequence[Transaction]) -> pa.Table:
    """MICRO_OPERATIONS of histories, each after the one before and on keys of its own.

    Each is in the order of its calls. Keys are `number of the history:key`; the transactions of the
    first are numbered from 0, and so on.
    """
    rows: list[dict[str, object]] = []
    first = 0
    for number, history in enumerate(histories):
        rows += _rows(history, number=number, first=first)
        first += len(history)
    rows.sort(key=lambda row: (row["key"], row["transaction"], row["position"]))
    return pa.Table.from_pylist(rows, schema=MICRO_OPERATIONS)


def _rows(
    history: Sequence[Transaction], *, number: int, first: int
) -> Iterator[dict[str, object]]:
    since = number * _APART
    yield from (
        {
            "transaction": first + place,
            "position": position,
            "process": since + one.process,
            "key": f"{number}:{step.key}",
            "f": "read" if step.value is None else "append",
            "call_ns": since + one.call,
            "return_ns": None if one.end is None else since + one.end,
            "outcome": one.outcome,
            "error": None if one.outcome == "ok" else "REQUEST_TIMED_OUT",
            "value": step.value,
            "values": step.read if step.value is None and one.outcome == "ok" else None,
        }
        for place, one in enumerate(history)
        for position, step in enumerate(one.steps)
    )
