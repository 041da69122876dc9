"""A node's disk: what the effects of the core ask for, as files with Kafka's names and formats.

A witness reads it as it reads Kafka's: `__cluster_metadata-0` with its snapshots and the quorum's
state, a directory for each partition, a few checkpoints beside them. Small files are replaced as a
whole. Appends go to the operating system at once: they survive the death of the process.

After a crash the logs of partitions are read on a thread of their own (`recovery`), since that can
take long, and the node goes on meanwhile.
"""

import itertools
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from fencepost.clusters.node_port import storage
from fencepost.clusters.node_port.storage import (
    CLEAN_STOP,
    HIGH_WATERMARKS,
    META_PROPERTIES,
    METADATA,
    QUORUM_STATE,
    SNAPSHOT,
    Batch,
    Contents,
    LogName,
    PartitionKey,
    Snapshot,
)
from fencepost.clusters.protocol.message_decoder import DecodeError
from fencepost.clusters.protocol.record_batches import BatchScan, scan_batches
from fencepost.clusters.reference.codec.batches import encoded, placed
from fencepost.clusters.reference.codec.identifiers import METADATA_TOPIC, text_of
from fencepost.clusters.reference.codec.metadata_log import (
    encoded_batch,
    encoded_snapshot,
    scanned,
    snapshot_in,
)
from fencepost.clusters.reference.shell.kept_log import (
    CHECKPOINT_SUFFIX,
    CutPrefix,
    checkpoint_name,
    keep,
)
from fencepost.clusters.reference.shell.log_file import LogFile
from fencepost.clusters.reference.shell.small_files import (
    CLEAN_STOP_NAME,
    HIGH_WATERMARKS_NAME,
    META_NAME,
    PARTITION_NAME,
    QUORUM_STATE_NAME,
    meta_in,
    meta_text,
    offsets_in,
    offsets_text,
    quorum_state_in,
    quorum_state_text,
    topic_id_in,
    topic_id_text,
)
from fencepost.history.failure import HarnessError

_METADATA_DIRECTORY: Final = f"{METADATA_TOPIC}-0"
_PARTITION: Final = re.compile(r"(.+)-(\d+)(\.[\w-]{22}-stray)?")
_CHECKPOINT: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class _Partition(NamedTuple):
    """A partition's log that was read."""

    key: PartitionKey
    log: LogFile
    batches: list[Batch]


class DataDirectories:
    """The data directories of one node. Not thread-safe, but for `syncer` and `recovery`.

    `metadata`: the directory of the metadata log, if it is not one of `directories`. `voters`: of
    the quorum that keeps that log; a node without a quorum has no such log, and may start on a disk
    that is not formatted. `kept`: where that log goes on as if it were never cut, in files with
    Kafka's names; None: nowhere. `now_ms`: the wall clock, ms since 1970. Raises HarnessError for a
    file that is not what it should be.
    """

    def __init__(
        self,
        directories: tuple[Path, ...],
        *,
        metadata: Path | None,
        voters: tuple[int, ...],
        kept: Path | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._directories = directories
        self._metadata = metadata or directories[0]
        self._voters = voters
        self._kept = kept
        self._now_ms = now_ms
        self._logs: dict[LogName, LogFile] = {}
        self._topics: dict[PartitionKey, str] = {}
        self._found: dict[PartitionKey, tuple[str, Path]] = {}
        """The partitions' topics and directories at the start."""

    def contents(self, *, incarnation_id: int) -> Contents:
        """Return what is there at the start; after a crash without the logs of partitions."""
        found = Contents(incarnation_id=incarnation_id)
        self._read_files(found)
        if META_PROPERTIES in found.files or not self._voters:
            if self._voters:
                self._read_metadata(found)
            for directory in self._directories:
                self._find_partitions(directory)
            found.topics = {key: topic for key, (topic, _) in self._found.items()}
            if found.files[CLEAN_STOP]:
                self._take(self.recovery(lambda: False)(), found)
        return found

    def recovery(self, is_over: Callable[[], bool]) -> Callable[[], list[_Partition]]:
        """Return a function that reads the partitions' logs; call once, on any thread.

        It stops between two of them once `is_over`. Raises HarnessError.
        """
        paths = [(key, path) for key, (_, path) in self._found.items()]

        def read() -> list[_Partition]:
            unless_over = itertools.takewhile(lambda _: not is_over(), paths)
            return [_Partition(key, *_found(path, _scanned_data)) for key, path in unless_over]

        return read

    def recovered(self, partitions: list[_Partition]) -> Contents:
        """Return what `recovery` has read, to which the node may write from here on."""
        found = Contents()
        self._take(partitions, found)
        return found

    def append(self, log: LogName, batch: Any) -> None:
        """A batch at the end of a log."""
        if log == METADATA:
            if not batch.time_ms:  # the leader's own: whoever fetches it keeps the time
                batch.time_ms = self._now_ms()
            data = encoded_batch(batch)
            self._logs[log].append(data, base_offset=batch.base_offset, epoch=batch.epoch)
        else:
            self._logs[log].append(
                encoded(batch), base_offset=batch.base_offset, epoch=batch.leader_epoch
            )

    def extend(self, log: PartitionKey, batches: Sequence[Batch]) -> None:
        """Batches at the end of a partition's log."""
        for batch in batches:
            self.append(log, batch)

    def truncate(self, log: LogName, offset: int) -> None:
        """Drop what is at this offset and above."""
        self._logs[log].truncate(offset)

    def advance(self, log: LogName, offset: int) -> None:
        """Drop what is below this offset."""
        if log == METADATA and self._kept is not None:
            self._keep(self._kept, offset)
        self._logs[log].advance(offset)

    def create(self, log: PartitionKey, topic: str) -> None:
        """Make the directory of a partition's log, which must not exist yet."""
        if log in self._logs:
            return
        directory = min(self._directories, key=self._count) / f"{topic}-{log[1]}"
        self._set_aside(directory)
        directory.mkdir()
        _replace(directory / PARTITION_NAME, topic_id_text(log[0]).encode())
        self._logs[log] = LogFile(directory)
        self._topics[log] = topic

    def delete(self, log: PartitionKey) -> None:
        """Remove a log and its directory."""
        found = self._logs.pop(log, None)
        if found is not None:
            found.close()
            shutil.rmtree(found.directory)
            del self._topics[log]

    def write(self, name: str, value: Any) -> None:
        """Replace a small file."""
        match name:
            case storage.META_PROPERTIES:
                _replace(self._path(name), meta_text(value).encode())
            case storage.QUORUM_STATE:
                _replace(self._path(name), quorum_state_text(value, voters=self._voters).encode())
            case storage.SNAPSHOT:
                self._write_snapshot(value)
            case storage.HIGH_WATERMARKS:
                self._write_high_watermarks(value)
            case storage.CLEAN_STOP if value:
                _replace(self._path(name), b'{"version":0,"brokerEpoch":-1}')
            case storage.CLEAN_STOP:
                self._path(name).unlink(missing_ok=True)
            case _:
                raise AssertionError(name)

    def syncer(self, names: tuple[LogName, ...]) -> Callable[[], None]:
        """Return a function that makes these logs and files durable; call once, on any thread."""
        descriptors = []
        for name in names:
            if name in self._logs:
                descriptors.append(self._logs[name].copied_descriptor())
            elif isinstance(name, str) and (path := self._path(name)).exists():
                descriptors += [_opened(path), _opened(path.parent)]

        def sync() -> None:
            for descriptor in descriptors:
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

        return sync

    def close(self) -> None:
        """Close every file."""
        for log in self._logs.values():
            log.close()
        self._logs.clear()

    def _read_files(self, found: Contents) -> None:
        readers: Mapping[str, Callable[[str], Any]] = {
            META_PROPERTIES: meta_in,
            QUORUM_STATE: quorum_state_in,
        }
        for name, reader in readers.items():
            if (value := _parsed(self._path(name), reader)) is not None:
                found.files[name] = value
        found.files[CLEAN_STOP] = self._path(CLEAN_STOP).exists()

    def _read_metadata(self, found: Contents) -> None:
        directory = self._metadata / _METADATA_DIRECTORY
        directory.mkdir(exist_ok=True)
        snapshot = _newest_snapshot(directory)
        if snapshot is not None:
            found.files[SNAPSHOT] = snapshot
        self._logs[METADATA], batches = _found(directory, scanned)
        start = self._logs[METADATA].start
        if batches or start:
            found.logs[METADATA] = batches
            found.log_starts[METADATA] = start

    def _find_partitions(self, directory: Path) -> None:
        for path in sorted(directory.iterdir()):
            parts = _PARTITION.fullmatch(path.name)
            if parts is None or not path.is_dir() or parts[1] == METADATA_TOPIC:
                continue
            topic_id = _parsed(path / PARTITION_NAME, topic_id_in)
            if topic_id is None:  # made, and its name not yet written: nothing was in it
                shutil.rmtree(path)
                continue
            self._found[topic_id, int(parts[2])] = (parts[1], path)

    def _take(self, partitions: Iterable[_Partition], found: Contents) -> None:
        for key, log, batches in partitions:
            self._logs[key], found.logs[key] = log, batches
            self._topics[key] = found.topics[key] = self._found[key][0]
        stated = _parsed(self._path(HIGH_WATERMARKS), offsets_in) or {}
        found.files[HIGH_WATERMARKS] = tuple(
            (key, stated[topic, key[1]])
            for key, topic in self._topics.items()
            if (topic, key[1]) in stated
        )

    def _write_high_watermarks(self, value: tuple[tuple[PartitionKey, int], ...]) -> None:
        offsets = {
            (self._topics[key], key[1]): offset for key, offset in value if key in self._topics
        }
        _replace(self._path(HIGH_WATERMARKS), offsets_text(offsets).encode())

    def _write_snapshot(self, snapshot: Snapshot) -> None:
        """The new one is whole before the old one goes."""
        path = self._path(SNAPSHOT, checkpoint_name(snapshot.end_offset, snapshot.epoch))
        _replace(path, encoded_snapshot(snapshot, time_ms=self._now_ms()))
        for other in path.parent.glob(f"*{CHECKPOINT_SUFFIX}"):
            if other != path:
                other.unlink()

    def _keep(self, kept: Path, offset: int) -> None:
        """Keep the records that go, or the newest snapshot."""
        log = self._logs[METADATA]
        newest = max(self._path(SNAPSHOT, "").glob(f"*{CHECKPOINT_SUFFIX}"))
        end, epoch = (int(part) for part in newest.stem.split("-"))
        data, last = log.below(offset)
        batches = scan_batches(data[last:]).batches
        cut = CutPrefix(
            begin=log.start,
            offset=offset,
            last=(batches[-1].last_offset + 1, batches[-1].leader_epoch) if batches else None,
            snapshot=(end, epoch),
        )
        keep(kept, cut, records=lambda: data, snapshot=newest.read_bytes)

    def _set_aside(self, directory: Path) -> None:
        """A topic may come back under its name before the old one's directory is gone."""
        for key, log in self._logs.items():
            if log.directory == directory and isinstance(key, tuple):
                aside = directory.with_name(f"{directory.name}.{text_of(key[0])}-stray")
                directory.rename(aside)
                log.directory = aside
                return

    def _count(self, directory: Path) -> int:
        return sum(log.directory.parent == directory for log in self._logs.values())

    def _path(self, name: str, own: str = "") -> Path:
        match name:
            case storage.META_PROPERTIES:
                return self._directories[0] / META_NAME
            case storage.QUORUM_STATE:
                return self._metadata / _METADATA_DIRECTORY / QUORUM_STATE_NAME
            case storage.SNAPSHOT:
                return self._metadata / _METADATA_DIRECTORY / own
            case storage.CLEAN_STOP:
                return self._directories[0] / CLEAN_STOP_NAME
            case _:
                return self._directories[0] / HIGH_WATERMARKS_NAME


def _found(directory: Path, reader: Any) -> tuple[LogFile, list[Any]]:
    try:
        return LogFile.found(directory, reader)
    except DecodeError as error:
        raise HarnessError(f"{directory}: {error}") from error


def _scanned_data(data: bytes, scan: BatchScan) -> Iterator[tuple[Batch, int]]:
    for header in scan.batches:
        yield placed(header, data), header.position + header.size_bytes


def _newest_snapshot(directory: Path) -> Snapshot | None:
    """The one that goes furthest; one that is not whole was never finished."""
    found = [
        (int(parts[1]), int(parts[2]), path)
        for path in directory.iterdir()
        if (parts := _CHECKPOINT.fullmatch(path.name))
    ]
    for end_offset, epoch, path in sorted(found, reverse=True):
        try:
            return snapshot_in(path.read_bytes(), end_offset=end_offset, epoch=epoch)
        except DecodeError:
            path.unlink()
    return None


def _parsed(path: Path, reader: Callable[[str], Any]) -> Any:
    """Return what a file says; None if it does not exist."""
    try:
        return reader(path.read_text())
    except FileNotFoundError:
        return None
    except (ValueError, UnicodeDecodeError) as error:
        raise HarnessError(f"{path}: {error}") from error


def _replace(path: Path, data: bytes) -> None:
    """Synced before it takes its name: after a power cut it is the old or the new, never empty."""
    beside = path.with_name(f"{path.name}.new")
    with beside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
