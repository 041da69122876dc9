"""The faults of the networks of a cluster's nodes, where each node has a network of its own.

A node that is started may find a new namespace, without any rules: `renew` lays them again.
"""

import itertools
import socket
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

from fencepost.clusters.abilities import LinkEnd
from fencepost.clusters.hosts.bandwidth import (
    free_bandwidth,
    limit_bandwidth,
    measured_rate,
    why_no_limits,
)
from fencepost.clusters.hosts.inside import socket_in
from fencepost.clusters.hosts.packets import (
    Forbidden,
    drop_packets,
    dropped_counts,
    pass_packets,
    why_no_rules,
)
from fencepost.clusters.hosts.place import OwnNetwork, Place
from fencepost.clusters.port import CLIENTS, NodeName
from fencepost.history.failure import HarnessError, UsageError

Flow = tuple[NodeName, NodeName]

_TOLERANCE: Final = 1.5
"""A rate measured over half a second, on a busy machine, may be so far above the bound."""


class IsAnswered(Protocol):
    """Sends a request that any node answers, and waits for the answer within a bound."""

    def __call__(
        self,
        node: NodeName,
        address: tuple[str, int],
        *,
        timeout_s: float,
        opened: Callable[[], socket.socket] = socket.socket,
    ) -> bool:
        """Return whether the answer came. `opened` opens the socket at which the request starts."""


class NodeNetworks:
    """The networks of these places. `route`: the address of a link over a proxy; None: direct."""

    def __init__(
        self,
        places: Mapping[NodeName, Place],
        *,
        route: Callable[[NodeName, NodeName], str | None],
        is_answered: IsAnswered,
    ) -> None:
        self._places = dict(places)
        self._route = route
        self._is_answered = is_answered
        self._numbers = itertools.count(1)
        self._chains: dict[str, str] = {}
        self._forbidden: dict[str, dict[NodeName, Forbidden]] = {}
        self._rates: dict[NodeName, int] = {}

    def refusal(self) -> str | None:
        """Return why none of this can be done here, with the way out; None if it can."""
        if not all(isinstance(place, OwnNetwork) for place in self._places.values()):
            return "its nodes share this machine's network: run it with --host netns or docker"
        return why_no_rules() or why_no_limits()

    def drop_packets(self, name: str, flows: Collection[Flow]) -> None:
        """Drop what is sent from the first to the second of each, until `pass_packets`."""
        self._refuse_clients(flows)
        self._chains[name] = f"cut{next(self._numbers)}"
        self._forbidden[name] = forbidden(
            flows,
            addresses={node: place.address for node, place in self._places.items()},
            route=self._route,
        )
        for node in self._forbidden[name]:
            self._lay(name, node)

    def pass_packets(self, name: str) -> int:
        """Stop dropping packets for that name; return the number dropped."""
        dropped = self.dropped_count(name)
        for node in self._forbidden[name]:
            if (namespace := self._namespace(node)) is not None:
                pass_packets(namespace, self._chains[name])
        del self._forbidden[name], self._chains[name]
        return dropped

    def dropped_count(self, name: str) -> int:
        """Return the number of packets dropped so far."""
        spaces = filter(None, map(self._namespace, self._forbidden[name]))
        chain = self._chains[name]
        return sum(dropped_counts(one).get(chain, 0) for one in spaces)

    def reaches(self, link: LinkEnd, *, timeout_s: float) -> bool:
        """Check whether a request on the way that the link's source takes gets its answer.

        A source without a network at the moment reaches no target.
        """
        address = (self._route(link.source, link.target) or link.address, link.port)
        if link.source == CLIENTS:
            return self._is_answered(link.target, address, timeout_s=timeout_s)
        if (namespace := self._namespace(link.source)) is None:
            return False
        return self._is_answered(
            link.target, address, timeout_s=timeout_s, opened=lambda: socket_in(namespace)
        )

    def limit_bandwidth(self, node: NodeName, *, bits_per_s: int) -> float:
        """Bound what the node sends; the rate that was measured then, in bits a second."""
        namespace, network = self._entered(node)
        limit_bandwidth(namespace, network.interface, bits_per_s=bits_per_s)
        self._rates[node] = bits_per_s
        rate = measured_rate(namespace, network.machine_address, bits_per_s=bits_per_s)
        if rate > bits_per_s * _TOLERANCE:
            raise HarnessError(f"{node} still sends {rate:,.0f} bit/s, above {bits_per_s:,}")
        return rate

    def free_bandwidth(self, node: NodeName) -> None:
        """Bound it no more."""
        self._rates.pop(node, None)
        place = self._places[node]
        if isinstance(place, OwnNetwork) and (namespace := place.namespace()) is not None:
            free_bandwidth(namespace, place.interface)

    def renew(self, node: NodeName) -> None:
        """Do to the network of a node that was just started what is done to it now."""
        for name, concerned in self._forbidden.items():
            if node in concerned:
                self._lay(name, node)
        if (rate := self._rates.get(node)) is not None:
            namespace, network = self._entered(node)
            limit_bandwidth(namespace, network.interface, bits_per_s=rate)

    def _namespace(self, node: NodeName) -> Path | None:
        place = self._places[node]
        return place.namespace() if isinstance(place, OwnNetwork) else None

    def _entered(self, node: NodeName) -> tuple[Path, OwnNetwork]:
        place = self._places[node]
        assert isinstance(place, OwnNetwork), self.refusal()
        namespace = place.namespace()
        if namespace is None:
            raise HarnessError(f"{node} is down, and has no network")
        return namespace, place

    def _lay(self, name: str, node: NodeName) -> None:
        if (namespace := self._namespace(node)) is not None:
            drop_packets(namespace, self._chains[name], self._forbidden[name][node])

    def _refuse_clients(self, flows: Collection[Flow]) -> None:
        for flow in flows:
            if CLIENTS in flow and self._route(CLIENTS, _other(flow, CLIENTS)) is None:
                raise UsageError(
                    "packets of clients cannot be told from the harness's own: set "
                    "`clients_through_proxy: true`, and run without --no-wire"
                )


def forbidden(
    flows: Iterable[Flow],
    *,
    addresses: Mapping[NodeName, str],
    route: Callable[[NodeName, NodeName], str | None],
) -> dict[NodeName, Forbidden]:
    """Return what these flows forbid each node that has an address (the clients have none)."""
    found: dict[NodeName, Forbidden] = {}
    for sender, receiver in flows:
        links = {route(sender, receiver), route(receiver, sender)}
        known = {address for address in links if address is not None}
        for node, other in ((sender, receiver), (receiver, sender)):
            if node not in addresses:
                continue
            ends = frozenset(known | ({addresses[other]} if other in addresses else set()))
            old = found.get(node, Forbidden())
            if node == sender:
                found[node] = replace(old, told=old.told | ends)
            else:
                found[node] = replace(old, heard=old.heard | ends)
    return found


def _other(flow: Flow, one: NodeName) -> NodeName:
    return flow[1] if flow[0] == one else flow[0]
