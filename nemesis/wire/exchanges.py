"""Requests of a connection without a response yet; they alone tell what a response answers.

Kafka answers the requests of a connection in their order. A response that the proxy makes in the
target's place keeps to it: it waits for the responses to the requests before its own.
"""

from collections.abc import Callable
from typing import Final

from fencepost.clusters.protocol.framing import FrameError
from fencepost.nemesis.wire.frame import Frame
from fencepost.nemesis.wire.frames import Header

_UNANSWERED_MAX: Final = 1 << 17
"""Requests of one connection; a client that pipelines more than that is not one of Kafka's."""


def _correlation_id(header: Header) -> int:
    return header.correlation_id


class Exchanges:
    """Requests without a response, in their order, and the responses that the wire made.

    `number_of`: the number of a request on its connection, by its header.
    """

    def __init__(self, number_of: Callable[[Header], int] = _correlation_id) -> None:
        self._number_of = number_of
        self._unanswered: dict[int, Header] = {}
        self._made: dict[int, tuple[Frame, str]] = {}

    @property
    def open(self) -> bool:
        """Return whether a response is to come."""
        return bool(self._unanswered)

    @property
    def made(self) -> bool:
        """Return whether a response of ours waits for its turn."""
        return bool(self._made)

    def ask(self, header: Header) -> None:
        """Take note of a request; raise FrameError if its response could be taken for another's."""
        if not header.answered:
            return
        number = self._number_of(header)
        if number in self._unanswered:
            raise FrameError(f"a second request {number} before the response")
        if len(self._unanswered) >= _UNANSWERED_MAX:
            raise FrameError(f"more than {_UNANSWERED_MAX} requests without a response")
        self._unanswered[number] = header

    def answer(self, correlation_id: int) -> Header:
        """Take note of a response; return its request's header or raise FrameError."""
        header = self._unanswered.pop(correlation_id, None)
        if header is None or correlation_id in self._made:
            raise FrameError(f"a response to request {correlation_id}, which was not sent")
        return header

    def make(self, response: Frame, *, rule: str) -> None:
        """Answer a request that was not passed on, in the name of this rule."""
        self._made[self._number_of(response.header)] = (response, rule)

    def next_made(self) -> tuple[Frame, str] | None:
        """Return the response of ours whose turn it is, with its rule: it counts as sent."""
        for correlation_id in self._unanswered:
            if correlation_id not in self._made:
                return None
            del self._unanswered[correlation_id]
            return self._made.pop(correlation_id)
        return None
