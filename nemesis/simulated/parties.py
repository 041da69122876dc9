"""The parties of a simulated network: hosts by their names as the harness knows them."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Final

from fencepost.clusters.kafka_port import Role
from fencepost.clusters.port import CLIENTS, NodeName
from fencepost.clusters.reference.nodes.messages.data import FetchRequest
from fencepost.clusters.reference.nodes.messages.quorum import MetadataFetchRequest
from fencepost.clusters.simulation.host import Channel, ProcessState, SimulatedHost
from fencepost.clusters.simulation.world import World
from fencepost.nemesis.wire.rules import Flow
from fencepost.nemesis.wire.rules import Link as WireLink

_ROLES: Final = {
    MetadataFetchRequest.kind: Role.CONTROLLER,
    FetchRequest.kind: Role.BROKER,
}


class SimulatedParties:
    """The hosts of a world.

    Hosts from `clients_from` on are clients, from `harness_from` on the harness's own. `clients`:
    the links of clients are on the wire, too.
    """

    def __init__(
        self, world: World, *, clients_from: int, harness_from: int, clients: bool
    ) -> None:
        self._world = world
        self._clients_from = clients_from
        self._harness_from = harness_from
        self._clients = clients

    def link(self, link: Channel) -> WireLink | None:
        """Return which party dialled which, by name; None if that link is not on the wire."""
        asker, asked = link.sender, link.receiver
        if link.answers is not None:
            asker, asked = asked, asker
        if asker.number >= self._harness_from or not (self._clients or self.is_node(asker)):
            return None
        return _dialled(asker.name if self.is_node(asker) else CLIENTS, asked.name)

    def overheard(self, link: Channel) -> WireLink | None:
        """Return the same of a client's link that is not on the wire."""
        asker, asked = link.sender, link.receiver
        if link.answers is not None:
            asker, asked = asked, asker
        if self._clients or not self._clients_from <= asker.number < self._harness_from:
            return None
        return _dialled(CLIENTS, asked.name)

    def is_node(self, host: SimulatedHost) -> bool:
        """Return whether the host is a node of the cluster."""
        return host.number < self._clients_from

    def runs(self, node: NodeName) -> bool:
        """Return whether the node's process runs."""
        return all(host.state is ProcessState.RUNNING for host in self._hosts(node))

    def numbers(self, flow: Flow) -> list[tuple[int, int]]:
        """Return the flows between hosts that a flow between parties stands for."""
        senders, receivers = map(self._hosts, flow)
        return [(one.number, other.number) for one in senders for other in receivers]

    def _hosts(self, party: NodeName) -> Iterable[SimulatedHost]:
        hosts = self._world.hosts.values()
        if party == CLIENTS:
            return [h for h in hosts if self._clients_from <= h.number < self._harness_from]
        return [host for host in hosts if host.name == party]


def asked_as(party: WireLink, kind: int) -> WireLink:
    """Return the link with the role in which a Fetch asks its target: one channel has them all."""
    return party if kind not in _ROLES else _in_role(party, _ROLES[kind])


@cache
def _in_role(party: WireLink, role: Role) -> WireLink:
    return replace(party, role=role)


@cache
def _dialled(source: str, target: str) -> WireLink:
    return WireLink(source=NodeName(source), target=NodeName(target), address="", port=0)
