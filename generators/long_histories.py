"""Synthetic histories of any length, written as they are made: for benches and for large keys.

A *round* is a good history by a recipe (`generators.kafka`), small enough for memory. A long
history is the same round again and again: each begins when the last one has returned, where it left
off, with the next values, offsets and operations. At the end every key is read completely, once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.generators.draft import HistoryRecipe
from fencepost.generators.kafka import manifest_of, synthetic_round
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import write_manifest
from fencepost.history.operation import F
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import FAULTS, RECORD_BUCKET_COUNT, SAMPLES
from fencepost.history.seal import note_digests
from fencepost.history.table_file import PartFiles, TableFile
from fencepost.history.writer import bucket_file, bucket_of, new_history

_ROUND_SENDS: Final = 250_000
_FINAL_NS: Final = 1_000_000_000
_VALUE_BITS: Final = 40
"""The bits by which a producer's number is shifted to give the first of its values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Key:
    """The rows of one key in the first round."""

    records: pa.Table
    final_rows: pa.Table
    """The rows of its final read."""
    offset_count: int
    """Offsets from its first to its last, gaps included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """The first round; words are dictionaries."""

    operations: pa.Table
    finals: pa.Table
    """The operations of the final reads, one a key."""
    keys: Mapping[str, _Key]
    value_count: NDArray[np.int64]
    """Values that each producer sent."""
    length_ns: int


def write_long_synthetic_run(
    run: RunDirectory, recipe: HistoryRecipe, *, round_sends: int = _ROUND_SENDS
) -> int:
    """Make `run` a sealed run of at least `recipe.sends` sends; return its number of records.

    The recipe may not name lies. Memory holds a round and a row group, whatever the length. Raises
    HarnessError if the run has a history, or if the disk refuses.
    """
    assert not recipe.lies, f"a long history tells no lies: {recipe.lies}"
    if run.history.exists():
        raise HarnessError(f"{run.history} exists: a sealed history is not written again")
    rounds = -(-recipe.sends // round_sends)
    first = _first_round(replace(recipe, sends=min(round_sends, recipe.sends)))
    run.root.mkdir(parents=True, exist_ok=True)
    record_count = 0
    with new_history(run) as history:
        with PartFiles(history / "operations", "operations") as parts:
            for operations in _operations(first, rounds):
                parts.add(operations)
        for bucket in range(RECORD_BUCKET_COUNT):
            with TableFile(bucket_file(history, bucket), "records") as file:
                for key in (key for key in first.keys if bucket_of(key) == bucket):
                    file.end_row_group()
                    for records in _records(first, key, rounds):
                        record_count += records.num_rows
                        file.add(records)
        for name, schema in (("faults", FAULTS), ("samples", SAMPLES)):
            with TableFile(history / f"{name}.parquet", name) as file:
                file.add(schema.empty_table())
        end_ns = rounds * first.length_ns + _FINAL_NS
        write_manifest(run.manifest_path, manifest_of(recipe, end_ns=end_ns))
    note_digests(run)
    return record_count


def _first_round(recipe: HistoryRecipe) -> _Round:
    made = synthetic_round(recipe)
    operations, records = _encoded(made.operations), _encoded(made.records)
    final = pc.equal(operations["f"].cast(pa.string()), F.FINAL_READ)
    by_key = {key: _of_key(records, key) for key in recipe.key_names}
    sent = records.filter(pc.equal(records["f"].cast(pa.string()), F.SEND))
    producer = sent["value"].to_numpy() >> _VALUE_BITS
    before = operations.filter(pc.invert(final))
    latest = max(pc.max(before[name]).as_py() for name in ("call_ns", "return_ns"))
    return _Round(
        operations=before,
        finals=operations.filter(final),
        keys=by_key,
        value_count=np.bincount(producer, minlength=recipe.producers),
        length_ns=latest + 1,
    )


def _of_key(records: pa.Table, key: str) -> _Key:
    mine = records.filter(pc.equal(records["key"].cast(pa.string()), key))
    final = pc.equal(mine["f"].cast(pa.string()), F.FINAL_READ)
    final_rows = mine.filter(final)
    count = int(pc.max(final_rows["offset"]).as_py()) + 1 if final_rows.num_rows else 0
    return _Key(records=mine.filter(pc.invert(final)), final_rows=final_rows, offset_count=count)


def _operations(first: _Round, rounds: int) -> Iterator[pa.Table]:
    count = first.operations.num_rows
    for number in range(rounds):
        shift_ns = number * first.length_ns
        yield _shifted(first.operations, index=number * count, call_ns=shift_ns, return_ns=shift_ns)
    columns = {
        "index": rounds * count + np.arange(first.finals.num_rows),
        "call_ns": _final_calls(first, rounds),
        "return_ns": _final_calls(first, rounds) + 1,
        "record_count": first.finals["record_count"].to_numpy() * np.int32(rounds),
    }
    yield _with(first.finals, columns)


def _records(first: _Round, key: str, rounds: int) -> Iterator[pa.Table]:
    """Yield all rows of a key: those of the rounds, and of its final read."""
    mine = first.keys[key]
    count = first.operations.num_rows
    for number in range(rounds):
        shift_ns = number * first.length_ns
        yield _renewed(
            _shifted(mine.records, operation=number * count, call_ns=shift_ns, return_ns=shift_ns),
            first,
            mine,
            number,
        )
    place = list(first.keys).index(key)
    size = mine.final_rows.num_rows
    for number in range(rounds):
        columns = {
            "operation": np.full(size, rounds * count + place),
            "position": np.arange(number * size, (number + 1) * size, dtype=np.int32),
            "call_ns": np.full(size, _final_calls(first, rounds)[place]),
            "return_ns": np.full(size, _final_calls(first, rounds)[place] + 1),
        }
        yield _renewed(_with(mine.final_rows, columns), first, mine, number)


def _renewed(records: pa.Table, first: _Round, key: _Key, number: int) -> pa.Table:
    """Return the next offsets and values, in round `number`."""
    value = records["value"].to_numpy()
    later = value + number * first.value_count[value >> _VALUE_BITS]
    return _with(_shifted(records, offset=number * key.offset_count), {"value": later})


def _final_calls(first: _Round, rounds: int) -> NDArray[np.int64]:
    """Return the time at which each final read is called."""
    return rounds * first.length_ns + _FINAL_NS // 2 + 2 * np.arange(first.finals.num_rows)


def _shifted(table: pa.Table, **shifts: int) -> pa.Table:
    for name, shift in shifts.items():
        place = table.column_names.index(name)
        table = table.set_column(place, table.schema.field(name), pc.add(table[name], shift))
    return table


def _with(table: pa.Table, columns: Mapping[str, NDArray[np.int64]]) -> pa.Table:
    for name, column in columns.items():
        place = table.column_names.index(name)
        table = table.set_column(place, table.schema.field(name), pa.array(column))
    return table


def _encoded(table: pa.Table) -> pa.Table:
    """Return the table with words as dictionaries, and each column in one piece."""
    fields = [
        field.with_type(pa.dictionary(pa.int32(), field.type))
        if pa.types.is_string(field.type)
        else field
        for field in table.schema
    ]
    return table.combine_chunks().cast(pa.schema(fields))
