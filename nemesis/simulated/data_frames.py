"""The frames of data that a simulated tape has, of followers (`Fetches`) and clients (`Served`)."""

from collections.abc import Set as AbstractSet
from operator import itemgetter
from typing import Any, Final, Protocol

from fencepost.clusters.reference.nodes.messages.data import (
    FetchRequest,
    FetchResponse,
    ProduceRequest,
    ProduceResponse,
)
from fencepost.nemesis.wire.apis import FETCH
from fencepost.nemesis.wire.fetches import Fetches
from fencepost.nemesis.wire.served import PRODUCE, Served

_KEY: Final = itemgetter(0)
"""The key of a partition of a Fetch."""
_REQUESTS: Final = {FetchRequest.kind: FETCH, ProduceRequest.kind: PRODUCE}
"""The APIs of clients' requests, by kind."""


class DataFrames(Protocol):
    """The frames of data of one connection."""

    kinds: AbstractSet[int]
    ruled: AbstractSet[int]
    """The kinds that a rule may concern: each of them has to be looked at."""

    def tells(self, message: Any, now_ns: int) -> bool:
        """Return whether the tape is to have this one, which is sent now."""

    def told(self, message: Any) -> None:
        """Take note that it was passed on untouched."""


class FollowersData:
    """The Fetches of a follower's connection."""

    kinds: AbstractSet[int] = frozenset({FetchRequest.kind})

    def __init__(self) -> None:
        self._fetches = Fetches()
        self.ruled: AbstractSet[int] = frozenset()

    def tells(self, message: Any, now_ns: int) -> bool:  # noqa: ARG002
        """Return whether it tells its leader something new."""
        return self._fetches.tells(message.replica_epoch, map(_KEY, message.partitions))

    def told(self, message: Any) -> None:
        """Take note of what its leader was told."""
        self._fetches.told(message.replica_epoch, map(_KEY, message.partitions))


class ClientsData:
    """The Produces, the Fetches and their answers of a client's connection."""

    kinds: AbstractSet[int] = frozenset({*_REQUESTS, FetchResponse.kind, ProduceResponse.kind})

    def __init__(self) -> None:
        self._served = Served()
        self.ruled: AbstractSet[int] = frozenset()

    def tells(self, message: Any, now_ns: int) -> bool:
        """Return whether it is a request whose turn it is, or the answer to one that was."""
        api_key = _REQUESTS.get(message.kind)
        if api_key is None:
            return self._served.takes_response(message.correlation)
        answered = message.correlation >= 0  # else it asks for no acknowledgement
        return answered and self._served.takes_request(api_key, message.correlation, now_ns)

    def told(self, message: Any) -> None:
        """Do nothing: it was counted when it came."""
