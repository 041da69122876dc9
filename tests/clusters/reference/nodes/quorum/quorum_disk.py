"""A disk that knows what is durable: a kill keeps all that was written, a power cut does not."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from clusters.node_port.effects import ADVANCE, APPEND, TRUNCATE, WRITE
from clusters.node_port.storage import METADATA, Contents, MetadataBatch

Operation = tuple[int, Any]


@dataclass(slots=True)
class _State:
    files: dict[str, Any] = field(default_factory=dict)
    batches: list[MetadataBatch] = field(default_factory=list)
    start: int = 0

    def copy(self) -> "_State":
        return _State(dict(self.files), list(self.batches), self.start)

    def perform(self, name: str, operation: Operation) -> None:
        what, value = operation
        if what == WRITE:
            self.files[name] = value
        elif what == APPEND:
            end = self.batches[-1].end_offset if self.batches else self.start
            assert value.base_offset == end, "an append leaves a gap"
            self.batches.append(value)
        elif what == TRUNCATE:
            assert value >= self.start
            self.batches = [one for one in self.batches if one.end_offset <= value]
            end = self.batches[-1].end_offset if self.batches else self.start
            assert end == value, "a truncation cuts a batch"
        elif what == ADVANCE:
            assert value >= self.start, "a log never begins earlier again"
            self.batches = [one for one in self.batches if one.base_offset >= value]
            self.start = value


class Disk:
    """What was made durable, and the operations since then, by name and in order."""

    def __init__(self) -> None:
        self._durable = _State()
        self._written: dict[str, list[Operation]] = {}
        self._synced: dict[str, int] = {}
        """How many operations of each name were made durable, ever."""

    def perform(self, name: str, what: int, value: Any) -> None:
        self._written.setdefault(name, []).append((what, value))

    def marks(self, names: tuple[str, ...]) -> dict[str, int]:
        """How much of each name a sync that begins now covers."""
        return {
            name: self._synced.get(name, 0) + len(self._written.get(name, ())) for name in names
        }

    def sync(self, marks: dict[str, int]) -> None:
        for name, mark in marks.items():
            operations = self._written.get(name, [])
            count = max(0, mark - self._synced.get(name, 0))
            for operation in operations[:count]:
                self._durable.perform(name, operation)
            del operations[:count]
            self._synced[name] = self._synced.get(name, 0) + count

    def lose_power(self, random: Random) -> None:
        """Keep what is durable, and of the rest of each file what the drive happened to have."""
        for name in sorted(self._written):
            operations = self._written[name]
            for operation in operations[: random.randrange(len(operations) + 1)]:
                self._durable.perform(name, operation)
        self._written.clear()

    def contents(self, incarnation_id: int) -> Contents:
        seen = self._durable.copy()
        for name, operations in self._written.items():
            for operation in operations:
                seen.perform(name, operation)
        return Contents(
            files=seen.files,
            logs={METADATA: seen.batches},
            log_starts={METADATA: seen.start} if seen.start else {},
            incarnation_id=incarnation_id,
        )
