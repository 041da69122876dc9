"""Calls of the kernels of tables: which slices a run is cut into, and what one call reads.

A run whose tables are small is one slice. What one worker has read of a slice (tables, the replayed
log, and what checks made of both) serves all calls of that slice, and is let go before the next
one. A part of a check of a long run that is about the run as a whole has its tables to itself: the
frames that it names, and no others.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from checkers.check_group import Question
from checkers.facts import Facts
from checkers.finding_rows import findings_table, found_row
from checkers.metadata.sliced import COLUMNS, keep_of, topic_names
from checkers.metadata.view import METADATA, MetadataView
from checkers.runner.tables import SealedFile, row_count, rows_in, source_in
from checkers.slices import WHOLE, Slice, Split, slices_of
from checkers.sources import Keep, Source, everything
from checkers.table_check import SlicedKernel, TableCheck
from history.cluster_schema import METADATA_LOG
from history.schema import RECORD_BUCKET_COUNT, TABLES

__all__ = ["BUCKETED", "KernelCall", "KernelCaller", "calls_of"]

BUCKETED: Final = ("records", "replica_records")
"""The tables that are spread over files by key."""
_NAMING: Final = ("wire", "metadata_log")
"""The tables that tell a topic's name with its id; the later one is believed."""
_CUT: Final = ("wire", "describes", "metadata_log")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCall:
    """One call of a kernel: a part of a check, on a slice of the tables."""

    check: TableCheck
    part: SlicedKernel
    slice_of: Slice
    files: Mapping[str, SealedFile]
    alone: bool = False
    """Its tables are for this part alone."""


def calls_of(
    checks: Iterable[TableCheck], question: Question, facts: Facts
) -> Iterator[KernelCall]:
    """Yield the calls that answer these checks; those of one slice follow each other."""
    count = _slice_count(question)
    if count == 1:
        yield from (call for check in checks for call in _whole(check, question))
        return
    calls = [call for check in checks for call in _sliced(check, question, facts, count)]
    yield from sorted(calls, key=_place)


def _slice_count(question: Question) -> int:
    given = set(question.manifest.recorded) & set(_CUT)
    rows = max((row_count(question.file(name)) or 0 for name in sorted(given)), default=0)
    return max(1, -(-rows // question.slice_rows))


def _whole(check: TableCheck, question: Question) -> Iterator[KernelCall]:
    part = SlicedKernel(kernel=check.kernel)
    for bucket in _buckets(question) if check.split is Split.RECORDS else (0,):
        files = {name: question.file(name, bucket=bucket) for name in check.given}
        yield KernelCall(check=check, part=part, slice_of=WHOLE, files=files)


def _sliced(
    check: TableCheck, question: Question, facts: Facts, count: int
) -> Iterator[KernelCall]:
    for part in check.by_part:
        for one in _slices(part.split, question, facts, count):
            bucket = one.number if part.split is Split.RECORDS else 0
            files = {name: question.file(name, bucket=bucket) for name in check.given}
            alone = part.split is Split.WHOLE
            yield KernelCall(check=check, part=part, slice_of=one, files=files, alone=alone)


def _slices(split: Split, question: Question, facts: Facts, count: int) -> Iterator[Slice]:
    match split:
        case Split.WHOLE:
            yield WHOLE
        case Split.RECORDS:
            filled = _buckets(question)
            every = slices_of(split, RECORD_BUCKET_COUNT)
            yield from (one for one in every if one.number in filled)
        case Split.PARTITIONS:
            yield from slices_of(split, count)
        case Split.BROKERS:
            yield from slices_of(split, _broker_count(facts))


def _broker_count(facts: Facts) -> int:
    """Return how many slices there are by broker id: one where a node had several ids."""
    ids = [facts.node_ids[node] for node in facts.brokers]
    return len(ids) if len({*ids, -1}) == len(ids) + 1 else 1


def _place(call: KernelCall) -> tuple[str, int]:
    return call.slice_of.split, call.slice_of.number


def _buckets(question: Question) -> tuple[int, ...]:
    """Return the buckets that hold anything or cannot be read: few keys fill few buckets."""
    return tuple(
        bucket
        for bucket in range(RECORD_BUCKET_COUNT)
        if any(row_count(question.file(name, bucket=bucket)) != 0 for name in BUCKETED)
    )


class KernelCaller:
    """The caller of the kernels."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._shelf: _Shelf | None = None

    def __call__(self, call: KernelCall) -> pa.Table:
        """Return FINDINGS of the call."""
        if self._shelf is None or not self._shelf.serves(call):
            self._shelf = None  # what it holds is let go before anything else is read
            self._shelf = _Shelf(call, self._facts)
        self._shelf.verify(call)
        tables, view = _GivenTables(call, self._shelf), self._shelf.view(call)
        name = call.check.entry.name
        return findings_table(
            [
                found_row(name, found) | {"path": name, "key": key, "seconds": 0.0}
                for key, found in call.part.kernel(tables, view)
                if self._is_of(call.slice_of, key)
            ]
        )

    def _is_of(self, one: Slice, key: str) -> bool:
        """Return whether a slice answers for this subject."""
        match one.split:
            case Split.WHOLE | Split.RECORDS:
                return True
            case _ if key == METADATA:
                return one.number == 0
            case Split.PARTITIONS:
                return one.has_partition(key)
            case Split.BROKERS:
                kind, _, number = key.partition(" ")
                known = self._facts.node_ids.get(key, -1)
                return one.has_broker(int(number) if kind == "broker" else known)


class _Shelf:
    """The tables and the view read for the calls of one slice, or for one part alone."""

    def __init__(self, call: KernelCall, facts: Facts) -> None:
        self._call, self._facts = call, facts
        self._sources: dict[SealedFile, Source] = {}
        self._tables: dict[SealedFile, pa.Table] = {}
        self._views: dict[SealedFile | None, MetadataView] = {}
        self._names: Mapping[str, str] | None = None

    def serves(self, call: KernelCall) -> bool:
        """Return whether the call shares what is here."""
        return call.slice_of == self._call.slice_of and not call.alone and not self._call.alone

    def verify(self, call: KernelCall) -> None:
        """Raises HarnessError if a table of the call is not what was sealed.

        A kernel may answer without one of them; an answer counts only if all are.
        """
        for name, file in call.files.items():
            if name not in BUCKETED:
                self._source(file, name)

    def view(self, call: KernelCall) -> MetadataView:
        """Return the view of the call's metadata log; of none, where it does not ask for one."""
        file = call.files.get("metadata_log")
        if file not in self._views:
            log: pa.Table | Source = METADATA_LOG.empty_table()
            keep: Keep = everything
            if file is not None:
                log = self._source(file, "metadata_log")
                keep = self._keep("metadata_log", call, log)
            self._views[file] = MetadataView(facts=self._facts, metadata_log=log, keep=keep)
        return self._views[file]

    def table(self, name: str, call: KernelCall) -> pa.Table:
        """Return a table of a call. The rows of a bucket are its own, and not kept."""
        file = call.files[name]
        if name in BUCKETED:
            return rows_in(file, name)
        if file not in self._tables:
            source = self._source(file, name)
            keep = self._keep(name, call, source)
            columns = COLUMNS.get(name, TABLES[name].names)
            self._tables[file] = pa.Table.from_batches(keep(batch) for batch in source(columns))
        return self._tables[file]

    def _source(self, file: SealedFile, name: str) -> Source:
        if file not in self._sources:
            self._sources[file] = source_in(file, name)
        return self._sources[file]

    def _keep(self, name: str, call: KernelCall, source: Source) -> Keep:
        if call.alone and name == "wire":
            return _Picked(call.part)
        if self._names is None and not call.slice_of.is_whole:
            naming = [one for one in _NAMING if one in call.files]
            self._names = topic_names(self._source(call.files[one], one) for one in naming)
        return keep_of(name, call.slice_of, names=self._names or {}, source=source)


@dataclass(frozen=True, slots=True)
class _Picked:
    """The frames that a part reads."""

    part: SlicedKernel

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self.part.apis:
            batch = batch.filter(pc.is_in(batch.column("api"), pa.array(self.part.apis)))
        return self.part.pick(batch)


class _GivenTables(Mapping[str, pa.Table]):
    """The tables of a call, each read when it is asked for."""

    def __init__(self, call: KernelCall, shelf: _Shelf) -> None:
        self._call, self._shelf = call, shelf

    def __getitem__(self, name: str) -> pa.Table:
        return self._shelf.table(name, self._call)

    def __iter__(self) -> Iterator[str]:
        return iter(self._call.files)

    def __len__(self) -> int:
        return len(self._call.files)
