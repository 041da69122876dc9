"""The schedule of a broker's requests to the active controller: one under way, and the next.

A heartbeat goes out at its interval; at once when something new has to be acknowledged; and every
few ticks while the broker waits for the controller's word. A request whose answer is late is not
waited for, but its answer still counts: a lease runs from when its heartbeat was sent.
"""

from typing import Final

from fencepost.clusters.node_port.alarm import Alarm
from fencepost.clusters.reference.nodes.configuration import MS, Configuration

_APART_NS: Final = 10 * MS
"""The least time between two acknowledgements."""
_EAGER_MIN_NS: Final = 20 * MS
_EAGER_MAX_NS: Final = 100 * MS
"""The most time between two heartbeats while the broker waits for the controller's word."""
_SENT_MAX: Final = 8
"""The most answers that may be late."""


class Cadence:
    """The times of one kind of request: registrations or heartbeats."""

    __slots__ = (
        "_alarm",
        "_asked",
        "_configuration",
        "_correlation",
        "_eager_ns",
        "_failures",
        "_last_ns",
        "_not_before_ns",
        "_sent",
    )

    def __init__(self, configuration: Configuration, alarm: Alarm) -> None:
        self._alarm = alarm
        self._configuration = configuration
        self._sent: dict[int, int] = {}
        """The times at which unanswered requests were sent, by correlation."""
        self._asked = -1
        """The controller to which the last one was sent; -1: nothing is under way."""
        self._last_ns = -(1 << 62)
        self._not_before_ns = 0
        self._correlation = 0
        self._failures = 0
        self._eager_ns = _EAGER_MIN_NS

    def is_due(self, now: int, controller_id: int, *, is_urgent: bool, is_eager: bool) -> bool:
        """Return whether to send one now; if not, there will be a tick when it is time.

        `is_urgent`: something new; `is_eager`: a word is awaited.
        """
        if controller_id < 0:
            return False
        due_ns = self._last_ns + self._configuration.heartbeat_interval_ns
        if self._asked not in (-1, controller_id):
            due_ns = now
        elif self._asked < 0:
            if is_urgent:
                due_ns = min(due_ns, self._last_ns + _APART_NS)
            if is_eager:
                due_ns = min(due_ns, self._last_ns + self._eager_ns)
        due_ns = max(due_ns, self._not_before_ns)
        if now >= due_ns:
            return True
        self._alarm.by(due_ns)
        return False

    def sent(self, now: int, controller_id: int) -> int:
        """Note that one is sent now; return its correlation."""
        self._correlation += 1
        self._asked, self._last_ns = controller_id, now
        self._alarm.by(now + self._configuration.heartbeat_interval_ns)
        self._eager_ns = min(2 * self._eager_ns, _EAGER_MAX_NS)
        self._sent[self._correlation] = now
        if len(self._sent) > _SENT_MAX:
            del self._sent[next(iter(self._sent))]
        return self._correlation

    def answered(self, correlation: int) -> int | None:
        """Return when the answered request was sent; None if a later one was answered before."""
        sent_ns = self._sent.get(correlation)
        if sent_ns is None:
            return None
        self._sent = {one: at for one, at in self._sent.items() if one > correlation}
        if correlation == self._correlation:
            self._asked = -1
        self._failures = 0
        return sent_ns

    def failed(self, now: int, correlation: int) -> None:
        """A request could not be delivered, or its answer is no use: wait a moment, then longer."""
        if correlation != self._correlation:
            return
        self._asked = -1
        configuration = self._configuration
        backoff_ns = configuration.retry_backoff_ns << min(self._failures, 16)
        self._not_before_ns = now + min(backoff_ns, configuration.retry_backoff_max_ns)
        self._last_ns = min(self._last_ns, now - configuration.heartbeat_interval_ns)
        self._failures += 1
        self._alarm.by(self._not_before_ns)

    def hasten(self) -> None:
        """Wait shortly for the next word: things have moved on."""
        self._eager_ns = _EAGER_MIN_NS

    def renew(self) -> None:
        """Begin anew with another controller or registration: earlier requests count no more."""
        self._sent.clear()
        self._asked = -1
        self._failures = self._not_before_ns = 0
        self.hasten()
