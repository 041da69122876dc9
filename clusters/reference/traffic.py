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

from collections.abc import Iterable, Mapping

from fencepost.clusters.reference.codec.api import Api, Traffic
from fencepost.clusters.reference.codec.broker_apis import DIALECT


def traffic_by_kind(apis: Iterable[Api]) -> Mapping[int, str]:
    """Return the traffic of each kind of request, of these APIs and of the dialect."""
    return {one.kind: one.traffic for one in apis} | dict.fromkeys(DIALECT, Traffic.HEARTBEATS)
