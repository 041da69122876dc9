"""Where the proxy sits: an address of its own for each link, by which it tells the links apart.

The link from the s-th to the t-th party is 127.(100 + s).t.1, at the port that the target listens
on itself: ports are the cluster's own, so that clusters side by side do not meet. The parties are
the clients, then the nodes.
"""

from collections.abc import Iterable

from clusters.kafka.configuration import LOOPBACK, Route
from clusters.port import Links, NodeName
from nemesis.topology import CLIENTS
from nemesis.wire.rules import Link

__all__ = ["links_of", "wired_route"]

_FIRST_BYTE = 100


def wired_route(nodes: Iterable[NodeName], *, clients: bool) -> Route:
    """Every link of the cluster over the proxy; those of the clients only where asked for."""
    place = {party: number for number, party in enumerate((CLIENTS, *nodes))}

    def route(source: NodeName, target: NodeName) -> str:
        if source == CLIENTS and not clients:
            return LOOPBACK
        return f"127.{_FIRST_BYTE + place[source]}.{place[target]}.1"

    return route


def links_of(cluster: Links, route: Route) -> tuple[Link, ...]:
    """The links of a cluster that the route leads over an address of their own."""
    ends = ((end, route(end.source, end.target)) for end in cluster.links())
    return tuple(
        Link(source=end.source, target=end.target, address=address, port=end.port)
        for end, address in ends
        if address != LOOPBACK
    )
