"""The requests that brokers pass on to the active controller, and the answers they bring back.

A request that the controller refuses because it is not active is sent again: it decided nothing. A
request that is lost may have been decided, so its client hears nothing: its connection is closed.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, Protocol

from fencepost.clusters.node_port.effects import CLOSE, SEND, Effects
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages import control
from fencepost.clusters.reference.nodes.situation import Situation

_NOT_CONTROLLER: Final = int(Error.NOT_CONTROLLER)
_REQUESTS_MAX: Final = 1_000
"""The most requests under way; the connection of one more is closed."""


def _whole(response: Any) -> bool:
    return bool(response.error == _NOT_CONTROLLER)


def _any_topic(response: Any) -> bool:
    return any(one[2] == _NOT_CONTROLLER for one in response.topics)


def _any_growth(response: Any) -> bool:
    return any(one[1] == _NOT_CONTROLLER for one in response.topics)


def _any_resource(response: Any) -> bool:
    return any(one[2] == _NOT_CONTROLLER for one in response.resources)


_ASKED_AMISS: Final[Mapping[int, Callable[[Any], bool]]] = {
    control.CreateTopicsResponse.kind: _any_topic,
    control.CreatePartitionsResponse.kind: _any_growth,
    control.DeleteTopicsResponse.kind: _any_topic,
    control.AlterConfigsResponse.kind: _any_resource,
    control.AlterReassignmentsResponse.kind: _whole,
    control.ElectLeadersResponse.kind: _whole,
    control.UpdateFeaturesResponse.kind: _whole,
    control.ListReassignmentsResponse.kind: _whole,
    control.DescribeQuorumResponse.kind: _whole,
}
"""Checks, by kind, whether a response comes from a controller that is not active."""

FORWARDED: Final = frozenset(kind - 1 for kind in _ASKED_AMISS)
"""The kinds of the requests that are passed on."""


class _Forwarded:
    """One request under way."""

    __slots__ = ("deadline_ns", "is_last", "is_sent", "not_before_ns", "request", "source")

    def __init__(self, source: int | None, request: Any, deadline_ns: int) -> None:
        self.source = source
        """None: the broker itself asks, and reads the outcome from the metadata."""
        self.request = request
        self.deadline_ns = deadline_ns
        self.is_sent = False
        self.is_last = False
        """True if its client's connection is closed once it is answered."""
        self.not_before_ns = 0


class ForController(Protocol):
    """The way of clients' requests that the controller alone decides."""

    def forward(self, now: int, source: int | None, request: Any, effects: Effects) -> None:
        """Take a client's request; source None: the broker itself asks."""

    def answered(self, now: int, response: Any, effects: Effects) -> None:
        """The controller answered a request that was sent to it."""

    def unreachable(self, request: Any, effects: Effects) -> None:
        """A request that was sent to the controller came back."""

    def tick(self, now: int, effects: Effects) -> None:
        """Send what waits for a controller; give up what waited for too long."""

    def finish(self) -> frozenset[int]:
        """Clients are to connect anew: those that wait here, once they are answered."""

    def close(self, effects: Effects) -> None:
        """Answer no client any more."""


class Forwarding:
    """The requests that a broker has passed on to another node."""

    __slots__ = ("_correlation", "_situation", "_under_way")

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._under_way: dict[int, _Forwarded] = {}
        """The forwarded requests by the correlation that the controller sees."""
        self._correlation = 0

    def forward(self, now: int, source: int | None, request: Any, effects: Effects) -> None:
        """Pass a request on, as soon as a controller is known."""
        if len(self._under_way) >= _REQUESTS_MAX:
            _close(source, effects)
            return
        self._correlation += 1
        deadline_ns = now + self._situation.configuration.request_timeout_ns
        forwarded = _Forwarded(source, request, deadline_ns)
        self._under_way[self._correlation] = forwarded
        self._situation.alarm.by(deadline_ns)
        self._send(self._correlation, forwarded, effects)

    def answered(self, now: int, response: Any, effects: Effects) -> None:
        """Bring the controller's answer to the client."""
        forwarded = self._under_way.get(response.correlation)
        if forwarded is None:
            return
        if _ASKED_AMISS[response.kind](response):
            forwarded.is_sent = False
            forwarded.not_before_ns = now + self._situation.configuration.retry_backoff_ns
            self._situation.alarm.by(forwarded.not_before_ns)
            return
        del self._under_way[response.correlation]
        if forwarded.source is not None:
            answer = replace(response, correlation=forwarded.request.correlation)
            effects.append((SEND, forwarded.source, answer))
            if forwarded.is_last and forwarded.source not in self._sources():
                effects.append((CLOSE, forwarded.source))

    def unreachable(self, request: Any, effects: Effects) -> None:
        """The controller is gone; whether it had decided is not known."""
        forwarded = self._under_way.pop(request.correlation, None)
        if forwarded is not None:
            _close(forwarded.source, effects)

    def tick(self, now: int, effects: Effects) -> None:
        """Send what waits for a controller; give up what waited for too long."""
        if not self._under_way:
            return
        for correlation, forwarded in tuple(self._under_way.items()):
            if now >= forwarded.deadline_ns:
                del self._under_way[correlation]
                _close(forwarded.source, effects)
                continue
            if not forwarded.is_sent and now >= forwarded.not_before_ns:
                self._send(correlation, forwarded, effects)
            self._situation.alarm.by(forwarded.deadline_ns)
            if not forwarded.is_sent and self._situation.controller_id >= 0:
                self._situation.alarm.by(forwarded.not_before_ns)

    def finish(self) -> frozenset[int]:
        """Clients are to connect anew: those that wait here, once they are answered."""
        for forwarded in self._under_way.values():
            forwarded.is_last = True
        return self._sources()

    def close(self, effects: Effects) -> None:
        """Answer no client any more."""
        for forwarded in self._under_way.values():
            _close(forwarded.source, effects)
        self._under_way.clear()

    def _sources(self) -> frozenset[int]:
        """The clients of what is under way."""
        found = (one.source for one in self._under_way.values())
        return frozenset(one for one in found if one is not None)

    def _send(self, correlation: int, forwarded: _Forwarded, effects: Effects) -> None:
        controller_id = self._situation.controller_id
        if controller_id >= 0:
            forwarded.is_sent = True
            request = replace(forwarded.request, correlation=correlation)
            effects.append((SEND, controller_id, request))


def _close(source: int | None, effects: Effects) -> None:
    if source is not None:
        effects.append((CLOSE, source))
