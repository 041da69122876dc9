"""InitProducerId: ids out of a block that this broker was given."""

from collections import deque
from typing import Final, Protocol

from fencepost.clusters.node_port.effects import CLOSE, SEND, Effects
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.control import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from fencepost.clusters.reference.nodes.messages.data import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from fencepost.clusters.reference.nodes.situation import Situation

_REQUESTS_MAX: Final = 1_000
"""The most requests that wait for a block; the connection of one more is closed."""


class ProducerIdBlocks(Protocol):
    """The source of blocks; its answer goes to `ProducerIds.allocated`."""

    @property
    def can_be_asked(self) -> bool:
        """Return whether it can be asked at present."""

    def ask(self, now: int, correlation: int, effects: Effects) -> None:
        """Ask for a block."""


class ControllerBlocks:
    """Blocks that the active controller allocates."""

    __slots__ = ("_situation",)

    def __init__(self, situation: Situation) -> None:
        self._situation = situation

    @property
    def can_be_asked(self) -> bool:
        """Return whether a controller is known."""
        return self._situation.controller_id >= 0

    def ask(self, _now: int, correlation: int, effects: Effects) -> None:
        """Send the request for a block."""
        situation = self._situation
        request = AllocateProducerIdsRequest(correlation, situation.node_id, situation.broker_epoch)
        effects.append((SEND, situation.controller_id, request))


class ProducerIds:
    """A broker's block, and who waits for the next one."""

    __slots__ = (
        "_asked",
        "_blocks",
        "_correlation",
        "_end",
        "_next",
        "_not_before_ns",
        "_sent_ns",
        "_situation",
        "_waiting",
    )

    def __init__(self, situation: Situation, blocks: ProducerIdBlocks) -> None:
        self._situation = situation
        self._blocks = blocks
        self._next = 0
        self._end = 0
        self._waiting: deque[tuple[int, int, int]] = deque()
        """(deadline, source, correlation)."""
        self._asked = False
        self._sent_ns = 0
        self._not_before_ns = 0
        self._correlation = 0

    def init(self, now: int, source: int, request: InitProducerIdRequest, effects: Effects) -> None:
        """Give an idempotent producer its id, now or once there is a block."""
        if request.transactional_id is not None:
            error = int(Error.INVALID_REQUEST)
            effects.append(
                (SEND, source, InitProducerIdResponse(request.correlation, error, -1, -1))
            )
            return
        if len(self._waiting) >= _REQUESTS_MAX:
            effects.append((CLOSE, source))
            return
        deadline_ns = now + self._situation.configuration.request_timeout_ns
        self._waiting.append((deadline_ns, source, request.correlation))
        self._situation.alarm.by(deadline_ns)
        self._hand_out(now, effects)

    def allocated(self, now: int, response: AllocateProducerIdsResponse, effects: Effects) -> None:
        """Take the answer to a demand for a block."""
        if not self._asked or response.correlation != self._correlation:
            return
        self._asked = False
        if response.error:
            self._back_off(now)
            return
        self._next, self._end = response.start, response.start + response.length
        self._hand_out(now, effects)

    def unreachable(self, now: int, request: AllocateProducerIdsRequest) -> None:
        """A block that was given away meanwhile is lost, which does no harm."""
        if request.correlation == self._correlation:
            self._asked = False
            self._back_off(now)

    def tick(self, now: int, effects: Effects) -> None:
        """Ask again for a block; give up who waited for too long."""
        while self._waiting and self._waiting[0][0] <= now:
            effects.append((CLOSE, self._waiting.popleft()[1]))
        timeout_ns = self._situation.configuration.quorum_request_timeout_ns
        if self._asked and now - self._sent_ns >= timeout_ns:
            self._asked = False
        if self._waiting:
            self._hand_out(now, effects)
        alarm = self._situation.alarm
        if self._asked:
            alarm.by(self._sent_ns + timeout_ns)
        if self._waiting:
            alarm.by(self._waiting[0][0])
            if not self._asked and self._blocks.can_be_asked:
                alarm.by(self._not_before_ns)

    def close(self, effects: Effects) -> None:
        """Answer no client any more."""
        while self._waiting:
            effects.append((CLOSE, self._waiting.popleft()[1]))

    def _hand_out(self, now: int, effects: Effects) -> None:
        while self._waiting and self._next < self._end:
            _, source, correlation = self._waiting.popleft()
            none = int(Error.NONE)
            effects.append((SEND, source, InitProducerIdResponse(correlation, none, self._next, 0)))
            self._next += 1
        if self._waiting and not self._asked and now >= self._not_before_ns:
            self._ask(now, effects)

    def _ask(self, now: int, effects: Effects) -> None:
        if not self._blocks.can_be_asked:
            return
        self._asked, self._sent_ns = True, now
        self._situation.alarm.by(now + self._situation.configuration.quorum_request_timeout_ns)
        self._correlation += 1
        self._blocks.ask(now, self._correlation, effects)

    def _back_off(self, now: int) -> None:
        self._not_before_ns = now + self._situation.configuration.retry_backoff_ns
        self._situation.alarm.by(self._not_before_ns)
