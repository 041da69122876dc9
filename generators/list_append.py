"""List-append histories made up from a seed, of any length, serializable or with lies planted.

Transactions take effect one after the other, each at one moment between its call and its return, so
that the history is strictly serializable. Some crash, half of which took effect; some fail, none of
which did. A key is appended to some dozens of times and then left alone, as in Elle's generator, so
that lists stay short and the history grows with its transactions. A lie is a handful of further
transactions on keys of their own, somewhere in the middle: the smallest history of its anomaly,
written a transaction a line: when it was called and returned (µs), its outcome, and its steps;
`x+1` appends 1 to x, `x=1.2` reads [1 2], `x=` reads []. Those of one letter are of one process.

The contract of sealing (`history.schema.MICRO_OPERATIONS`), which `pieces` keeps: the rows of a key
follow each other by transaction and position; transactions are numbered from 0 in the order of
their calls; the first step of a transaction has position 0, whatever its key.

Nothing here is used by a check. Numpy throughout: about half a million transactions a second.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.history.manifest import Manifest, Promises, RunState
from fencepost.history.model_tables import by_bucket
from fencepost.history.model_writer import write_model_history
from fencepost.history.models import Isolation, Model
from fencepost.history.operation import Outcome
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import MICRO_OPERATIONS

Ints = NDArray[np.int64]

_SPACING_NS: Final = 20_000
_OK, _FAIL, _INFO = range(3)
_OUTCOMES: Final = (Outcome.OK, Outcome.FAIL, Outcome.INFO)
_STEPS_MAX: Final = 4
_NEVER_NS: Final = -1
Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListAppendRecipe:
    """The properties of the history to make."""

    transactions: int
    seed: int = 0
    clients: int = 20
    keys_open: int = 10
    """The number of keys that are in use at a time."""
    steps_a_key: int = 48
    """The steps of a key, about half of them appends."""
    crash_rate: float = 0.01
    fail_rate: float = 0.01
    isolation: Isolation = Isolation.STRICT_SERIALIZABLE
    lies: tuple[str, ...] = ()
    """The names in `LIES` to plant, each once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongHistory:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticLists:
    """A history as one table, and what a check must find in it."""

    table: pa.Table
    """MICRO_OPERATIONS, by key, transaction and position."""
    recipe: ListAppendRecipe
    lies: tuple[WrongHistory, ...]


def synthetic_transactions(recipe: ListAppendRecipe) -> SyntheticLists:
    """Return the history of this recipe; the same for the same recipe."""
    rng = np.random.default_rng(recipe.seed)
    lies = tuple(LIES[name] for name in recipe.lies)
    table = _table(_drawn(recipe, rng), recipe)
    for number, lie in enumerate(lies):
        moment_ns = int(rng.integers(1, max(2, recipe.transactions))) * _SPACING_NS
        planted = lie.rows(number, moment_ns=moment_ns, first_process=-1 - 10 * number)
        table = pa.concat_tables([table, pa.Table.from_pylist(planted, schema=MICRO_OPERATIONS)])
    return SyntheticLists(table=_numbered(table), recipe=recipe, lies=lies)


def write_synthetic_transactions(run: RunDirectory, recipe: ListAppendRecipe) -> SyntheticLists:
    """Make `run` a sealed run of this recipe's history; raise HarnessError if it has one."""
    made = synthetic_transactions(recipe)
    manifest = Manifest(
        run_id=f"synthetic-{recipe.seed}",
        state=RunState.RECORDED,
        scenario="synthetic",
        title="Transactions made up",
        seed=recipe.seed,
        started_at="1970-01-01T00:00:00Z",
        origin_ns=0,
        command="python -c 'from fencepost.generators.list_append import …'",
        fencepost_version="",
        model=Model.LIST_APPEND.value,
        isolation=recipe.isolation.value,
        promises=Promises(idempotent=False, acks="all", consume="assign"),
    )
    write_model_history(run, manifest, pieces(made.table))
    return made


def pieces(table: pa.Table) -> Iterator[tuple[str, list[pa.Table]]]:
    """Yield each key with its rows, as `history.model_writer` takes them, bucket by bucket."""
    encoded = table["key"].combine_chunks().dictionary_encode()
    names = encoded.dictionary.to_pylist()
    codes = encoded.indices.to_numpy()
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    ends = np.append(starts[1:], len(codes))
    place = {
        names[codes[start]]: slice(start, end) for start, end in zip(starts, ends, strict=True)
    }
    for name in by_bucket(names):
        rows = place[name]
        yield name, [table.slice(rows.start, rows.stop - rows.start)]


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


def _cycle(kind: str, level: Isolation, text: str) -> WrongHistory:
    return WrongHistory(check="dependency-cycle", level=level, kind=kind, text=text)


def _odd(check: str, level: Isolation, text: str) -> WrongHistory:
    return WrongHistory(check=check, level=level, kind="", text=text)


_WRITES_CROSS: Final = "A {} ok x+1 y+1\nB {} ok x+2 y+2\nC {} ok x=1.2 y=2.1"
_STRICT: Final = Isolation.STRICT_SERIALIZABLE

LIES: Final[Mapping[str, WrongHistory]] = {
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """Transactions in the order of their effects, and their steps."""

    process: Ints
    call_ns: Ints
    return_ns: Ints
    outcome: Ints
    happened: NDArray[np.bool_]
    transaction: Ints
    """The transaction of each step."""
    position: Ints
    key: Ints
    appends: NDArray[np.bool_]


def _drawn(recipe: ListAppendRecipe, rng: np.random.Generator) -> _Drawn:
    count = recipe.transactions
    chance = rng.random(count)
    outcome = np.full(count, _OK)
    outcome[chance < recipe.crash_rate + recipe.fail_rate] = _FAIL
    outcome[chance < recipe.crash_rate] = _INFO
    happened = (outcome == _OK) | ((outcome == _INFO) & (rng.random(count) < 0.5))  # noqa: PLR2004 - half
    effect_ns = (1 + np.arange(count)) * _SPACING_NS
    # A client has its next transaction one round later: neither reaches over half of the round.
    reach_ns = recipe.clients * _SPACING_NS // 2
    lengths = rng.integers(1, _STEPS_MAX + 1, size=count)
    transaction = np.repeat(np.arange(count), lengths)
    steps = len(transaction)
    block = np.arange(steps) // (recipe.keys_open * recipe.steps_a_key)
    return _Drawn(
        process=_processes(outcome, recipe.clients),
        call_ns=effect_ns - rng.integers(0, reach_ns, size=count),
        return_ns=effect_ns + rng.integers(0, reach_ns, size=count),
        outcome=outcome,
        happened=happened,
        transaction=transaction,
        position=np.arange(steps) - np.repeat(np.cumsum(lengths) - lengths, lengths),
        key=block * recipe.keys_open + rng.integers(recipe.keys_open, size=steps),
        appends=rng.random(steps) < 0.5,  # noqa: PLR2004 - half of them
    )


def _processes(outcome: Ints, clients: int) -> Ints:
    """Draw the processes, round robin; a client that crashed goes on as another process."""
    process = np.arange(len(outcome)) % clients
    for client in range(clients):
        crashed = outcome[client::clients] == _INFO
        process[client::clients] += clients * (np.cumsum(crashed) - crashed)
    return process


def _table(drawn: _Drawn, recipe: ListAppendRecipe) -> pa.Table:
    """Return every step by key, with its append or read; transactions are not yet renumbered."""
    del recipe
    order = np.argsort(drawn.key, kind="stable")
    key, transaction, appends = drawn.key[order], drawn.transaction[order], drawn.appends[order]
    first = np.searchsorted(key, key)
    value: Ints = np.cumsum(appends) - np.where(first > 0, np.cumsum(appends)[first - 1], 0)
    there = np.flatnonzero(appends & drawn.happened[transaction])
    outcome = drawn.outcome[transaction]
    reads = ~appends & (outcome == _OK)
    # The list of a key at a step: what is there of the key before it.
    upto = np.searchsorted(there, np.arange(len(key)))
    since = np.searchsorted(there, first)
    length = np.where(reads, upto - since, 0)
    offsets = np.concatenate([[0], np.cumsum(length)])
    within = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], length)
    elements: Ints = value[there[np.repeat(since, length) + within]]
    returned = drawn.return_ns[transaction]
    columns = {
        "transaction": transaction,
        "position": drawn.position[order].astype(np.int32),
        "process": drawn.process[transaction],
        "key": pa.DictionaryArray.from_arrays(
            np.cumsum(np.diff(key, prepend=key[:1]) != 0).astype(np.int32),
            [f"k{one}" for one in np.unique(key).tolist()],
        ).cast(pa.string()),
        "f": _words(np.where(appends, 0, 1), ("append", "read")),
        "call_ns": drawn.call_ns[transaction],
        "return_ns": pa.array(returned, mask=outcome == _INFO),
        "outcome": _words(outcome, _OUTCOMES),
        "error": _words(outcome, (None, "aborted", "REQUEST_TIMED_OUT")),
        "value": pa.array(value, mask=~appends),
        "values": pa.ListArray.from_arrays(
            offsets.astype(np.int32), elements, mask=pa.array(~reads)
        ),
    }
    return pa.table(columns).select(MICRO_OPERATIONS.names).cast(MICRO_OPERATIONS)


def _words(codes: Ints, words: tuple[str | None, ...]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(codes.astype(np.int32), list(words)).cast(pa.string())


def _numbered(table: pa.Table) -> pa.Table:
    """Return the transactions numbered in the order of their calls, rows in that of the seal."""
    old, call_ns = table["transaction"].to_numpy(), table["call_ns"].to_numpy()
    known, first, place = np.unique(old, return_index=True, return_inverse=True)
    number = np.empty(len(known), np.int64)
    number[np.lexsort((known, call_ns[first]))] = np.arange(len(known))
    column = table.column_names.index("transaction")
    field = MICRO_OPERATIONS.field("transaction")
    table = table.set_column(column, field, pa.array(number[place]))
    key = table["key"].combine_chunks().dictionary_encode().indices.to_numpy()
    position = table["position"].to_numpy()
    return table.take(pa.array(np.lexsort((position, number[place], key))))
