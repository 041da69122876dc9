"""The metadata logs of simulated nodes from their beginning on, whatever their disks still hold.

A node that has written a snapshot drops the records before it. They are written here as they go, as
rows of METADATA_LOG, so that a run of any length needs little memory. Only what a snapshot of the
node's own sums up is kept: its last record is the one before the snapshot's end, of the snapshot's
epoch. Such records are committed, so they stand in this node's log for good, and are in any log of
the node to come.

Records that a node lost in another way (its disk was wiped, or a leader's snapshot replaced its
log) may never have been committed, and are not kept as its own. They are not needed for the whole
story either: a node that begins at a snapshot was given it by one that had dropped, and so kept,
what is in it. Where that happens, the node's rows have the snapshot, as a mark that something is
not there.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clusters.node_port.storage import METADATA, SNAPSHOT, MetadataBatch, Snapshot
from clusters.port import NodeName
from clusters.reference.simulated.append_times import AppendTimes
from clusters.reference.simulated.metadata_rows import LogRows
from clusters.simulation.disk import Disk
from history.table_file import TableFile

_TABLE: Final = "metadata_log"
_WAITING_MAX: Final = 1 << 13
"""The number of batches that wait to be written together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """Rows on disk; of those of the log itself, the ones below `end` count."""

    path: Path
    start: int
    end: int


@dataclass(slots=True, kw_only=True)
class _Span:
    """A part of a node's log without a gap; a snapshot goes before it if it does not begin at 0."""

    start: int
    end: int
    files: list[_File] = field(default_factory=list)
    waiting: list[MetadataBatch] = field(default_factory=list)

    def trim(self, end: int) -> None:
        """Forget the records from this offset on."""
        self.end = min(self.end, end)
        self.files = [replace(one, end=min(one.end, end)) for one in self.files if one.start <= end]
        self.waiting = [one for one in self.waiting if one.base_offset < end]


class KeptLogs:
    """What nodes drop of their logs, in files of `directory`, until the run's table is written."""

    def __init__(self, directory: Path, times: AppendTimes) -> None:
        self._directory = directory
        self._times = times
        self._nodes: dict[NodeName, _NodeLog] = {}

    def follow(self, node: NodeName, disk: Disk) -> None:
        """Keep what this node drops from now on."""
        self._nodes[node] = _NodeLog(node, disk, directory=self._directory, times=self._times)

    def tables(self, node: NodeName) -> Iterator[pa.Table]:
        """Yield all of a node's log: what it dropped, and what lies on its disk now."""
        return self._nodes[node].tables()

    def remove(self) -> None:
        """Delete the files."""
        shutil.rmtree(self._directory, ignore_errors=True)


class _NodeLog:
    """One node's log: the spans that it dropped, and its disk."""

    def __init__(self, node: NodeName, disk: Disk, *, directory: Path, times: AppendTimes) -> None:
        self._disk = disk
        self._prefix = directory / node
        self._rows = LogRows(node, times)
        self._spans: list[_Span] = []
        self._file_count = 0
        disk.keep(self._dropped)

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows of the spans, then those of the disk, where it goes on from them."""
        batches, snapshot = self._disk.batches(METADATA), self._disk.files.get(SNAPSHOT)
        end = 0 if snapshot is None else snapshot.end_offset
        begin = batches[0].base_offset if batches else end
        self._trim(begin)
        for span in self._spans:
            for file in span.files:
                yield from _read(file)
            yield from self._rows.batches(span.waiting)
        if begin and snapshot is not None and not self._goes_on(begin):
            yield from self._rows.snapshot(snapshot)
            begin = end
        yield from self._rows.batches(batches, from_offset=begin)

    def _dropped(self, batches: list[MetadataBatch], offset: int) -> None:
        """Take what a node drops from its log, which begins at `offset` from now on."""
        snapshot: Snapshot = self._disk.files[SNAPSHOT]
        if not _are_summed_up(batches, snapshot, offset):
            end = snapshot.end_offset
            self._trim(end)
            if self._spans and self._spans[-1].start == end:
                self._spans.pop()
            self._spans.append(_Span(start=end, end=end))
            self._write(self._rows.snapshot(snapshot))
            return
        begin = batches[0].base_offset
        self._trim(begin)
        if not begin and not self._spans:
            self._spans.append(_Span(start=0, end=0))
        if self._goes_on(begin):
            span = self._spans[-1]
            span.end = offset
            span.waiting += batches
            if len(span.waiting) >= _WAITING_MAX:
                self._write(self._rows.batches(span.waiting))
                span.waiting = []

    def _goes_on(self, offset: int) -> bool:
        return bool(self._spans) and self._spans[-1].end == offset

    def _trim(self, offset: int) -> None:
        """Forget what is at this offset and above: there the log begins that counts."""
        while self._spans and (self._spans[-1].start > offset):
            self._spans.pop()
        if self._spans:
            self._spans[-1].trim(offset)

    def _write(self, tables: Iterator[pa.Table]) -> None:
        """Write a file of the last span."""
        span = self._spans[-1]
        start = span.waiting[0].base_offset if span.waiting else span.start
        self._prefix.mkdir(parents=True, exist_ok=True)
        path = self._prefix / f"{self._file_count:06}.parquet"
        self._file_count += 1
        with TableFile(path, _TABLE) as file:
            for table in tables:
                file.add(table)
        span.files.append(_File(path=path, start=start, end=span.end))


def _are_summed_up(batches: list[MetadataBatch], snapshot: Snapshot, offset: int) -> bool:
    """Return whether the newest snapshot is of the very records that go.

    It may be a later one than the one at which the log begins now: it was written meanwhile.
    """
    if not batches or batches[-1].end_offset != offset:
        return False
    return offset < snapshot.end_offset or batches[-1].epoch == snapshot.epoch


def _read(kept: _File) -> Iterator[pa.Table]:
    with pq.ParquetFile(kept.path) as file:
        for batch in file.iter_batches():
            table = pa.Table.from_batches([batch])
            yield table.filter(pc.less(table["metadata_offset"], kept.end))
