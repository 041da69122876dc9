"""The sums of one sealed file, for `whole-run`: made where the file lies, in one pass over it.

A file is read batch by batch, of the few columns that are compared, so that the memory is that of a
batch; of a bucket of records the values sent are in memory, 8 bytes each (16 while they are put
together).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.grounds.repeated import other_copy, repeated_by
from fencepost.checkers.grounds.transactions_and_sends import (
    SENDS,
    self_contradiction,
    unlike_offsets,
    unlike_sends,
)
from fencepost.checkers.runner.tables import SealedFile, opened, source_in
from fencepost.history.failure import HarnessError
from fencepost.history.operation import F
from fencepost.history.schema import OPEN_TABLES, TABLES
from fencepost.history.writer import bucket_of

TOLD: Final[Mapping[str, tuple[str, ...]]] = {
    "describes": ("partition", "leader", "isr"),
    "metadata_log": ("topic", "partition", "leader", "isr"),
    "replica_records": ("value",),
}
"""The nullable columns of which no table of brokers' partitions is without a value."""

_SUBJECTS: Final[Mapping[str, tuple[str, str]]] = {
    "describes": ("error", "NONE"),
    "metadata_log": ("type", "PartitionRecord"),
}
"""The column and value of the rows that are about a partition; a cluster that lost its metadata
has none."""

_NUMBERS: Final[Mapping[str, tuple[str, str]]] = {
    "faults": ("index", "begin_ns"),
    "describes": ("read", "call_ns"),
    "metadata_writes": ("index", "call_ns"),
    "partition_writes": ("index", "call_ns"),
    "transactions": ("index", "begin_ns"),
    "group_offsets": ("index", "call_ns"),
}
"""The column that numbers the rows from 0 on, several in a row alike, and that of their begin."""

_NO_VALUE: Final = int(np.iinfo(np.int64).min)
"""Stands for a record whose value is not one of ours: no client sends it."""

READ_ELSEWHERE: Final = ("operations", "records", "wire", "replica_records", *OPEN_TABLES)
"""The tables that are large, and are always compared with their digests by those who read them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSurvey:
    """The sums of a file."""

    table: str
    row_count: int
    blank: tuple[str, ...] = ()
    """Columns of `TOLD` without any value."""
    disorder: str = ""
    """Where the rows are not as the schema states; empty if nowhere."""
    records: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(key, node) → records, that the replicas were counted to have or that are there."""
    span_ns: tuple[int, int] | None = None
    """The least and the greatest of all times in the file; None if it has none."""
    rows_by_f: Mapping[str, int] = field(default_factory=dict)
    """Of a file of records: the rows of each kind of operation."""
    strange: str = ""
    """A record on a disk without a send by any client, in words; empty: all have one."""
    repeated: int | None = None
    """Of a file of records the sum of what they repeat of their operations."""
    copies: str = ""
    """Where copies of the metadata log differ in content and not in digest; empty if nowhere."""
    bounds: Mapping[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    """(key, node) → the first offset of a log and the one behind its last record, that the replicas
    were read to have or that the records there have. None of damaged logs and of empty ones."""
    contradiction: str = ""
    """Where transactions and what belongs to them contradict each other; empty if nowhere."""


def survey_of(file: SealedFile) -> FileSurvey:
    """Survey a sealed file. Raises HarnessError if it is missing, or is not what was sealed."""
    table = table_of(file.path)
    if table in READ_ELSEWHERE:
        file = replace(file, digest="")
    with opened(file, table) as parquet:
        survey = FileSurvey(
            table=table,
            row_count=int(parquet.metadata.num_rows),
            blank=tuple(one for one in TOLD.get(table, ()) if _is_blank(parquet.metadata, one)),
            span_ns=_span_ns(parquet.metadata),
        )
    there = SealedFile(path=file.path, digest="")
    if survey.blank and table in _SUBJECTS and not _has_row(there, table, *_SUBJECTS[table]):
        survey = replace(survey, blank=())
    if table in _NUMBERS:
        survey = replace(survey, disorder=_misnumbered(there, table))
        return replace(survey, contradiction=_unlike_transactions(there, table))
    if table == "metadata_log":
        copies = other_copy(source_in(there, table))
        return replace(survey, disorder=_jumbled(there), copies=copies)
    if table == "records":
        unlike = _unlike_transactions(there, table)
        repeated = repeated_by(source_in(there, table))
        survey = replace(survey, rows_by_f=_rows_by_f(there), repeated=repeated)
        return replace(survey, contradiction=unlike)
    if table == "replicas":
        return replace(survey, records=_records(there, table), bounds=_counted_bounds(there))
    if table == "replica_records":
        survey = replace(survey, records=_records(there, table), bounds=_bounds(there))
        return replace(survey, strange=_strange(there))
    return survey


def _has_row(file: SealedFile, table: str, column: str, value: str) -> bool:
    """Return whether some row has this value."""
    batches = source_in(file, table)((column,))
    return any(pc.any(pc.equal(batch.column(column), value)).as_py() for batch in batches)


def _is_blank(metadata: Any, column: str) -> bool:
    """Return whether a column, or a list of one, has no value in any row."""
    for group in range(metadata.num_row_groups):
        told = metadata.row_group(group)
        for place in range(told.num_columns):
            leaf = told.column(place)
            if leaf.path_in_schema.split(".")[0] != column:
                continue
            known = leaf.statistics
            if known is None or not known.has_null_count or known.null_count < leaf.num_values:
                return False
    return True


def _span_ns(metadata: Any) -> tuple[int, int] | None:
    """Return the bounds of all times, by the file's statistics."""
    told = [
        leaf.statistics
        for group in range(metadata.num_row_groups)
        for leaf in map(metadata.row_group(group).column, range(metadata.num_columns))
        if leaf.path_in_schema.endswith("_ns") and leaf.statistics is not None
    ]
    known = [one for one in told if one.has_min_max]
    return (min(one.min for one in known), max(one.max for one in known)) if known else None


def _misnumbered(file: SealedFile, table: str) -> str:
    number_column, begin_column = _NUMBERS[table]
    last = -1
    end_column = "end_ns" if table == "faults" else "return_ns"
    for batch in source_in(file, table)((number_column, begin_column, end_column)):
        number = np.append(last, batch.column(number_column).to_numpy())
        steps = np.diff(number)
        if np.any(wrong := ~np.isin(steps, (0, 1) if table == "describes" else (1,))):
            place = int(np.argmax(wrong))
            return f"{number_column} {number[place + 1]} comes behind {number[place]}"
        begin_ns = batch.column(begin_column)
        early = pc.fill_null(pc.less(batch.column(end_column), begin_ns), False).to_numpy(False)
        if np.any(early):
            return f"{number_column} {number[int(np.argmax(early)) + 1]} ends before it began"
        last = int(number[-1])
    return ""


def _jumbled(file: SealedFile) -> str:
    """Return where the rows of a metadata log are not in the order of node and offset."""
    done: set[str] = set()
    node, offset = "", -1
    for batch in source_in(file, "metadata_log")(("node", "metadata_offset")):
        if not batch.num_rows:
            continue
        encoded = batch.column("node").dictionary_encode()
        codes, words = encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
        offsets = batch.column("metadata_offset").to_numpy()
        starts = np.flatnonzero(np.diff(codes, prepend=-1)).tolist()
        for start, end in zip(starts, [*starts[1:], len(codes)], strict=True):
            name = words[codes[start]]
            if name != node:
                if name in done:
                    return f"rows of {name} stand in several places"
                done.add(name)
                node, offset = name, -1
            mine = np.append(offset, offsets[start:end])
            if np.any(back := np.diff(mine) < 0):
                place = int(np.argmax(back))
                return f"on {name}, offset {mine[place + 1]} comes behind {mine[place]}"
            offset = int(mine[-1])
    return ""


def _records(file: SealedFile, table: str) -> Mapping[tuple[str, str], int]:
    counts: Counter[tuple[str, str]] = Counter()
    of_log = table == "replicas"
    for batch in source_in(file, table)(("key", "node", *(("record_count",) if of_log else ()))):
        rows = pa.Table.from_batches([batch]).group_by(["key", "node"])
        told = rows.aggregate([("record_count", "sum") if of_log else ([], "count_all")])
        for row in told.to_pylist():
            count = row["record_count_sum" if of_log else "count_all"]
            counts[row["key"], row["node"]] += count
    return dict(counts)


def _counted_bounds(file: SealedFile) -> Mapping[tuple[str, str], tuple[int, int]]:
    names = ("key", "node", "log_start_offset", "log_end_offset", "damage", "record_count")
    return {
        (row["key"], row["node"]): (row["log_start_offset"], row["log_end_offset"])
        for batch in source_in(file, "replicas")(names)
        for row in batch.to_pylist()
        if row["damage"] is None and row["record_count"]
    }


def _bounds(file: SealedFile) -> Mapping[tuple[str, str], tuple[int, int]]:
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for batch in source_in(file, "replica_records")(("key", "node", "offset")):
        rows = pa.Table.from_batches([batch]).group_by(["key", "node"])
        for row in rows.aggregate([("offset", "min"), ("offset", "max")]).to_pylist():
            place = (row["key"], row["node"])
            first, end = found.get(place, (row["offset_min"], 0))
            found[place] = min(first, row["offset_min"]), max(end, row["offset_max"] + 1)
    return found


def _rows_by_f(file: SealedFile) -> Mapping[str, int]:
    counts: Counter[str] = Counter()
    for batch in source_in(file, "records")(("f",)):
        for row in pc.value_counts(batch.column("f")).to_pylist():
            counts[row["values"]] += row["counts"]
    return dict(counts)


def _strange(file: SealedFile) -> str:
    """Return the first record on a disk that no client sent to its key.

    Records and their replicas are spread alike, so that the sends of a key are in the twin of this
    file. Where it cannot be read, the one who reads it says so.
    """
    sends_of = _values_sent(_twin(file))
    if sends_of is None:
        return ""
    for batch in source_in(file, "replica_records")(("key", "node", "offset", "value", "control")):
        mine = batch.filter(pc.invert(batch.column("control")))
        for key in pc.unique(mine.column("key")).to_pylist():
            rows = mine.filter(pc.equal(mine.column("key"), key))
            sent = sends_of.get(key, np.empty(0, np.int64))
            values = pc.fill_null(rows.column("value"), _NO_VALUE).to_numpy()
            if not len(sent):
                strange = np.ones(len(values), dtype=np.bool_)
            else:
                place = np.searchsorted(sent, values).clip(max=len(sent) - 1)
                strange = sent[place] != values
            if np.any(strange):
                row = rows.slice(int(np.argmax(strange)), 1).to_pylist()[0]
                what = "no value of ours" if row["value"] is None else f"value {row['value']}"
                return (
                    f"the log of {key} on {row['node']} has {what} at offset {row['offset']}, "
                    "and no client sent it"
                )
    return ""


def _unlike_transactions(file: SealedFile, table: str) -> str:
    """Return where a file contradicts the transactions of its run; empty if nowhere.

    A table of transactions that cannot be read is told of by the one whose task it is.
    """
    if table not in ("transactions", "group_offsets", "records"):
        return ""
    above = file.path.rpartition("/records/" if table == "records" else "/")[0]
    try:
        path = SealedFile(path=f"{above}/transactions.parquet", digest="")
        transactions = _read(path, "transactions")
    except HarnessError:
        return ""
    if not len(transactions):
        return ""
    if table == "transactions":
        wrong = self_contradiction(transactions)
        return f"transaction {wrong}" if wrong else ""
    if table == "group_offsets":
        wrong = unlike_offsets(transactions, _read(file, table))
        return f"group_offsets: {wrong}" if wrong else ""
    if len(pc.list_flatten(transactions["keys"])) != len(pc.list_flatten(transactions["values"])):
        return ""  # the table says so of itself
    bucket = int(PurePosixPath(file.path).stem.rpartition("-")[2])
    return unlike_sends(_of_bucket(transactions, bucket), _sends(file))


def _read(file: SealedFile, table: str) -> pa.Table:
    names = TABLES[table].names
    batches = list(source_in(file, table)(names))
    return pa.Table.from_batches(batches, schema=TABLES[table]).combine_chunks()


def _sends(file: SealedFile) -> pa.Table:
    batches = [
        batch.filter(pc.equal(batch.column("f"), F.SEND.value)).select(list(SENDS))
        for batch in source_in(file, "records")((*SENDS, "f"))
    ]
    schema = pa.schema([TABLES["records"].field(name) for name in SENDS])
    return pa.Table.from_batches(batches, schema=schema).combine_chunks()


def _of_bucket(transactions: pa.Table, bucket: int) -> pa.Table:
    """Return the transactions, with those of their records whose keys are in a bucket."""
    keys, values = (transactions[name].combine_chunks() for name in ("keys", "values"))
    mine = [key for key in pc.unique(pc.list_flatten(keys)).to_pylist() if bucket_of(key) == bucket]
    kept = pc.is_in(pc.list_flatten(keys), pa.array(mine, pa.string()))
    owner = pc.list_parent_indices(keys).filter(kept).to_numpy()
    ends = np.searchsorted(owner, np.arange(len(transactions) + 1)).astype(np.int32)
    for name, column in (("keys", keys), ("values", values)):
        flat = pc.list_flatten(column).filter(kept)
        place = transactions.column_names.index(name)
        field = transactions.schema.field(name)
        lists = pa.ListArray.from_arrays(pa.array(ends), flat, type=field.type)
        transactions = transactions.set_column(place, field, lists)
    return transactions


def _values_sent(file: SealedFile) -> Mapping[str, NDArray[np.int64]] | None:
    """Return the values sent to each key, ascending; None if the file cannot be read."""
    values: dict[str, list[NDArray[np.int64]]] = {}
    try:
        for batch in source_in(file, "records")(("key", "f", "value")):
            sends = batch.filter(pc.equal(batch.column("f"), F.SEND.value))
            for key in pc.unique(sends.column("key")).to_pylist():
                mine = sends.column("value").filter(pc.equal(sends.column("key"), key))
                values.setdefault(key, []).append(mine.to_numpy(zero_copy_only=False))
    except HarnessError:
        return None
    sent = {key: np.concatenate(values.pop(key)) for key in list(values)}
    for one in sent.values():
        one.sort()  # In place: there may be millions.
    return sent


def _twin(file: SealedFile) -> SealedFile:
    """Return the file of `records` of the keys of a file of `replica_records`."""
    above, _, name = file.path.rpartition("/replica_records/")
    return SealedFile(path=f"{above}/records/{name}", digest="")


def table_of(path: str) -> str:
    """Return the table of a file: `history/<table>.parquet`, or `history/<table>/<part>`."""
    parts = PurePosixPath(path).parts
    above = parts[-2]
    return PurePosixPath(parts[-1]).stem if above == "history" else above
