"""Histories made up from a seed, of any length, good or with lies planted: for tests and benches.

Producers send; what is acknowledged, and half of what crashes, is appended to the log of its key,
each producer's records in its order; consumers read every key from its first offset on, in batches;
at the end every key is read completely. Then the lies that the recipe names are planted, each with
the anomalies that it must raise, and no others.

Nothing here is used by a check. Numpy throughout: some millions of records a second.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.generators.draft import (
    ENTRY,
    FAIL,
    INFO,
    LIES,
    NEVER_NS,
    OK,
    READ,
    READING,
    SEND,
    Draft,
    HistoryRecipe,
)
from fencepost.history.manifest import Manifest, Promises, Readers, RunState, write_manifest
from fencepost.history.operation import F, Outcome
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import FAULTS, OPERATIONS, RECORDS
from fencepost.history.seal import note_digests
from fencepost.history.writer import write_tables

_SPACING_NS: Final = 10_000
_LATENCY_NS: Final = 5_000_000
_FS: Final = tuple(F)
_OUTCOMES: Final = (Outcome.OK, Outcome.FAIL, Outcome.INFO)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticRun:
    """A history as tables, and what a check must find in it."""

    operations: pa.Table
    records: pa.Table
    faults: pa.Table
    recipe: HistoryRecipe
    raises: frozenset[str]
    """Checks that must report something; no other may."""


def synthetic_history(recipe: HistoryRecipe) -> SyntheticRun:
    """Return the history of this recipe; the same for the same recipe."""
    return _history(recipe, poll_crashes=recipe.crash_rate > 0)


def synthetic_round(recipe: HistoryRecipe) -> SyntheticRun:
    """Return the same without crashed polls, so that every process can go on afterwards."""
    return _history(recipe, poll_crashes=False)


def _history(recipe: HistoryRecipe, *, poll_crashes: bool) -> SyntheticRun:
    rng = np.random.default_rng(recipe.seed)
    sends, order_ns = _sends(recipe, rng)
    draft = Draft(recipe=recipe, rng=rng, sends=sends, log=_appended(sends, order_ns, recipe, rng))
    lies = [LIES[name] for name in recipe.lies]
    for lie in lies:
        lie.tell_log(draft)
    _read(draft, poll_crashes=poll_crashes)
    for lie in lies:
        lie.tell_readers(draft)
    operations, records = _operations_and_records(draft)
    return SyntheticRun(
        operations=operations,
        records=records,
        faults=_faults(recipe, until_ns=int(sends["call_ns"][-1])),
        recipe=recipe,
        raises=frozenset(name for lie in lies for name in lie.raises),
    )


def write_synthetic_run(run: RunDirectory, recipe: HistoryRecipe) -> SyntheticRun:
    """Make `run` a sealed run of this recipe's history; raise HarnessError if it has one."""
    made = synthetic_history(recipe)
    write_tables(run, operations=made.operations, records=made.records, faults=made.faults)
    end_ns = max(pc.max(made.operations[name]).as_py() or 0 for name in ("call_ns", "return_ns"))
    write_manifest(run.manifest_path, manifest_of(recipe, end_ns=end_ns))
    note_digests(run)
    return made


def manifest_of(recipe: HistoryRecipe, *, end_ns: int) -> Manifest:
    """Return the manifest of a run with the history of this recipe."""
    return Manifest(
        run_id=f"synthetic-{recipe.seed}",
        state=RunState.RECORDED,
        scenario="synthetic",
        title="A made-up history",
        seed=recipe.seed,
        started_at="1970-01-01T00:00:00Z",
        origin_ns=0,
        command="python -c 'from fencepost.generators.kafka import …'",
        fencepost_version="",
        keys=recipe.key_names,
        promises=Promises(
            idempotent=recipe.idempotent,
            acks="all",
            consume="assign",
            readers=tuple(_readers(recipe)),
        ),
        end_ns=end_ns,
    )


def _readers(recipe: HistoryRecipe) -> Iterator[Readers]:
    """Yield the consumers, each of which reads all keys by itself."""
    stride = recipe.producers + recipe.consumers + 1
    for consumer in range(recipe.consumers):
        process = recipe.producers + consumer
        yield Readers(
            name=f"consumer-{consumer}", processes=(process,), stride=stride, poll_max=recipe.batch
        )


def _sends(
    recipe: HistoryRecipe, rng: np.random.Generator
) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """Return all sends by call, and the time at which each reached its leader, if it did."""
    count = recipe.sends
    sends = np.zeros(count, SEND)
    sends["key"] = rng.integers(recipe.keys, size=count)
    sends["process"] = rng.integers(recipe.producers, size=count)
    sends["call_ns"] = np.arange(count) * _SPACING_NS
    for process in range(recipe.producers):
        mine = np.flatnonzero(sends["process"] == process)
        sends["value"][mine] = (process << 40) + np.arange(len(mine))
    # One delay a producer: producers overtake each other, and none of them overtakes itself.
    delay_ns = rng.integers(_LATENCY_NS, size=recipe.producers)
    order_ns = sends["call_ns"] + delay_ns[sends["process"]]
    sends["return_ns"] = order_ns + rng.integers(1, _LATENCY_NS, size=count)
    chance = rng.random(count)
    sends["outcome"][chance < recipe.crash_rate + recipe.fail_rate] = FAIL
    sends["outcome"][chance < recipe.crash_rate] = INFO
    sends["return_ns"][sends["outcome"] == INFO] = NEVER_NS
    return sends, order_ns


def _appended(
    sends: NDArray[np.void],
    order_ns: NDArray[np.int64],
    recipe: HistoryRecipe,
    rng: np.random.Generator,
) -> NDArray[np.void]:
    """Return the log that these sends led to; acknowledged sends learn their offsets."""
    in_log = (sends["outcome"] == OK) | (
        (sends["outcome"] == INFO) & (rng.random(len(sends)) < 0.5)  # noqa: PLR2004 - half of them
    )
    appended = np.flatnonzero(in_log)
    appended = appended[np.lexsort((order_ns[appended], sends["key"][appended]))]
    log = np.zeros(len(appended), ENTRY)
    log["key"], log["value"] = sends["key"][appended], sends["value"][appended]
    log["time_ns"] = order_ns[appended]
    steps = 1 + (rng.random(len(appended)) < recipe.gap_rate)
    for key in range(recipe.keys):
        start, end = np.searchsorted(log["key"], [key, key + 1])
        log["offset"][start:end] = np.cumsum(steps[start:end]) - 1
    sends["offset"] = -1
    sends["offset"][appended] = log["offset"]
    sends["offset"][sends["outcome"] != OK] = -1
    return log


def _read(draft: Draft, *, poll_crashes: bool) -> None:
    """Have every consumer read all of the log, and a final read each key."""
    recipe, log = draft.recipe, draft.log
    first = np.searchsorted(log["key"], log["key"])
    place = np.arange(len(log)) - first
    readings: list[NDArray[np.void]] = []
    reads: list[NDArray[np.void]] = []
    for consumer in range(recipe.consumers):
        shift = consumer * recipe.batch // recipe.consumers
        batch = (place + shift) // recipe.batch
        polls, rows = _polled(draft, batch, consumer=consumer)
        if consumer and poll_crashes:
            polls["outcome"][-1:], polls["return_ns"][-1:] = INFO, NEVER_NS
        rows["reading"] += sum(map(len, readings))
        readings.append(polls)
        reads.append(rows)
    end_ns = max(int(part["return_ns"].max()) for part in (draft.sends, *readings))
    finals, rows = _final_reads(draft, after_ns=end_ns)
    rows["reading"] += sum(map(len, readings))
    draft.readings = np.concatenate([*readings, finals])
    draft.reads = np.concatenate([*reads, rows])


def _polled(
    draft: Draft, batch: NDArray[np.int64], *, consumer: int
) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """Return the polls of a consumer, and their rows: poll n returns batch n of every key."""
    log = draft.log
    by_poll = np.argsort(batch, kind="stable")
    rows = np.zeros(len(log), READ)
    rows["reading"] = batch[by_poll]
    for name in ("key", "offset", "value"):
        rows[name] = log[name][by_poll]
    polls = np.zeros(int(batch.max(initial=-1)) + 1, READING)
    readable_ns = np.zeros(len(polls), np.int64)
    np.maximum.at(readable_ns, batch, log["time_ns"])
    polls["process"] = draft.recipe.producers + consumer
    polls["order"] = np.arange(len(polls)) * 2
    polls["key"] = -1
    polls["return_ns"] = np.maximum.accumulate(readable_ns + _LATENCY_NS) + np.arange(len(polls))
    polls["call_ns"][1:] = polls["return_ns"][:-1]
    return polls, rows


def _final_reads(draft: Draft, *, after_ns: int) -> tuple[NDArray[np.void], NDArray[np.void]]:
    recipe, log = draft.recipe, draft.log
    finals = np.zeros(recipe.keys, READING)
    finals["process"] = recipe.producers + recipe.consumers
    finals["order"] = finals["key"] = np.arange(recipe.keys)
    # Later than anything that a lie may still add at the end of the sends.
    finals["call_ns"] = after_ns + 2 * _LATENCY_NS + np.arange(recipe.keys)
    finals["return_ns"] = finals["call_ns"] + _LATENCY_NS
    rows = np.zeros(len(log), READ)
    rows["reading"] = log["key"]
    for name in ("key", "offset", "value"):
        rows[name] = log[name]
    return finals, rows


def _faults(recipe: HistoryRecipe, *, until_ns: int) -> pa.Table:
    """Return faults that alternate with rest, over the time of the sends."""
    length_ns = until_ns // (2 * recipe.faults + 1)
    rows = [
        {
            "index": number,
            "fault": "kill",
            "targets": ["broker-1"],
            "begin_ns": (2 * number + 1) * length_ns,
            "effect_ns": (2 * number + 1) * length_ns + 1,
            "evidence": "made up",
            "end_ns": (2 * number + 2) * length_ns,
            "heal_evidence": "made up",
        }
        for number in range(recipe.faults)
    ]
    return pa.Table.from_pylist(rows, schema=FAULTS)


def _operations_and_records(draft: Draft) -> tuple[pa.Table, pa.Table]:
    """Return both tables; operations are numbered by their calls (ties: process, its order)."""
    sends, readings = draft.sends, draft.readings
    send_order = np.arange(len(sends))
    order = np.lexsort(
        (
            np.concatenate([send_order, readings["order"]]),
            np.concatenate([sends["process"], readings["process"]]),
            np.concatenate([sends["call_ns"], readings["call_ns"]]),
        )
    )
    index = np.empty(len(order), np.int64)
    index[order] = np.arange(len(order))
    f = np.where(readings["key"] < 0, _FS.index(F.POLL), _FS.index(F.FINAL_READ))
    columns = {
        "process": np.concatenate([sends["process"], readings["process"]]),
        "f": np.concatenate([np.full(len(sends), _FS.index(F.SEND)), f]),
        "key": np.concatenate([sends["key"], readings["key"]]),
        "call_ns": np.concatenate([sends["call_ns"], readings["call_ns"]]),
        "return_ns": np.concatenate([sends["return_ns"], readings["return_ns"]]),
        "outcome": np.concatenate([sends["outcome"], readings["outcome"]]),
        "record_count": np.concatenate(
            [
                np.ones(len(sends), np.int64),
                np.bincount(draft.reads["reading"], minlength=len(readings)),
            ]
        ),
    }
    operations = _operations(draft, {name: column[order] for name, column in columns.items()})
    return operations, _records(draft, index, columns)


def _operations(draft: Draft, columns: dict[str, NDArray[np.int64]]) -> pa.Table:
    failed = columns["outcome"] != OK
    arrays = {
        "index": pa.array(np.arange(len(failed))),
        "process": pa.array(columns["process"]),
        "f": _words(columns["f"], _FS),
        "key": _words(columns["key"], draft.recipe.key_names),
        "call_ns": pa.array(columns["call_ns"]),
        "return_ns": _or_null(columns["return_ns"], NEVER_NS),
        "outcome": _words(columns["outcome"], _OUTCOMES),
        "error": _words(np.where(failed, 0, -1), ("REQUEST_TIMED_OUT",)),
        "record_count": pa.array(columns["record_count"].astype(np.int32)),
    }
    return pa.table(arrays, schema=OPERATIONS)


def _records(
    draft: Draft, index: NDArray[np.int64], columns: dict[str, NDArray[np.int64]]
) -> pa.Table:
    sends, reads = draft.sends, draft.reads
    by_reading = np.argsort(reads["reading"], kind="stable")
    reads = reads[by_reading]
    position = np.arange(len(reads)) - np.searchsorted(reads["reading"], reads["reading"])
    row = np.concatenate([np.arange(len(sends)), len(sends) + reads["reading"]])
    key = np.concatenate([sends["key"], reads["key"]])
    offset = np.concatenate([sends["offset"], reads["offset"]])
    value = np.concatenate([sends["value"], reads["value"]])
    place = np.concatenate([np.zeros(len(sends), np.int64), position])
    order = np.lexsort((place, index[row], key))
    row = row[order]
    arrays = {
        "key": _words(key[order], draft.recipe.key_names),
        "offset": _or_null(offset[order], -1),
        "value": pa.array(value[order]),
        "operation": pa.array(index[row]),
        "position": pa.array(place[order].astype(np.int32)),
        "process": pa.array(columns["process"][row]),
        "f": _words(columns["f"][row], _FS),
        "outcome": _words(columns["outcome"][row], _OUTCOMES),
        "call_ns": pa.array(columns["call_ns"][row]),
        "return_ns": _or_null(columns["return_ns"][row], NEVER_NS),
        "session": pa.array(np.zeros(len(row), np.int32)),
    }
    return pa.table(arrays, schema=RECORDS)


def _words(codes: NDArray[np.int64], words: tuple[str, ...]) -> pa.Array:
    """Return the word of each code; null of code -1."""
    indices = pa.array(codes.astype(np.int32), mask=codes < 0)
    return pa.DictionaryArray.from_arrays(indices, [str(word) for word in words]).cast(pa.string())


def _or_null(numbers: NDArray[np.int64], null: int) -> pa.Array:
    return pa.array(numbers, mask=numbers == null)
