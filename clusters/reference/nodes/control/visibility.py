"""The lowest acknowledged offset: what all unfenced brokers have applied. Answers wait for it.

Brokers acknowledge by the offsets of their heartbeats. These are not in the log, so a new active
controller tells none (-1) until every unfenced broker has acknowledged what was committed when it
became active: no controller before it can have told more, while a heartbeat that comes late may say
less than was told. Meanwhile brokers keep what they knew. A broker has caught up before it is
unfenced (`caught_up_at`), so that the offset never goes back.

An answer to a client's write is held, from LEVEL_VISIBILITY on, until every unfenced broker has
applied the write. Requests that wait to be decided are in a queue: first in, first out, and
bounded; reaching its bound, or its time, is a refusal with a name.

Source: the draft that adds LowestAcknowledgedOffset to BrokerHeartbeat, "Read-after-write
visibility".
"""

from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from fencepost.clusters.node_port.alarm import NEVER_NS, Alarm
from fencepost.clusters.node_port.effects import CLOSE, NOTE, SEND, Effects
from fencepost.clusters.node_port.notes import ACKNOWLEDGED_METADATA
from fencepost.clusters.reference.nodes.image import MetadataImage, Registration
from fencepost.clusters.reference.nodes.levels import LEVEL_VISIBILITY
from fencepost.clusters.reference.nodes.messages.control import (
    AlterConfigsRequest,
    AlterReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    ListReassignmentsRequest,
    UpdateFeaturesRequest,
)
from fencepost.clusters.reference.nodes.rules import Rules

UNKNOWN: Final = -1
WAITING_MAX: Final = 1_000
"""Requests in the queue; a broker has a handful on their way, so that only a fault brings more."""
_CLIENT_WRITES: Final[dict[int, str]] = {
    CreateTopicsRequest.kind: "CreateTopics",
    CreatePartitionsRequest.kind: "CreatePartitions",
    DeleteTopicsRequest.kind: "DeleteTopics",
    AlterConfigsRequest.kind: "AlterConfigs",
    AlterReassignmentsRequest.kind: "AlterReassignments",
    ElectLeadersRequest.kind: "ElectLeaders",
    UpdateFeaturesRequest.kind: "UpdateFeatures",
}
"""The names of clients' writes, by kind."""
_HELD: Final = frozenset((*_CLIENT_WRITES, ListReassignmentsRequest.kind))
"""The kinds of requests whose answers wait: they show to a client what has been decided."""


class AcknowledgedOffsets:
    """The offsets that brokers have acknowledged to this active controller; all are ends."""

    __slots__ = ("_acknowledged", "_joining", "_rules", "_since", "answered", "lowest")

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._acknowledged: dict[int, int] = {}
        self._joining: dict[int, None] = {}
        """Brokers whose unfencing is decided and not committed: they count as unfenced, or the
        offset would move past what they were found to have."""
        self._since = 0
        """The committed offset when this controller became active."""
        self.lowest = UNKNOWN
        self.answered = 0
        """The end of the records of the last client's write that was answered."""

    def restart(self, image: MetadataImage) -> None:
        """A new active controller knows nothing."""
        self._since = image.offset
        self._acknowledged.clear()
        self._joining.clear()
        self.lowest = UNKNOWN
        self.answered = 0

    def acknowledge(self, broker_id: int, offset: int) -> None:
        """A broker has applied all below this offset; heartbeats may overtake each other."""
        if offset > self._acknowledged.get(broker_id, UNKNOWN):
            self._acknowledged[broker_id] = offset

    def forget(self, broker_id: int) -> None:
        """Forget a broker that registered anew: its offsets begin again."""
        self._acknowledged.pop(broker_id, None)
        self._joining.pop(broker_id, None)

    def join(self, broker_id: int) -> None:
        """Note that a broker is decided to be unfenced."""
        self._joining[broker_id] = None

    def joined(self, broker_id: int) -> None:
        """Note that the decision about a broker is committed."""
        self._joining.pop(broker_id, None)

    def acknowledged_by(self, broker_id: int) -> int:
        """Return what a broker has acknowledged, or UNKNOWN."""
        return self._acknowledged.get(broker_id, UNKNOWN)

    def update(self, image: MetadataImage) -> None:
        """Find the lowest offset anew: a broker acknowledged something, or was (un)fenced.

        Below LEVEL_VISIBILITY it is UNKNOWN: no broker is told it, and one that is unfenced
        meanwhile need not have reached it.
        """
        if image.level < LEVEL_VISIBILITY:
            self.lowest = UNKNOWN
            return
        offsets = [
            self._acknowledged.get(broker_id, UNKNOWN)
            for broker_id, one in image.brokers.items()
            if not one.fenced or broker_id in self._joining
        ]
        if not offsets or UNKNOWN in offsets:
            return
        # Rule lowest_of_all.
        found = min(offsets) if self._rules.lowest_of_all else max(offsets)
        # Rule lowest_never_back.
        if not self._rules.lowest_never_back or found >= max(self.lowest, self._since):
            self.lowest = found

    def applied_by_all(self, image: MetadataImage, end_offset: int) -> bool:
        """Return whether every unfenced broker has applied all below this offset."""
        return all(
            self._acknowledged.get(broker_id, UNKNOWN) >= end_offset
            for broker_id, one in image.brokers.items()
            if not one.fenced or broker_id in self._joining
        )

    def caught_up_at(self, image: MetadataImage, registration: Registration, committed: int) -> int:
        """The offset that a broker needs to be unfenced.

        It has to have applied its own registration. With LEVEL_VISIBILITY it needs besides all that
        was `committed` when it asked, all that others show by now, and every write that a client
        was told of.
        """
        # Rule unfenced_when_caught_up.
        if not self._rules.unfenced_when_caught_up:
            return 0
        own = registration.offset + 1
        # Rule lowest_never_back: who is unfenced has caught up first.
        if image.level < LEVEL_VISIBILITY or not self._rules.lowest_never_back:
            return own
        return max(own, committed, self.lowest, self.answered)


class Waiting:
    """A request on its way to its answer."""

    __slots__ = ("committed", "deadline", "request", "source")

    def __init__(self, source: int, request: Any, deadline: int, committed: int) -> None:
        self.source = source
        self.request = request
        self.deadline = deadline
        self.committed = committed
        """The end of what was committed when it came."""


class PendingAnswers:
    """The answers to clients' writes and lists of moves, given when every broker knows as much."""

    __slots__ = ("_alarm", "_held", "_rules", "_visibility")

    def __init__(self, rules: Rules, visibility: AcknowledgedOffsets, alarm: Alarm) -> None:
        self._alarm = alarm
        self._rules = rules
        self._visibility = visibility
        self._held: deque[tuple[int, Waiting, Any, bool]] = deque()

    def give(
        self,
        image: MetadataImage,
        waiting: Waiting,
        response: Any,
        *,
        end_offset: int,
        wrote: bool,
        effects: Effects,
    ) -> None:
        """Answer a decided request now, or once all brokers have applied all below `end_offset`.

        An answer that wrote nothing is held as well: it may say that something is as it was asked
        for, by another client's write that not every broker shows yet.
        """
        # Rule write_waits.
        holds = self._rules.write_waits and image.level >= LEVEL_VISIBILITY
        if holds and waiting.request.kind in _HELD:
            self._held.append((end_offset, waiting, response, wrote))
            self._alarm.by(waiting.deadline)
            self.release(image, effects)
        else:
            self.send(waiting, response, end_offset=end_offset, wrote=wrote, effects=effects)

    def send(
        self, waiting: Waiting, response: Any, *, end_offset: int, wrote: bool, effects: Effects
    ) -> None:
        """Answer at once."""
        kind = waiting.request.kind
        effects.append((SEND, waiting.source, response))
        if kind in _HELD:
            self._visibility.answered = max(self._visibility.answered, end_offset)
            if wrote:
                effects.append(
                    (NOTE, ACKNOWLEDGED_METADATA, end_offset, kind, _described(waiting.request))
                )

    def release(self, image: MetadataImage, effects: Effects) -> None:
        """Give the answers that need not wait any more; they are in the order of their offsets."""
        held = self._held
        while held and self._visibility.applied_by_all(image, held[0][0]):
            end_offset, waiting, response, wrote = held.popleft()
            self.send(waiting, response, end_offset=end_offset, wrote=wrote, effects=effects)

    def expire(self, now: int, effects: Effects) -> None:
        """Close those whose time is over: they hold, but a broker does not say that it shows them.

        Its lease is longer than that at most in a cluster that is configured so.
        """
        held = self._held
        while held and held[0][1].deadline <= now:
            effects.append((CLOSE, held.popleft()[1].source))

    def next_due(self) -> int:
        """Return when the first of them has been held for long enough."""
        return self._held[0][1].deadline if self._held else NEVER_NS

    def abandon(self, effects: Effects) -> None:
        """Close the held answers: this controller is not active any more."""
        effects.extend((CLOSE, waiting.source) for _, waiting, _, _ in self._held)
        self._held.clear()


def _described(request: Any) -> str:
    """Return the subject of a write, for observers: its name, and what it names."""
    return f"{_CLIENT_WRITES[request.kind]} {', '.join(_subjects(request))}"


def _subjects(request: Any) -> Iterable[str]:
    match request:
        case CreateTopicsRequest():
            return (topic.name for topic in request.topics)
        case CreatePartitionsRequest():
            return (f"{topic.name}: {topic.count}" for topic in request.topics)
        case DeleteTopicsRequest():
            return (name or f"{topic_id:032x}" for name, topic_id in request.topics)
        case AlterConfigsRequest():
            return (f"{where}: {name}={value}" for _, where, name, value in request.changes)
        case AlterReassignmentsRequest():
            return (f"{topic}-{partition}" for topic, partition, _ in request.moves)
        case ElectLeadersRequest():
            return (f"{topic}-{partition}" for topic, partition in request.partitions or ())
        case _:
            return (f"{name}={level}" for name, level in request.updates)
