"""A subnet of this machine's own for the nodes of one run: free, and guarded before it is used.

While a bridge has the subnet, packets go to the bridge. When it has gone, what still knows an
address of the subnet must not send packets to whoever has it elsewhere: so the subnet is first
declared unreachable, at the lowest priority, and stays so until the run is over. The guard is also
the claim by which runs side by side keep apart.

Of a subnet's 4096 addresses, the first is the machine's on the bridge, nodes follow, and the upper
half is for links: the machine takes all of that half for its own (`ip route add local`), so that a
proxy can listen on an address for each link, and nodes reach it over the bridge.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Final

from fencepost.clusters.hosts.ledger import Ledger
from fencepost.clusters.hosts.tools import tool
from fencepost.clusters.hosts.undo import RemoveRoute
from fencepost.clusters.provision.cache import cache_dir, locked
from fencepost.history.failure import HarnessError

_POOLS: Final = (IPv4Network("10.213.0.0/16"), IPv4Network("172.29.0.0/16"))
"""Private addresses that few sites use; the second for those who use all of 10.0.0.0/8."""
_PREFIX: Final = 20
_LINK_BITS: Final = 5
"""32 parties at most, so that 1024 links fit into the upper half."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subnet:
    """The addresses of one run."""

    network: IPv4Network

    @property
    def gateway(self) -> str:
        """The machine's own address on the bridge."""
        return str(self.network[1])

    @property
    def links(self) -> IPv4Network:
        """The network in which links have their addresses."""
        _, upper = self.network.subnets()
        return upper

    def node(self, number: int) -> str:
        """The address of the n-th node, counted from 1."""
        assert 1 <= number < 1 << _LINK_BITS, f"{number} nodes are too many for one subnet"
        return str(self.network[1 + number])

    def link(self, source: int, target: int) -> str:
        """The address of the link from one party to another."""
        assert max(source, target) < 1 << _LINK_BITS, "too many parties for one subnet"
        return str(self.links[1 + (source << _LINK_BITS) + target])


def claim_subnet(ledger: Ledger) -> Subnet:
    """Take a subnet that nothing of this machine routes, and guard it. HarnessError if none is."""
    with locked(cache_dir() / "subnets", doing="choosing a subnet", progress=lambda _: None):
        network = next(free_subnets(_routed()), None)
        if network is None:
            pools = " and ".join(map(str, _POOLS))
            raise HarnessError(
                f"no subnet is free for this run: all of {pools} is routed elsewhere, or taken by "
                "other runs (ip route; fencepost clean)"
            )
        _add_route(ledger, f"unreachable {network} metric 9999", table="main")
    subnet = Subnet(network=network)
    _add_route(ledger, f"local {subnet.links} dev lo", table="local")
    return subnet


def free_subnets(routed: Iterable[IPv4Network]) -> Iterator[IPv4Network]:
    """The subnets that overlap with nothing that is routed, apart from default routes."""
    taken = [network for network in routed if network.prefixlen]
    for pool in _POOLS:
        for candidate in pool.subnets(new_prefix=_PREFIX):
            if not any(candidate.overlaps(network) for network in taken):
                yield candidate


def _routed() -> list[IPv4Network]:
    routes = json.loads(tool("ip", "-json", "-4", "route", "show", "table", "all"))
    destinations = [route["dst"] for route in routes if route["dst"] != "default"]
    return [IPv4Network(destination, strict=False) for destination in destinations]


def _add_route(ledger: Ledger, route: str, *, table: str) -> None:
    ledger.note(RemoveRoute(route=route, table=table))
    tool("ip", "route", "add", *route.split(), "table", table)
