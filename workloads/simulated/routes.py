"""The routes of a simulated client: the ids of its topics, and the leader of each partition.

It asks one broker after the other, at most one at a time and not too often: when it starts, when a
broker answers that it does not lead, and regularly from time to time.
"""

from collections.abc import Sequence
from typing import Final

from fencepost.clusters.node_port.effects import SEND, Effects
from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.reference.nodes.messages.client import MetadataRequest, MetadataResponse

_MS: Final = 1_000_000
_RETRY_NS: Final = 100 * _MS
_TIMEOUT_NS: Final = 3_000 * _MS
_REFRESH_NS: Final = 3_000 * _MS


class Correlations:
    """The numbers of a client's requests."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last = 0

    def next(self) -> int:
        """Return the next correlation id."""
        self.last += 1
        return self.last


class Routes:
    """The leaders of some keys, as (topic, partition), by their place in the list."""

    __slots__ = (
        "_asked_ns",
        "_brokers",
        "_correlations",
        "_due_ns",
        "_places",
        "_topics",
        "_turn",
        "_waits_for",
        "changes_count",
        "epochs",
        "keys",
        "leaders",
    )

    def __init__(
        self,
        places: Sequence[tuple[str, int]],
        *,
        brokers: Sequence[int],
        correlations: Correlations,
        first: int,
    ) -> None:
        self._places = {place: number for number, place in enumerate(places)}
        self._topics = tuple((name, -1) for name in dict.fromkeys(topic for topic, _ in places))
        self._brokers = tuple(brokers)
        self._turn = first
        """Clients begin with different brokers."""
        self._correlations = correlations
        self._waits_for = 0
        self._asked_ns = 0
        self._due_ns = 0
        self.leaders = [-1] * len(places)
        """The host of each partition's leader, by its number; -1: none that it knows of."""
        self.epochs = [-1] * len(places)
        self.keys: list[PartitionKey | None] = [None] * len(places)
        self.changes_count = 0

    def tick(self, now: int, effects: Effects) -> None:
        """Ask if it is time."""
        if self._waits_for:
            if now < self._asked_ns + _TIMEOUT_NS:
                return
            self._waits_for = 0
        if now >= self._due_ns:
            broker = self._brokers[self._turn % len(self._brokers)]
            self._turn += 1
            self._waits_for = self._correlations.next()
            self._asked_ns = now
            self._due_ns = now + _REFRESH_NS
            effects.append((SEND, broker, MetadataRequest(self._waits_for, self._topics)))

    def doubt(self, now: int) -> None:
        """Ask soon, since the known routes seem to be wrong."""
        self._due_ns = min(self._due_ns, max(now, self._asked_ns + _RETRY_NS))

    def unreachable(self, correlation: int) -> None:
        """Take note that a request came back."""
        if correlation == self._waits_for:
            self._waits_for = 0
            self._due_ns = self._asked_ns + _RETRY_NS

    def take(self, response: MetadataResponse) -> bool:
        """Believe an answer, unless it is older than what is known; return whether it is ours."""
        if response.correlation != self._waits_for:
            return False
        self._waits_for = 0
        hosts = hosts_of(response)
        for name, topic_id, _, partitions in response.topics:
            for one in partitions:
                number = self._places.get((name, one.partition))
                if number is not None:
                    leader = hosts.get(one.leader_id, one.leader_id)
                    self._believe(number, (topic_id, one.partition), leader, one.leader_epoch)
        if -1 in self.leaders:
            self._due_ns = self._asked_ns + _RETRY_NS
        return True

    def _believe(self, number: int, key: PartitionKey, leader: int, leader_epoch: int) -> None:
        if self.keys[number] == key and leader_epoch < self.epochs[number]:
            return
        self.keys[number] = key
        self.epochs[number] = leader_epoch
        if self.leaders[number] != leader:
            self.leaders[number] = leader
            self.changes_count += 1


def hosts_of(response: MetadataResponse) -> dict[int, int]:
    """Return the number of each broker's host by its id: brokers are named for their hosts."""
    return {broker: int(host.rpartition("-")[2]) for broker, host, _, _ in response.brokers}
