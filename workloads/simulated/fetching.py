"""Fetches of a simulated consumer or reader: one at a time to each leader, of all its keys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fencepost.clusters.node_port.effects import SEND, Effects
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.data import FetchRequest, FetchResponse
from fencepost.workloads.simulated.routes import Correlations, Routes

_MS: Final = 1_000_000
_WAIT_NS: Final = 100 * _MS
_TIMEOUT_NS: Final = 6_000 * _MS
_RETRY_NS: Final = 100 * _MS
_VERSION: Final = 12
_RECORDS_MAX: Final = 20_000
_OUT_OF_RANGE: Final = int(Error.OFFSET_OUT_OF_RANGE)


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result for one key: batches, or that its position is beyond its log."""

    number: int
    """Its place in the routes."""
    batches: Sequence[Any]
    out_of_range: bool = False


class ClientFetches:
    """The fetches of one client."""

    __slots__ = ("_asked", "_by_leader", "_correlations", "_due_ns", "_routes")

    def __init__(self, routes: Routes, correlations: Correlations) -> None:
        self._routes = routes
        self._correlations = correlations
        self._asked: dict[int, tuple[int, int, dict[Any, int]]] = {}
        """By correlation: the time, the leader, and the places of the keys."""
        self._by_leader: dict[int, int] = {}
        self._due_ns: dict[int, int] = {}
        """By leader, the time before which it is not to be asked."""

    def ask(self, now: int, positions: Mapping[int, int], effects: Effects) -> None:
        """Fetch these keys from their positions; skip leaders with a fetch under way."""
        self._give_up_late(now)
        routes = self._routes
        wanted: dict[int, list[int]] = {}
        for number in positions:
            leader = routes.leaders[number]
            if leader < 0:
                routes.doubt(now)
            elif leader not in self._by_leader and now >= self._due_ns.get(leader, 0):
                wanted.setdefault(leader, []).append(number)
        for leader, numbers in wanted.items():
            correlation = self._correlations.next()
            keys = {routes.keys[number]: number for number in numbers}
            partitions = tuple(
                (key, positions[number], routes.epochs[number], -1) for key, number in keys.items()
            )
            self._asked[correlation] = (now, leader, keys)
            self._by_leader[leader] = correlation
            request = FetchRequest(
                correlation,
                -1,
                -1,
                _VERSION,
                partitions,  # type: ignore[arg-type]  # a key with a leader is known
                _WAIT_NS,
                max_records=_RECORDS_MAX,
            )
            effects.append((SEND, leader, request))

    def take(self, now: int, response: FetchResponse) -> list[Fetched]:
        """Return what an answer brings; nothing, if the fetch was given up or forgotten."""
        asked = self._asked.pop(response.correlation, None)
        if asked is None:
            return []
        _, leader, keys = asked
        del self._by_leader[leader]
        if response.error:
            self._refused(now, leader)
            return []
        found = []
        for one in response.partitions:
            number = keys.get(one.key)
            if number is None:
                continue
            if one.error == _OUT_OF_RANGE:
                found.append(Fetched(number, (), out_of_range=True))
            elif one.error:
                self._refused(now, leader)
            elif one.batches:
                found.append(Fetched(number, one.batches))
        return found

    def unreachable(self, now: int, correlation: int) -> None:
        """Take note that a fetch came back."""
        asked = self._asked.pop(correlation, None)
        if asked is not None:
            del self._by_leader[asked[1]]
            self._refused(now, asked[1])

    def forget(self) -> None:
        """Forget the fetches that are under way: their answers will be ignored."""
        self._asked.clear()
        self._by_leader.clear()

    def _refused(self, now: int, leader: int) -> None:
        self._due_ns[leader] = now + _RETRY_NS
        self._routes.doubt(now)

    def _give_up_late(self, now: int) -> None:
        late = [one for one, (sent, _, _) in self._asked.items() if now - sent > _TIMEOUT_NS]
        for correlation in late:
            self.unreachable(now, correlation)
