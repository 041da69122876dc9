"""The places of the proxy: an address of its own for each link, by which it tells the links apart.

Ports are the cluster's own, so that clusters side by side do not meet. The parties of a link are
numbered: 0 the clients, from 1 on the nodes.
"""

from collections.abc import Iterable

from fencepost.clusters.abilities import DisturbsPackets, Links, Route
from fencepost.clusters.hosts.place import Host
from fencepost.clusters.port import CLIENTS, NodeName
from fencepost.nemesis.wire.rules import Link


def wired_route(nodes: Iterable[NodeName], *, host: Host, clients: bool) -> Route:
    """Return the route of each link over the proxy; those of clients only if asked for."""
    number = {party: number for number, party in enumerate((CLIENTS, *nodes))}

    def route(source: NodeName, target: NodeName) -> str | None:
        if source == CLIENTS and not clients:
            return None
        return host.link_address(number[source], number[target])

    return route


def links_of(cluster: Links, route: Route) -> tuple[Link, ...]:
    """Return the links of a cluster that the route leads over an address of their own."""
    ends = ((end, route(end.source, end.target)) for end in cluster.links())
    # Rules about packets tell them apart by the addresses at both ends of a connection.
    apart = isinstance(cluster, DisturbsPackets) and cluster.why_no_packets() is None
    return tuple(
        Link(
            source=end.source,
            target=end.target,
            address=address,
            port=end.port,
            dials=end.address,
            protocol=end.protocol,
            role=end.role,
            redials_s=end.redials_s,
            dials_from=address if apart else None,
        )
        for end, address in ends
        if address is not None
    )
