"""Controlled shutdown below the new inter-broker protocol, as Kafka does it.

The controller moves the leaderships when it is asked, and says which are left; the broker asks
again after a while. It ends unbidden when `request_timeout_ns` is over.
"""

from typing import Final

from clusters.node_port.effects import SEND, Effects
from clusters.reference.nodes.errors import Error
from clusters.reference.zk.messages import ControlledShutdownRequest, ControlledShutdownResponse
from clusters.reference.zk.situation import ZkSituation

__all__ = ["ControlledShutdown"]

_NONE: Final = int(Error.NONE)


class ControlledShutdown:
    """A broker's requests to be let go, one at a time."""

    __slots__ = ("_asked_id", "_correlation", "_not_before_ns", "_over_ns", "_situation")

    def __init__(self, situation: ZkSituation) -> None:
        self._situation = situation
        self._correlation = 0
        self._asked_id = -1
        """The controller that has not answered yet; -1: none is asked."""
        self._not_before_ns = 0
        self._over_ns = 0

    def begin(self, now: int) -> None:
        """The broker wants to end from now on."""
        self._over_ns = now + self._situation.configuration.request_timeout_ns

    def is_over(self, now: int) -> bool:
        """Return whether it has waited for long enough; if not, there will be a tick."""
        self._situation.alarm.by(self._over_ns)
        return now >= self._over_ns

    def speak(self, now: int, effects: Effects) -> None:
        """Ask the controller, unless it is being asked, or was a moment ago."""
        situation = self._situation
        controller_id = situation.controller_id
        if controller_id < 0 or controller_id == self._asked_id:
            return
        if now < self._not_before_ns:
            situation.alarm.by(self._not_before_ns)
            return
        self._correlation += 1
        self._asked_id = controller_id
        request = ControlledShutdownRequest(
            self._correlation, situation.node_id, situation.broker_epoch
        )
        effects.append((SEND, controller_id, request))

    def remaining_count(self, now: int, response: ControlledShutdownResponse) -> int | None:
        """Return how many leaderships are left by this answer; None: it does not say."""
        if response.correlation != self._correlation:
            return None
        self._pause(now)
        return None if response.error != _NONE else len(response.remaining)

    def unreachable(self, now: int, request: ControlledShutdownRequest) -> None:
        """The controller's host does not answer."""
        if request.correlation == self._correlation:
            self._pause(now)

    def _pause(self, now: int) -> None:
        self._asked_id = -1
        self._not_before_ns = now + self._situation.configuration.controlled_shutdown_retry_ns
        self._situation.alarm.by(self._not_before_ns)
