"""The kinds of traffic of a node: each goes to another node over connections of its own.

As Kafka's brokers do it: the metadata log is fetched on one connection, registration and heartbeats
go over another, AlterPartition has one alone, and each leader that is fetched from has one. So each
can be held up without the others. Requests of a controller of the ZooKeeper generation go to a
broker over one connection, in order.

A request that a node asks again, since its first one has no answer yet, goes over a new connection:
the first one is given up with what it still has to say, while its bytes stay on their way. Requests
that are passed on for clients are many at once, and share one.

The shell of a process dials by this, and the wire of a simulated cluster tells by it which messages
are behind one another.
"""

from collections.abc import Mapping
from typing import Final

from clusters.reference.codec.api import Traffic
from clusters.reference.codec.broker_apis import DIALECT
from clusters.reference.codec.codec import kraft_apis
from clusters.reference.codec.zk_apis import ZK_BROKER_APIS

__all__ = ["NEGOTIATED", "traffic_of"]

_APIS: Final = (*kraft_apis(voters=()), *ZK_BROKER_APIS)
_TRAFFIC: Final = {one.kind: one.traffic for one in _APIS} | dict.fromkeys(
    DIALECT, Traffic.HEARTBEATS
)
NEGOTIATED: Final[Mapping[str, int]] = {
    one.traffic: one.kind for one in _APIS if one.lowered is not None
}
"""The requests whose versions are asked for before anything else, by their traffic."""


def traffic_of(kind: int) -> str:
    """Return the traffic of a kind of request between nodes."""
    return _TRAFFIC.get(kind, Traffic.FORWARDED)
