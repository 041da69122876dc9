"""Requests to peers: when one is given up, when the next may be sent, whose answers still count."""

from collections.abc import Iterator
from typing import Final

from fencepost.clusters.node_port.alarm import NEVER_NS, Alarm
from fencepost.clusters.reference.nodes.configuration import Configuration

_NONE: Final = -1
_FAILURES_MAX: Final = 16
"""The largest number of failures that double a pause; its bound is reached long before."""


class Exchange:
    """An exchange with at most one request under way; failures cause a pause that doubles."""

    __slots__ = ("_alarm", "_configuration", "_correlation", "_failures", "due_at")

    def __init__(self, configuration: Configuration, alarm: Alarm) -> None:
        self._alarm = alarm
        self._configuration = configuration
        self._correlation = _NONE
        self._failures = 0
        self.due_at = 0
        """The time when a request may be sent; the one under way is given up then."""

    @property
    def is_under_way(self) -> bool:
        """Return whether an answer may still come."""
        return self._correlation != _NONE

    def sent(self, correlation: int, given_up_at: int) -> None:
        """A request is under way."""
        self._correlation = correlation
        self.due_at = given_up_at
        self._alarm.by(given_up_at)

    def is_answered(self, correlation: int) -> bool:
        """Return whether this answers the request under way; afterwards none is under way."""
        if correlation != self._correlation:
            return False
        self._correlation = _NONE
        self.due_at = 0
        return True

    def pause(self, now: int) -> None:
        """Note a failure: the next request waits, the longer the more failed before."""
        bound = self._configuration.retry_backoff_max_ns
        self._correlation = _NONE
        self.due_at = now + min(bound, self._configuration.retry_backoff_ns << self._failures)
        self._failures = min(self._failures + 1, _FAILURES_MAX)
        self._alarm.by(self.due_at)

    def succeed(self) -> None:
        """The peer is well: the next pause is a short one again."""
        self._failures = 0

    def forget(self) -> None:
        """Begin anew, with another peer perhaps."""
        self._correlation = _NONE
        self._failures = 0
        self.due_at = 0


class PeerRetries:
    """The same question to each of some peers, asked again until it is answered."""

    __slots__ = ("_alarm", "_correlation", "_patience_ns", "_peers")

    def __init__(self, configuration: Configuration, alarm: Alarm, peers: tuple[int, ...]) -> None:
        self._alarm = alarm
        # A question that vanished is asked again before the peers begin an election of their own.
        self._patience_ns = min(
            configuration.quorum_request_timeout_ns, configuration.election_timeout_ns // 2
        )
        self._correlation = 0
        self._peers = {peer: Exchange(configuration, alarm) for peer in peers}

    def begin(self) -> None:
        """A new question: all are to be asked, and earlier answers count no more."""
        for exchange in self._peers.values():
            exchange.forget()

    def next_due(self) -> int:
        """Return when a peer is to be asked next."""
        return min((one.due_at for one in self._peers.values()), default=NEVER_NS)

    def due(self, now: int) -> Iterator[tuple[int, int]]:
        """Yield the peers to ask now, each with its correlation; each counts as asked."""
        for peer, exchange in self._peers.items():
            if now >= exchange.due_at:
                self._correlation += 1
                exchange.sent(self._correlation, now + self._patience_ns)
                yield peer, self._correlation

    def is_answered(self, peer: int, correlation: int, *, again_at: int = NEVER_NS) -> bool:
        """Return whether this is the awaited answer; the peer is asked again at `again_at`."""
        exchange = self._peers.get(peer)
        if exchange is None or not exchange.is_answered(correlation):
            return False
        exchange.succeed()
        exchange.due_at = again_at
        self._alarm.by(again_at)
        return True

    def lost(self, correlation: int, now: int) -> None:
        """A request came back: its peer is asked again after a pause."""
        for exchange in self._peers.values():
            if exchange.is_answered(correlation):
                exchange.pause(now)

    def put_off(self, peer: int, until: int) -> None:
        """Put a peer off: it need not be asked before."""
        exchange = self._peers[peer]
        exchange.due_at = max(exchange.due_at, until)
