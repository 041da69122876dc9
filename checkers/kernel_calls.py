"""Calls of the kernels of tables: which slices a run is cut into, and what one call reads.

A run whose tables are small is one slice. What one worker has read of a slice (tables, the replayed
log, and what checks made of both) serves all calls of that slice, and of others of the same keys,
and is let go before the next one. A part of a check of a long run that is about a broker, or about
the run as a whole, has its tables to itself; of these the frames that it names, and no others.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.check_group import Question
from fencepost.checkers.facts import Facts
from fencepost.checkers.finding_rows import findings_table, found_row
from fencepost.checkers.metadata.sliced import COLUMNS, keep_of, topic_names
from fencepost.checkers.metadata.view import METADATA, MetadataView
from fencepost.checkers.packed import PackedTable
from fencepost.checkers.runner.memory import give_back
from fencepost.checkers.runner.tables import (
    OffsetRange,
    SealedFile,
    offset_end,
    row_count,
    source_in,
)
from fencepost.checkers.slices import (
    OF_KEYS,
    RECORDS_A_ROW,
    WHOLE,
    Slice,
    Split,
    slice_count,
    slices_of,
)
from fencepost.checkers.sources import Keep, Source, everything, source_of
from fencepost.checkers.table_check import SlicedKernel, TableCheck
from fencepost.history.cluster_schema import METADATA_LOG
from fencepost.history.schema import RECORD_BUCKET_COUNT, TABLES

BUCKETED: Final = ("records", "replica_records")
"""The tables that are spread over files by key."""
_NAMING: Final = ("wire", "metadata_log")
"""The tables that tell a topic's name with its id; the later one is believed."""
_PACKED: Final = "wire"
"""The table of which a slice has many rows, most of them for one of its checks."""
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
    buckets = _buckets(question)
    if count == 1 and all(len(stretches) == 1 for stretches in buckets.values()):
        yield from (call for check in checks for call in _whole(check, question, buckets))
        return
    slices = _Slices(count=count, buckets=buckets, broker_count=_broker_count(facts))
    calls = [call for check in checks for call in _sliced(check, question, slices)]
    yield from sorted(calls, key=_place)


def _slice_count(question: Question) -> int:
    given = set(question.manifest.recorded) & set(_CUT)
    rows = max((row_count(question.file(name)) or 0 for name in sorted(given)), default=0)
    return slice_count(rows, question.slice_rows)


def _whole(check: TableCheck, question: Question, buckets: Iterable[int]) -> Iterator[KernelCall]:
    for bucket in buckets if check.split in OF_KEYS else (0,):
        files = {name: question.file(name, bucket=bucket) for name in check.given}
        yield KernelCall(check=check, part=check.whole, slice_of=WHOLE, files=files)


def _sliced(check: TableCheck, question: Question, slices: "_Slices") -> Iterator[KernelCall]:
    for part in check.by_part:
        for one in slices.of(part.split):
            bucket = one.number if part.split in OF_KEYS else 0
            files = {name: question.file(name, bucket=bucket) for name in check.given}
            alone = part.split is Split.WHOLE
            yield KernelCall(check=check, part=part, slice_of=one, files=files, alone=alone)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slices:
    """The slices that a run is cut into."""

    count: int
    """By partitions."""
    buckets: Mapping[int, Sequence[Slice]]
    """The slices by offsets of each bucket."""
    broker_count: int

    def of(self, split: Split) -> Iterable[Slice]:
        """Return the slices of a split."""
        match split:
            case Split.WHOLE:
                return (WHOLE,)
            case Split.RECORDS:
                every = slices_of(split, RECORD_BUCKET_COUNT)
                return (one for one in every if one.number in self.buckets)
            case Split.OFFSETS:
                return (one for stretches in self.buckets.values() for one in stretches)
            case Split.PARTITIONS:
                return slices_of(split, self.count)
            case Split.BROKERS:
                return slices_of(split, self.broker_count)


def _broker_count(facts: Facts) -> int:
    """Return how many slices there are by broker id: one where a node had several ids."""
    ids = [facts.node_ids[node] for node in facts.brokers]
    return len(ids) if len({*ids, -1}) == len(ids) + 1 else 1


def _place(call: KernelCall) -> tuple[str, int, int]:
    return *_shared_by(call.slice_of), call.slice_of.first_offset


def _shared_by(one: Slice) -> tuple[str, int]:
    """Return what slices have in common that get the same rows of all tables but of records.

    Whole buckets and stretches of offsets of the same keys do.
    """
    return "keys" if one.split in OF_KEYS else one.split, one.number


def _buckets(question: Question) -> Mapping[int, Sequence[Slice]]:
    """Return the buckets that hold anything or cannot be read: few keys fill few buckets."""
    found = {}
    for bucket in range(RECORD_BUCKET_COUNT):
        files = [question.file(name, bucket=bucket) for name in BUCKETED]
        counts = [row_count(file) for file in files]
        if any(count != 0 for count in counts):
            rows = max(count or 0 for count in counts)
            pieces = slice_count(rows, question.slice_rows * RECORDS_A_ROW)
            end = max(map(offset_end, files)) if pieces > 1 else 0
            found[bucket] = tuple(_stretches(bucket, end, pieces))
    return found


def _stretches(bucket: int, end_offset: int, count: int) -> Iterator[Slice]:
    """Yield the slices of a bucket, by stretches of offsets of equal length; the last is open."""
    length = max(1, -(-end_offset // count))
    for first in range(0, length * count, length):
        end = first + length if first + length < length * count else None
        yield Slice(Split.OFFSETS, bucket, RECORD_BUCKET_COUNT, first_offset=first, end_offset=end)


def shared_count(calls: Sequence[KernelCall]) -> int:
    """Return how many groups there are of calls that share what they read."""
    shared = {_shared_by(call.slice_of) for call in calls if _shares(call)}
    return len(shared) + sum(not _shares(call) for call in calls)


def _shares(call: KernelCall) -> bool:
    """Return whether a call shares what it reads.

    A slice of brokers has all frames of few connections: what several checks make of them does not
    fit in a task.
    """
    return not call.alone and call.slice_of.split is not Split.BROKERS


class KernelCaller:
    """The caller of the kernels."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._sources: dict[SealedFile, Source] = {}
        """One for all shelves: each file is verified once, and its log of record found once."""
        self._shelf: _Shelf | None = None

    def __call__(self, call: KernelCall) -> pa.Table:
        """Return FINDINGS of the call."""
        if self._shelf is None or not self._shelf.serves(call):
            self._shelf = None  # what it holds is let go before anything else is read
            give_back()
            self._shelf = _Shelf(call, self._facts, self._sources)
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
            case Split.WHOLE | Split.RECORDS | Split.OFFSETS:
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

    def __init__(self, call: KernelCall, facts: Facts, sources: dict[SealedFile, Source]) -> None:
        self._call, self._facts, self._sources = call, facts, sources
        self._tables: dict[SealedFile, pa.Table] = {}
        self._packed: PackedTable | None = None
        self._streams: dict[SealedFile, Source] = {}
        self._views: dict[SealedFile | None, MetadataView] = {}
        self._names: Mapping[str, str] | None = None

    def serves(self, call: KernelCall) -> bool:
        """Return whether the call shares what is here."""
        if not (_shares(call) and _shares(self._call)):
            return False
        return _shared_by(call.slice_of) == _shared_by(self._call.slice_of)

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
            self._views[file] = MetadataView(run=self._facts, metadata_log=log, keep=keep)
        return self._views[file]

    def table(self, name: str, call: KernelCall) -> pa.Table:
        """Return a table of a call. The rows of a bucket are its own, and not kept."""
        file = call.files[name]
        if name in BUCKETED:
            return self._read(name, call)
        if name == _PACKED and not call.slice_of.is_whole:
            return pa.Table.from_batches(self._unpacked(call)(COLUMNS[name]))
        if file not in self._tables:
            self._tables[file] = self._read(name, call)
        return self._tables[file]

    def stream(self, name: str, call: KernelCall) -> Source:
        """Return a table of a call as a stream, read anew where no other call has a use for it.

        Of the tape, parts about keys read the Fetches of their partitions.
        """
        if not _shares(call) or name in BUCKETED or call.slice_of.split in OF_KEYS:
            return self._anew(name, call)
        if not call.slice_of.is_whole:
            return self._unpacked(call) if name == _PACKED else source_of(self.table(name, call))
        # One for all checks of a whole run, so that they share what is remembered of it.
        file = call.files[name]
        if file not in self._streams:
            self._streams[file] = source_of(self.table(name, call))
        return self._streams[file]

    def stretch(self, name: str, call: KernelCall, offsets: tuple[int, int]) -> Source:
        """Return those records of a call whose offsets are from one to before another."""
        one = call.slice_of
        end = offsets[1] if one.end_offset is None else min(offsets[1], one.end_offset)
        part = replace(
            one,
            split=Split.OFFSETS,
            count=RECORD_BUCKET_COUNT,
            first_offset=max(offsets[0], one.first_offset),
            end_offset=end,
        )
        return self._anew(name, replace(call, slice_of=part))

    def _unpacked(self, call: KernelCall) -> Source:
        """Return the slice's frames as a source for one call."""
        if self._packed is None:
            self._packed = PackedTable(
                self._anew(_PACKED, call, is_shared=_shares(call))(COLUMNS[_PACKED])
            )
        return self._packed.batches  # another object each time: what is remembered is the call's

    def _read(self, name: str, call: KernelCall) -> pa.Table:
        columns = COLUMNS.get(name, TABLES[name].names)
        return pa.Table.from_batches(self._anew(name, call, is_shared=_shares(call))(columns))

    def _anew(self, name: str, call: KernelCall, *, is_shared: bool = False) -> Source:
        """Return the rows of a table that a call needs, as they lie in its file."""
        if name in BUCKETED:
            one, unplaced = call.slice_of, call.part.unplaced
            within = OffsetRange(one.first_offset, one.end_offset, unplaced=unplaced)
            source = source_in(call.files[name], name, offsets=within)
        else:
            source = self._source(call.files[name], name)
        keep = everything if call.alone else self._keep(name, call, source)
        picked = everything
        if name == "records":
            return lambda columns: (call.part.records(keep(batch)) for batch in source(columns))
        if name == "wire" and not is_shared:
            picked = _Picked(call.part)
        return lambda columns: (keep(picked(batch)) for batch in source(columns))

    def _source(self, file: SealedFile, name: str) -> Source:
        if file not in self._sources:
            self._sources[file] = source_in(file, name)
        return self._sources[file]

    def _keep(self, name: str, call: KernelCall, source: Source) -> Keep:
        if self._names is None and name not in BUCKETED and not call.slice_of.is_whole:
            naming = [one for one in _NAMING if one in call.files]
            self._names = topic_names(self._source(call.files[one], one) for one in naming)
        names, unplaced = self._names or {}, call.part.unplaced
        return keep_of(name, call.slice_of, names=names, source=source, unplaced=unplaced)


@dataclass(frozen=True, slots=True)
class _Picked:
    """The frames that a part reads."""

    part: SlicedKernel

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self.part.apis:
            batch = batch.filter(pc.is_in(batch.column("api"), pa.array(self.part.apis)))
        return self.part.pick(batch)


class _GivenTables(Mapping[str, pa.Table]):
    """The tables of a call, each read when it is asked for.

    Of a slice each call has the shelf's rows as a table of its own, so that what it remembers of
    them (`remembered`) goes when it is done: all checks together would hold several times as much.
    """

    def __init__(self, call: KernelCall, shelf: _Shelf) -> None:
        self._call, self._shelf = call, shelf
        self._own: dict[str, pa.Table] = {}
        self._streams: dict[str, Source] = {}

    def __getitem__(self, name: str) -> pa.Table:
        if name in self._own:
            return self._own[name]
        table = self._shelf.table(name, self._call)
        if name in BUCKETED or self._call.slice_of.is_whole:
            return table
        own = self._own[name] = table.slice(0)
        return own

    def stream(self, name: str, *, offsets: tuple[int, int] | None = None) -> Source:
        """Return a table as a stream (`checkers.sources.streamed`)."""
        if offsets is not None:
            return self._shelf.stretch(name, self._call, offsets)
        if name not in self._streams:
            self._streams[name] = self._shelf.stream(name, self._call)
        return self._streams[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._call.files)

    def __len__(self) -> int:
        return len(self._call.files)
