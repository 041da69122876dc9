"""A disk: logs of batches and small files, and of both what would survive the loss of power.

What a process has written survives its death. Without power there is left what was synced, and of
the rest a random part: of a log a prefix of what was appended since (a batch that is torn counts as
lost, since its checksum fails), of a file either value. A truncation that was not synced may be
undone. Dropping the beginning of a log cannot: who does that before the snapshot is safe, loses it.

A log of a partition has segments, and one is flushed when the next one begins. So after a crash
only its last segment is read before it is used. That takes a time by the length of the segment,
however old the log is.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

from fencepost.clusters.node_port.batches import Batches
from fencepost.clusters.node_port.storage import METADATA, Contents, FileName, LogName, PartitionKey

Keeps = Callable[[list[Any], int], None]
"""(batches, offset): hears of what is dropped below an offset, at which a log begins now."""

Mark = list[tuple[Any, ...]]
"""The state that a sync makes durable: (name, log, count, generation), (name, None, value, 0)."""

_ABSENT: Final = object()

_LOG_RECOVERY_NS: Final = 5_000_000
"""The time that it takes to open a partition's log and to build its indices."""
_BATCH_RECOVERY_NS: Final = 100_000
"""The time that it takes to read a batch and to compare its checksum."""
_SEGMENT_BATCHES: Final = 4096
"""The length of a segment on the disk."""


class _Log:
    __slots__ = ("batches", "cut", "dropped", "generation", "synced")

    def __init__(self) -> None:
        self.batches = Batches()
        self.synced = 0
        """The number of durable batches, dropped ones included."""
        self.dropped = 0
        """Batches that were there before the first one."""
        self.cut: Batches | None = None
        """The durable content before a truncation that is not durable."""
        self.generation = 0
        """Counts truncations: a sync that began before one says nothing of what came after."""

    def copy(self) -> "_Log":
        log = _Log()
        log.batches = Batches(self.batches)
        log.synced = len(self.batches)
        return log


class Disk:
    """The content of a disk. `draw` gives numbers from 0 to 1, for the loss of power."""

    def __init__(self, draw: Callable[[], float]) -> None:
        self._draw = draw
        self._logs: dict[LogName, _Log] = {}
        self._files: dict[FileName, Any] = {}
        self._durable: dict[FileName, Any] = {}
        self._topics: dict[PartitionKey, str] = {}
        self._starts: dict[LogName, int] = {}
        self._copies: dict[str, Disk] = {}
        self._keeps: Keeps | None = None

    def keep(self, keeps: Keeps) -> None:
        """Have `keeps` told whenever the metadata log begins anew, whatever became of it before."""
        self._keeps = keeps

    def contents(self, incarnation_id: int) -> Contents:
        """Return what a starting node finds."""
        return Contents(
            files=dict(self._files),
            logs={name: Batches(log.batches) for name, log in self._logs.items()},
            topics=dict(self._topics),
            log_starts=dict(self._starts),
            incarnation_id=incarnation_id,
        )

    @property
    def recovery_ns(self) -> int:
        """Return how long it takes to recover the partitions' logs after a crash."""
        counts = [
            len(log.batches) % _SEGMENT_BATCHES
            for name, log in self._logs.items()
            if name != METADATA
        ]
        return len(counts) * _LOG_RECOVERY_NS + sum(counts) * _BATCH_RECOVERY_NS

    def start_of(self, name: LogName) -> int:
        """Return the offset at which a log begins."""
        return self._starts.get(name, 0)

    def batches(self, name: LogName) -> Sequence[Any]:
        """Return the batches of a log, not to be changed. Empty if the log does not exist."""
        log = self._logs.get(name)
        if log is None:
            return ()
        return log.batches if log.batches.full_count else log.batches.last

    @property
    def files(self) -> Mapping[FileName, Any]:
        """The files that are there."""
        return self._files

    @property
    def topics(self) -> Mapping[PartitionKey, str]:
        """The topics of the partitions' logs that are there, by log."""
        return self._topics

    @property
    def batch_count(self) -> int:
        """Return the number of batches in all logs."""
        return sum(len(log.batches) for log in self._logs.values())

    def append(self, name: LogName, batch: Any) -> None:
        """Put a batch at the end of a log."""
        log = self._logs.get(name)
        if log is None:
            log = self._logs[name] = _Log()
        log.batches.append(batch)
        if not len(log.batches) % _SEGMENT_BATCHES and name != METADATA:
            log.synced = log.dropped + len(log.batches)
            log.cut = None

    def extend(self, name: PartitionKey, batches: Sequence[Any]) -> None:
        """Put batches at the end of a partition's log."""
        log = self._logs.get(name)
        if log is None:
            log = self._logs[name] = _Log()
        before = len(log.batches)
        log.batches.extend(batches)
        flushed = len(log.batches) // _SEGMENT_BATCHES * _SEGMENT_BATCHES
        if flushed > before:
            log.synced = log.dropped + flushed
            log.cut = None

    def truncate(self, name: LogName, offset: int) -> None:
        """Drop the batches at this offset and above."""
        log = self._logs[name]
        kept = log.batches.count_before(offset)
        durable = log.synced - log.dropped
        if kept < durable:
            if log.cut is None:
                log.cut = Batches(log.batches)
                log.cut.truncate(durable)
            log.synced = log.dropped + kept
        if kept < len(log.batches):
            log.batches.truncate(kept)
            log.generation += 1

    def advance(self, name: LogName, offset: int) -> None:
        """Drop the batches wholly below this offset, where the log begins now."""
        log = self._logs.setdefault(name, _Log())
        first = sum(1 for _ in takewhile(lambda batch: batch.end_offset <= offset, log.batches))
        if name == METADATA and self._keeps is not None:
            self._keeps(log.batches[:first], offset)
        log.batches = Batches(log.batches[first:])
        log.dropped += first
        log.synced = max(log.synced, log.dropped)
        log.cut = None
        self._starts[name] = offset

    def create(self, name: PartitionKey, topic: str) -> None:
        """Make the directory of a log."""
        self._topics[name] = topic
        self._logs.setdefault(name, _Log())

    def delete(self, name: LogName) -> None:
        """Remove a log and its directory."""
        self._logs.pop(name, None)
        self._starts.pop(name, None)
        if not isinstance(name, str):
            self._topics.pop(name, None)

    def write(self, name: FileName, value: Any) -> None:
        """Replace a file."""
        self._files[name] = value

    def format(self, files: dict[FileName, Any]) -> None:
        """Leave nothing but these files, durably. Copies stay: they lie elsewhere."""
        self._logs, self._topics, self._starts = {}, {}, {}
        self._files, self._durable = dict(files), dict(files)

    def mark(self, names: tuple[Any, ...]) -> Mark:
        """Return what a sync that begins now will have made durable when it is done."""
        found: Mark = []
        for name in names:
            log = self._logs.get(name)
            if log is not None:
                found.append((name, log, log.dropped + len(log.batches), log.generation))
            elif name in self._files:
                found.append((name, None, self._files[name], 0))
        return found

    def synced(self, mark: Mark) -> None:
        """A sync is done."""
        for name, log, value, generation in mark:
            if log is None:
                self._durable[name] = value
            elif log.generation == generation:
                log.synced = max(log.synced, value)
                log.cut = None

    def lose_power(self) -> None:
        """Forget a random part of what was not synced."""
        for log in self._logs.values():
            durable = log.synced - log.dropped
            if log.cut is not None and self._draw() < 0.5:  # noqa: PLR2004  # either way
                log.batches = log.cut
            else:
                kept = durable + int(self._draw() * (len(log.batches) - durable + 1))
                log.batches.truncate(kept)
            log.synced = log.dropped + len(log.batches)
            log.cut = None
            log.generation += 1
        for name in list(self._files):
            durable_value = self._durable.get(name, _ABSENT)
            if durable_value is not self._files[name] and self._draw() < 0.5:  # noqa: PLR2004
                self._put_back(name, durable_value)
        self._durable = dict(self._files)

    def snapshot(self, label: str) -> None:
        """Keep a copy of all under this label, in place of an older one."""
        self._copies[label] = self._copy()

    def rollback(self, label: str) -> None:
        """Restore the content of the copy, durably. Raises KeyError if no such copy exists."""
        copy = self._copies[label]._copy()  # noqa: SLF001  # another one of its kind
        self._logs, self._files, self._durable = copy._logs, copy._files, copy._durable  # noqa: SLF001
        self._topics, self._starts = copy._topics, copy._starts  # noqa: SLF001

    def _copy(self) -> "Disk":
        copy = Disk(self._draw)
        copy._logs = {name: log.copy() for name, log in self._logs.items()}
        copy._files, copy._durable = dict(self._files), dict(self._files)
        copy._topics, copy._starts = dict(self._topics), dict(self._starts)
        return copy

    def _put_back(self, name: FileName, value: Any) -> None:
        if value is _ABSENT:
            del self._files[name]
        else:
            self._files[name] = value
