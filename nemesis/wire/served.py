"""The Produces and Fetches of clients that go on the tape, by which a run knows who served them.

Of the clients at hand hardly one tells which broker answered it, and none tells it of a Fetch: the
address that a link was dialled at does. Clients send hundreds of these requests a second, so the
tape has a part of them. On each connection, and of each of the two APIs, it has the first request,
and then the first one that comes half a second or more after the last that it has; and the answers
to these. A broker that serves for longer than that is seen to do so, which is all that they are
for: nothing may be concluded from a request that is not there.

A Produce without acknowledgement has no answer that could tell of a broker.
"""

from typing import Final

from fencepost.nemesis.wire.apis import API_KEYS, FETCH

PRODUCE: Final = API_KEYS["Produce"]
_APIS: Final = frozenset({PRODUCE, FETCH})
_EVERY_NS: Final = 500_000_000
"""It is short beside a lease or a session, of seconds, and long beside the time of a request."""


class Served:
    """The requests of one connection of a client that are on the tape, and wait for an answer."""

    __slots__ = ("_due_ns", "_waiting")

    def __init__(self) -> None:
        self._due_ns: dict[int, int] = {}
        """The time from which on the next request of an API is wanted."""
        self._waiting: set[int] = set()
        """The correlation ids of requests on the tape without an answer yet."""

    def wants_request(self, api_key: int, now_ns: int) -> bool:
        """Return whether the tape is to have such a request that comes now."""
        return api_key in _APIS and now_ns >= self._due_ns.get(api_key, 0)

    def takes_request(self, api_key: int, correlation_id: int, now_ns: int) -> bool:
        """Do the same, and count it as taken if so."""
        if not self.wants_request(api_key, now_ns):
            return False
        self._due_ns[api_key] = now_ns + _EVERY_NS
        self._waiting.add(correlation_id)
        return True

    def wants_response(self, correlation_id: int) -> bool:
        """Return whether it answers a request that was taken."""
        return correlation_id in self._waiting

    def takes_response(self, correlation_id: int) -> bool:
        """Do the same, and count it as taken if so."""
        wanted = correlation_id in self._waiting
        self._waiting.discard(correlation_id)
        return wanted
