"""Readers and changers of metadata in a trial: nodes of the world that note for the oracle.

Where the trial is recorded, they write down what they were told, as the metadata workload does.
"""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from fencepost.clusters.node_port.effects import NOTE, SEND, START, TICK, UNREACHABLE, Effects
from fencepost.clusters.node_port.notes import READ_BEGAN, READ_METADATA
from fencepost.clusters.reference.nodes.levels import METADATA_VERSION
from fencepost.clusters.reference.nodes.messages.client import (
    ApiVersionsRequest,
    MetadataRequest,
    MetadataResponse,
)
from fencepost.clusters.reference.nodes.messages.control import (
    AlterConfigsRequest,
    AlterReassignmentsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    NewTopic,
    UpdateFeaturesRequest,
)
from fencepost.clusters.simulation.world import WAKE
from fencepost.history.counter import COUNTER_SETTING, counter_of, counter_value
from fencepost.history.journal import EventJournal
from fencepost.history.operation import Outcome
from fencepost.workloads.generators.topic_lives import MetadataF
from fencepost.workloads.simulated.metadata_writer import told

_MS: Final = 1_000_000
_READ_NS: Final = 150 * _MS
_TIMEOUT_NS: Final = 4_000 * _MS
_WRITE_NS: Final = 700 * _MS
_TOPIC: Final = 2


class WriteBook:
    """The rows of `metadata_writes`, one a change, from its call to its answer, in world ns."""

    def __init__(self, raw: Path, *, process: int, node_of: Callable[[int], str]) -> None:
        """Open the journal in `raw`, the run's raw directory; `process`: the administrator's."""
        self.journal = EventJournal(raw, "metadata_writes", writer="administrator")
        self._process = process
        self._node_of = node_of
        self._open: dict[int, int] = {}
        """The numbers of those that have no answer yet, by correlation."""
        self.created: list[str] = []
        """The topics that were asked for, in order."""
        self.count = 0
        """The rows."""

    def called(self, now: int, broker: int, change: Any) -> None:
        """Record a change that is asked for; of some kinds the table has no rows."""
        columns = _written(change)
        if columns is not None:
            if columns["f"] is MetadataF.CREATE:
                self.created.append(str(columns["topic"]))
            asked = {"process": self._process, "node": self._node_of(broker), "call_ns": now}
            self._open[change.correlation] = self.journal.begin(asked | columns)
            self.count += 1

    def returned(self, now: int, answer: Any) -> None:
        """Record an answer: an error may have come after the change was done."""
        number = self._open.pop(answer.correlation, None)
        if number is None:
            return
        error, topic_id = told(answer)
        ended: dict[str, object] = {
            "outcome": Outcome.INFO if error else Outcome.OK,
            "return_ns": now,
        }
        self.journal.end(number, ended | ({"topic_id": topic_id} if topic_id else {}))


class MetadataReader:
    """A reader that asks one broker after the other what it shows, one read open at a time."""

    idle = True

    def __init__(
        self,
        brokers: Sequence[int],
        *,
        seed: int,
        told: Callable[[int, int, int, MetadataResponse], None] | None = None,
    ) -> None:
        """`told`: the function that records a read by broker, call and return in ns, and answer."""
        self._brokers = brokers
        self._told = told
        self._draw = random.Random(f"reader/{seed}")  # noqa: S311
        self._correlation = 0
        self._asked: tuple[int, int] | None = None
        """The open read: when it began, and of whom."""

    def give_up(self) -> None:
        """Do nothing: it has nothing to end."""

    def handle(self, now: int, _source: int, kind: int, message: Any, effects: Effects) -> None:
        """Take an event of the world."""
        if kind in (TICK, START):
            if self._asked is None or now - self._asked[0] > _TIMEOUT_NS:
                self._ask(now, effects)
            effects.append((WAKE, now + _READ_NS))
        elif self._asked is None or message.correlation != self._correlation:
            return
        elif kind == MetadataResponse.kind:
            note = (NOTE, READ_METADATA, self._correlation, self._asked[1], message.metadata_offset)
            effects.append(note)
            if self._told is not None:
                self._told(self._asked[1], self._asked[0], now, message)
            self._asked = None
        else:
            self._asked = None

    def _ask(self, now: int, effects: Effects) -> None:
        self._correlation += 1
        broker = self._brokers[int(self._draw.random() * len(self._brokers))]
        self._asked = (now, broker)
        request: MetadataRequest | ApiVersionsRequest
        if self._correlation % 2:
            effects.append((NOTE, READ_BEGAN, self._correlation))
            request = MetadataRequest(self._correlation, None)
        else:
            request = ApiVersionsRequest(self._correlation)
        effects.append((SEND, broker, request))


class Administrator:
    """An administrator that changes something through some broker now and then, answered or not."""

    idle = True

    def __init__(
        self,
        brokers: Sequence[int],
        *,
        seed: int,
        moved: tuple[str, int, tuple[int, ...]] | None,
        upgrades_to: int | None,
        writes: WriteBook | None = None,
    ) -> None:
        """`writes`: the book in which they are written down."""
        self._brokers = brokers
        self._writes = writes
        self._draw = random.Random(f"administrator/{seed}")  # noqa: S311
        self._moved = moved
        self._upgrades_to = upgrades_to
        self._correlation = 0
        self._topics: list[str] = []
        self._altered_count = 0
        """Of its one topic with settings: each change carries it (`checkers.metadata.write_numbers`
        misses one by it)."""

    def give_up(self) -> None:
        """Do nothing: it has nothing to end."""

    def handle(self, now: int, _source: int, kind: int, message: Any, effects: Effects) -> None:
        """Take an event of the world."""
        if kind == TICK:
            self._correlation += 1
            broker = self._brokers[int(self._draw.random() * len(self._brokers))]
            change = self._change()
            effects.append((SEND, broker, change))
            if self._writes is not None:
                self._writes.called(now, broker, change)
        if kind in (TICK, START):
            wait_ns = int(_WRITE_NS * (0.5 + self._draw.random()))
            effects.append((WAKE, now + wait_ns))
        elif kind != UNREACHABLE and self._writes is not None:
            self._writes.returned(now, message)

    def _change(self) -> Any:
        draw, number = self._draw, self._correlation
        if self._upgrades_to is not None and number % 4 == 0:
            return UpdateFeaturesRequest(number, ((METADATA_VERSION, self._upgrades_to),))
        what = int(draw.random() * 5)
        if what == 0:
            name = f"x-{number}"
            self._topics.append(name)
            topic = NewTopic(name, 1, min(2, len(self._brokers)))
            return CreateTopicsRequest(number, (topic,), _TIMEOUT_NS)
        if what == 1 and self._topics:
            return DeleteTopicsRequest(number, ((self._topics.pop(0), -1),), _TIMEOUT_NS)
        if what == 2:  # noqa: PLR2004
            return ElectLeadersRequest(number, unclean=False, partitions=None)
        if what == 3 and self._moved is not None:  # noqa: PLR2004
            topic_name, partition, replicas = self._moved
            order = list(replicas)
            draw.shuffle(order)
            return AlterReassignmentsRequest(number, ((topic_name, partition, tuple(order)),))
        value = counter_value(self._altered_count)
        self._altered_count += 1
        return AlterConfigsRequest(number, ((_TOPIC, "t", COUNTER_SETTING, value),))


def _written(change: Any) -> dict[str, object] | None:
    match change:
        case CreateTopicsRequest():
            return {"f": MetadataF.CREATE, "topic": change.topics[0].name}
        case DeleteTopicsRequest():
            return {"f": MetadataF.DELETE, "topic": change.topics[0][0]}
        case AlterConfigsRequest():
            _, topic, _, value = change.changes[0]
            return {"f": MetadataF.ALTER, "topic": topic, "config_value": counter_of(value)}
        case _:
            return None
