"""Calls of kernels: what is read once for several of them."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from metadata_logs import FACTS

from fencepost.checkers.control_plane.stuck_isr import CHECKS
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.kernel_calls import KernelCall, KernelCaller, shared_count
from fencepost.checkers.metadata.view import MetadataView
from fencepost.checkers.runner.tables import SealedFile
from fencepost.checkers.slices import Slice, Split
from fencepost.checkers.sources import streamed
from fencepost.checkers.table_check import SlicedKernel
from fencepost.history.request_schema import DESCRIBES
from fencepost.history.schema import TABLES

BUCKET = Slice(Split.RECORDS, 3, 16)
STRETCHES = (
    Slice(Split.OFFSETS, 3, 16, end_offset=100),
    Slice(Split.OFFSETS, 3, 16, first_offset=100),
)
OTHER_BUCKET = Slice(Split.OFFSETS, 4, 16)


def _sealed(path: Path, rows: Sequence[Mapping[str, Any]]) -> SealedFile:
    schema = TABLES["records"]
    columns = {field.name: [row.get(field.name) for row in rows] for field in schema}
    pq.write_table(pa.table(columns, schema=schema), path)
    return SealedFile(path=str(path), digest=hashlib.sha256(path.read_bytes()).hexdigest())


def _record(key: str) -> Mapping[str, Any]:
    numbers = dict.fromkeys(("operation", "value", "position", "process", "session"), 0)
    times = {"call_ns": 1, "return_ns": 2}
    return {"key": key, "offset": 0, "f": "send", "outcome": "ok", **numbers, **times}


@pytest.mark.parametrize(
    ("slices", "views_count"),
    [
        (STRETCHES, 1),
        ((*STRETCHES, BUCKET), 1),
        ((STRETCHES[0], OTHER_BUCKET), 2),
        ((Slice(Split.PARTITIONS, 3, 5), BUCKET), 2),
        ((Slice(Split.PARTITIONS, 3, 5), Slice(Split.PARTITIONS, 3, 5)), 1),
        ((Slice(Split.BROKERS, 3, 5), Slice(Split.BROKERS, 3, 5)), 2),
    ],
)
def test_slices_of_the_same_keys_share_what_was_made_of_the_log(
    slices: Sequence[Slice], views_count: int
) -> None:
    seen: list[MetadataView] = []

    def kernel(_tables: Tables, view: MetadataView) -> Judged:
        seen.append(view)
        return ()

    caller = KernelCaller(FACTS)
    for one in slices:
        part = SlicedKernel(kernel=kernel, split=one.split)
        caller(KernelCall(check=CHECKS[0], part=part, slice_of=one, files={}))
    assert len(seen) == len(slices)
    assert len({id(view) for view in seen}) == views_count


def test_a_check_of_a_slice_has_a_table_of_its_own_for_as_long_as_it_runs(tmp_path: Path) -> None:
    path = tmp_path / "describes.parquet"
    pq.write_table(DESCRIBES.empty_table(), path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    files = {"describes": SealedFile(path=str(path), digest=digest)}
    seen: list[pa.Table] = []

    def kernel(tables: Tables, _view: MetadataView) -> Judged:
        seen.extend((tables["describes"], tables["describes"]))
        return ()

    caller = KernelCaller(FACTS)
    part = SlicedKernel(kernel=kernel, split=Split.PARTITIONS)
    for _ in range(2):
        one = Slice(Split.PARTITIONS, 3, 5)
        caller(KernelCall(check=CHECKS[0], part=part, slice_of=one, files=files))
    assert seen[0] is seen[1]
    assert seen[2] is seen[3]
    assert seen[0] is not seen[2]


def test_calls_on_several_buckets_read_each_its_own(tmp_path: Path) -> None:
    """A stream that was kept by its table's name served the first bucket's records to all."""
    rows = [_record(key) for key in ("a", "b")]
    files = [_sealed(tmp_path / f"{row['key']}.parquet", [row]) for row in rows]
    seen: list[str] = []

    def kernel(tables: Tables, _view: MetadataView) -> Judged:
        for batch in streamed(tables, "records")(("key",)):
            seen.extend(batch.column("key").to_pylist())
        return ()

    caller = KernelCaller(FACTS)
    part = SlicedKernel(kernel=kernel, split=Split.RECORDS)
    for file in files:
        call = KernelCall(check=CHECKS[0], part=part, slice_of=Slice(), files={"records": file})
        caller(call)
    assert seen == ["a", "b"]


def test_a_part_of_the_run_as_a_whole_shares_nothing() -> None:
    seen: list[MetadataView] = []

    def kernel(_tables: Tables, view: MetadataView) -> Judged:
        seen.append(view)
        return ()

    caller = KernelCaller(FACTS)
    part = SlicedKernel(kernel=kernel)
    for _ in range(2):
        caller(KernelCall(check=CHECKS[0], part=part, slice_of=Slice(), files={}, alone=True))
    assert seen[0] is not seen[1]


def test_the_calls_of_a_long_run_are_counted_by_what_they_share() -> None:
    part = SlicedKernel(kernel=lambda _tables, _view: ())
    calls = [
        KernelCall(check=CHECKS[0], part=part, slice_of=one, files={})
        for one in (*STRETCHES, *STRETCHES, BUCKET, OTHER_BUCKET)
    ]
    alone = KernelCall(check=CHECKS[0], part=part, slice_of=Slice(), files={}, alone=True)
    assert shared_count([*calls, alone, alone]) == 2 + 2
