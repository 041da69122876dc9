"""Requests that wait to be decided, and answers that wait to be given.

The queue is first in, first out, and bounded; reaching its bound, or its time, is a refusal with a
name. An answer to a client's write is held, from LEVEL_VISIBILITY on, until every unfenced broker
has applied the write.
"""

from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from clusters.node_port.alarm import NEVER_NS, Alarm
from clusters.node_port.effects import CLOSE, NOTE, SEND, Effects
from clusters.node_port.notes import ACKNOWLEDGED_METADATA
from clusters.reference.nodes.control.visibility import AcknowledgedOffsets
from clusters.reference.nodes.image import MetadataImage
from clusters.reference.nodes.levels import LEVEL_VISIBILITY
from clusters.reference.nodes.messages.control import (
    AlterConfigsRequest,
    AlterReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    UpdateFeaturesRequest,
)
from clusters.reference.nodes.rules import Rules

__all__ = ["WAITING_MAX", "PendingAnswers", "Waiting"]

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
"""Their names by kind."""


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
    """The answers to clients' writes, given when every broker shows what was written."""

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
        if holds and waiting.request.kind in _CLIENT_WRITES:
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
        if kind in _CLIENT_WRITES:
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
