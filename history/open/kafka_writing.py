"""Operations of Kafka's clients to lines: complete ones in JSON, or Jepsen's events.

A Jepsen process has one operation open at a time, while sends of a producer overlap. Those that do
are given to further processes, numbered from above all of the history: each keeps some of the
producer's sends in their order. An info operation ends where its process is next seen.

A session of a key that ends is told by an assign without the key, and one with it; under subscribe
by a subscribe, which ends all of the process.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from fencepost.history.open.edn import Keyword, edn_text
from fencepost.history.open.lines import json_text
from fencepost.history.open.scalars import Originals, key_of
from fencepost.history.operation import F, Outcome

_Row = dict[str, Any]
_Operations = Iterable[tuple[_Row, list[_Row]]]
_NEVER_NS: Final = 1 << 63


def kafka_lines(operations: _Operations, *, originals: Originals) -> Iterator[str]:
    """Yield a JSON object an operation; what is null is left out."""
    for operation, records in operations:
        line = {
            name: operation[name]
            for name in ("index", "process", "f", "call_ns", "return_ns", "outcome", "error")
        }
        line["key"] = None if operation["key"] is None else key_of(operation["key"])
        line["records"] = [
            (
                key_of(row["key"]),
                row["offset"],
                originals.value(row["key"], row["value"]),
                row["session"],
            )
            for row in records
        ]
        yield json_text({name: item for name, item in line.items() if item is not None}) + "\n"


def kafka_edn(operations: _Operations, *, originals: Originals, subscribed: bool) -> Iterator[str]:
    """Yield events in EDN, as jepsen.tests.kafka has them."""
    for index, event in enumerate(_events(operations, originals, subscribed=subscribed)):
        fields = {Keyword("index"): index, **{Keyword(k): v for k, v in event.items()}}
        for name in ("type", "f"):
            fields[Keyword(name)] = Keyword(event[name])
        yield edn_text(fields) + "\n"


def kafka_json_events(
    operations: _Operations, *, originals: Originals, subscribed: bool
) -> Iterator[str]:
    """Yield events in JSON, where what a poll returned is an array of keys with their records."""
    for index, event in enumerate(_events(operations, originals, subscribed=subscribed)):
        value = tuple(
            (
                step[0].name,
                *(tuple(part.items()) if isinstance(part, dict) else part for part in step[1:]),
            )
            if isinstance(step, tuple)
            else step
            for step in event["value"]
        )
        yield json_text({"index": index, **event, "value": value}) + "\n"


@dataclass(slots=True)
class _Consumer:
    """The keys that a consumer was told to read, and their sessions."""

    keys: set[str] = field(default_factory=set)
    sessions: dict[str, int] = field(default_factory=dict)


class _Story:
    """The events in the order of their times, operation after operation."""

    def __init__(self, originals: Originals, *, subscribed: bool) -> None:
        self._originals = originals
        self._ownership = "subscribe" if subscribed else "assign"
        self._ends: list[tuple[int, int, _Row]] = []
        self._open: dict[int, _Row] = {}
        # Of each client the processes that stand in for it, by the time they are free from.
        self._lanes: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._consumers: dict[int, _Consumer] = defaultdict(_Consumer)
        self._following = 0
        self._last_ns = 0

    def events(self, operations: _Operations) -> Iterator[_Row]:
        listed = list(operations)
        self._following = 1 + max((row["process"] for row, _ in listed), default=0)
        for number, (operation, records) in enumerate(listed):
            yield from self._ended_before(operation["call_ns"])
            process = self._lane(operation)
            yield from self._told_early(process, operation["call_ns"])
            yield from self._owned(operation, records, process)
            begin, end = self._pair(operation, records, process)
            yield begin
            self._open[process] = end
            if operation["return_ns"] is not None:
                heapq.heappush(self._ends, (operation["return_ns"], number, end))
            self._last_ns = max(self._last_ns, operation["call_ns"], operation["return_ns"] or 0)
        yield from self._ended_before(_NEVER_NS)
        for end in self._open.values():
            yield end | {"time": self._last_ns}

    def _lane(self, operation: _Row) -> int:
        """Return a process that is free at the call.

        It is the client's own, or one that stands in for it.
        """
        lanes = self._lanes[operation["process"]]
        if not lanes:
            heapq.heappush(lanes, (0, operation["process"]))
        until = _NEVER_NS if operation["return_ns"] is None else operation["return_ns"]
        if lanes[0][0] <= operation["call_ns"]:
            _, process = heapq.heappop(lanes)
        else:
            process, self._following = self._following, self._following + 1
        heapq.heappush(lanes, (until, process))
        return process

    def _ended_before(self, time_ns: int) -> Iterator[_Row]:
        while self._ends and self._ends[0][0] < time_ns:
            _, _, end = heapq.heappop(self._ends)
            if self._open.get(end["process"]) is end:
                yield self._open.pop(end["process"])

    def _told_early(self, process: int, time_ns: int) -> Iterator[_Row]:
        """Yield the end of what this process has open: at this very moment, or an info."""
        if process in self._open:
            yield self._open.pop(process) | {"time": time_ns}

    def _owned(self, operation: _Row, records: list[_Row], process: int) -> Iterator[_Row]:
        """Yield assigns, before a poll of keys that are new to the consumer, or came back to it."""
        if operation["f"] == F.SEND:
            return
        consumer = self._consumers[process]
        sessions = {row["key"]: row["session"] for row in records}
        back = {
            key
            for key, session in sessions.items()
            if consumer.sessions.get(key, session) != session
        }
        new = sessions.keys() - consumer.keys
        if back and self._ownership == "assign":
            yield from self._assign(consumer.keys - back, process, operation["call_ns"])
        first = not consumer.keys
        consumer.keys |= new
        if back or (new and (first or self._ownership == "assign")):
            yield from self._assign(consumer.keys, process, operation["call_ns"])
        consumer.sessions |= sessions

    def _assign(self, keys: set[str], process: int, time_ns: int) -> Iterator[_Row]:
        value = tuple(key_of(key) for key in sorted(keys))
        for kind in ("invoke", "ok"):
            yield {
                "time": time_ns,
                "type": kind,
                "process": process,
                "f": self._ownership,
                "value": value,
            }

    def _pair(self, operation: _Row, records: list[_Row], process: int) -> tuple[_Row, _Row]:
        shared = {"process": process, "f": operation["f"]}
        asked, answered = self._values(operation, records)
        begin = {"time": operation["call_ns"], "type": "invoke", **shared, "value": asked}
        end = {
            "time": operation["return_ns"],
            "type": operation["outcome"],
            **shared,
            "value": answered,
        }
        if operation["error"] is not None:
            end["error"] = operation["error"]
        return begin, end

    def _values(self, operation: _Row, records: list[_Row]) -> tuple[Any, Any]:
        if operation["f"] == F.SEND:
            asked = tuple(
                (Keyword("send"), key_of(row["key"]), self._value(row)) for row in records
            )
            answered = tuple(
                (Keyword("send"), key_of(row["key"]), (row["offset"], self._value(row)))
                for row in records
            )
            known = operation["outcome"] == Outcome.OK or any(
                row["offset"] is not None for row in records
            )
            return asked, answered if known else asked
        polled: dict[Any, list[Any]] = {}
        if operation["key"] is not None:
            polled[key_of(operation["key"])] = []
        for row in records:
            polled.setdefault(key_of(row["key"]), []).append((row["offset"], self._value(row)))
        return ((Keyword("poll"),),), ((Keyword("poll"), polled),)

    def _value(self, row: _Row) -> Any:
        return self._originals.value(row["key"], row["value"])


def _events(operations: _Operations, originals: Originals, *, subscribed: bool) -> Iterator[_Row]:
    return _Story(originals, subscribed=subscribed).events(operations)
