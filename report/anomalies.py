"""The smallest few anomalies of each check, with the operations and records that prove them.

A reader believes a violation that can be followed by hand, so the ones with the fewest operations
come first, and among those the earliest. Everything is read in streams: a run may have millions of
anomalies, and the page shows a handful; `anomalies/<check>.parquet` has them all.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from fencepost.checkers.anomaly import ANOMALIES, SENTENCES, Anomaly, anomalies_of
from fencepost.checkers.verdict import CheckResult, Verdict
from fencepost.history.failure import HarnessError

RECORDS_AN_OPERATION_MAX: Final = 6
"""A poll may have returned thousands; the page shows those that the anomaly is about."""

_ILLEGAL_MAX: Final = 4
_ALLOWED_MAX: Final = 1
_BATCH_ROWS: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class AnomalyGroup:
    """The anomalies of one check: how many, and the smallest few, illegal ones first."""

    check: str
    illegal_count: int
    allowed_count: int
    row_count: int
    """The number of rows in the file; checks bound it, and go on counting beyond."""
    smallest: tuple[Anomaly, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownOperation:
    """One row of `operations`."""

    index: int
    process: int
    f: str
    key: str | None
    call_ns: int
    return_ns: int | None
    outcome: str
    error: str | None
    record_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record that an operation sent or returned."""

    offset: int | None
    value: int


def groups_in(directory: Path) -> tuple[AnomalyGroup, ...]:
    """Return the anomalies that each file spells out.

    Raises HarnessError if a file has neither the schema `checkers.anomaly.ANOMALIES` nor that of
    earlier versions.
    """
    return tuple(_group(path) for path in sorted(directory.glob("*.parquet")))


def groups_of(spelled_out: Iterable[AnomalyGroup], verdict: Verdict) -> tuple[AnomalyGroup, ...]:
    """Return the groups that are not empty, those with illegal anomalies first, then by name.

    The verdict knows how many there are, the files spell them out; where a file is not there, the
    verdict's examples stand for it.
    """
    groups = {group.check: group for group in spelled_out}
    for result in verdict.checks:
        groups[result.check] = _counted(result, groups.get(result.check))
    found = [group for group in groups.values() if group.illegal_count or group.allowed_count]
    return tuple(sorted(found, key=lambda group: (group.illegal_count == 0, group.check)))


def operations_at(files: Sequence[Path], indices: Iterable[int]) -> dict[int, ShownOperation]:
    """Return the operations with these indices, by index; those that are not there are left out."""
    wanted = sorted(set(indices))
    if not wanted or not files:
        return {}
    # The bounds skip row groups by their statistics; `isin` alone reads them all.
    index = ds.field("index")
    near = (index >= wanted[0]) & (index <= wanted[-1])
    columns = list(ShownOperation.__dataclass_fields__)
    rows = _dataset(files).to_table(columns=columns, filter=near & index.isin(wanted)).to_pylist()
    return {row["index"]: ShownOperation(**row) for row in rows}


def records_of(files: Sequence[Path], anomaly: Anomaly) -> dict[int, tuple[Record, ...]]:
    """Return what the anomaly's operations sent or returned of its key, by operation.

    Only records with one of the anomaly's values or offsets, if it names any; at most
    `RECORDS_AN_OPERATION_MAX` of an operation.
    """
    if not anomaly.operations or not files:
        return {}
    operation = ds.field("operation")
    chosen = (ds.field("key") == anomaly.key) & operation.isin(list(anomaly.operations))
    if anomaly.values or anomaly.offsets:
        chosen &= ds.field("value").isin(list(anomaly.values)) | ds.field("offset").isin(
            list(anomaly.offsets)
        )
    found: dict[int, tuple[Record, ...]] = {}
    for batch in _dataset(files).to_batches(
        columns=["operation", "offset", "value"], filter=chosen
    ):
        for row in batch.to_pylist():
            kept = found.get(row["operation"], ())
            if len(kept) < RECORDS_AN_OPERATION_MAX:
                record = Record(offset=row["offset"], value=row["value"])
                found[row["operation"]] = (*kept, record)
    return found


def _dataset(files: Sequence[Path]) -> ds.Dataset:
    return ds.dataset([str(path) for path in files], format="parquet")


def _counted(result: CheckResult, group: AnomalyGroup | None) -> AnomalyGroup:
    return AnomalyGroup(
        check=result.check,
        illegal_count=result.anomaly_count - result.allowed_count,
        allowed_count=result.allowed_count,
        row_count=group.row_count if group else 0,
        smallest=group.smallest if group else result.examples,
    )


def _group(path: Path) -> AnomalyGroup:
    counts = {False: 0, True: 0}
    smallest: dict[bool, list[Anomaly]] = {False: [], True: []}
    with pq.ParquetFile(path) as file:
        found = file.schema_arrow
        if not (found.equals(ANOMALIES) or found.equals(SENTENCES)):
            raise HarnessError(f"{path} does not have the schema of anomalies: found {found}")
        for batch in file.iter_batches(batch_size=_BATCH_ROWS):
            allowed = batch.column("allowed").to_numpy(zero_copy_only=False)
            for legal, limit in ((False, _ILLEGAL_MAX), (True, _ALLOWED_MAX)):
                rows = np.flatnonzero(allowed == legal)
                counts[legal] += len(rows)
                candidates = smallest[legal] + _smallest(batch.take(pa.array(rows)), limit=limit)
                smallest[legal] = sorted(candidates, key=_magnitude)[:limit]
    return AnomalyGroup(
        check=path.stem,
        illegal_count=counts[False],
        allowed_count=counts[True],
        row_count=counts[False] + counts[True],
        smallest=(*smallest[False], *smallest[True]),
    )


def _smallest(batch: pa.RecordBatch, *, limit: int) -> list[Anomaly]:
    lists = batch.column("operations")
    starts = lists.offsets.to_numpy(zero_copy_only=False)
    sizes = np.diff(starts)
    flat = np.append(lists.values.to_numpy(zero_copy_only=False), 0)
    first = np.where(sizes > 0, flat[np.minimum(starts[:-1], len(flat) - 1)], 0)
    order = np.lexsort((first, sizes))[:limit]
    return list(anomalies_of(pa.Table.from_batches([batch.take(pa.array(order))])))


def _magnitude(anomaly: Anomaly) -> tuple[int, int]:
    return len(anomaly.operations), anomaly.operations[0] if anomaly.operations else 0
