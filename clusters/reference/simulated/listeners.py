"""A combined node of a simulated cluster, behind its two listeners.

A simulated host has a number and no ports: who asks says which listener is meant. What only
controllers are asked goes to the controller. Of the rest, nodes ask controllers as controllers,
clients ask brokers, and an operator asks the active controller itself, and any other node as a
broker, which passes it on.
"""

from collections.abc import Callable
from typing import Any, Final

from clusters.node_port.effects import Effects
from clusters.reference.nodes.combined import CombinedNode
from clusters.reference.nodes.control.active import REQUESTS
from clusters.reference.nodes.messages.control import DescribeQuorumRequest
from clusters.reference.nodes.messages.quorum import FetchSnapshotRequest, VoteRequest

__all__ = ["TwoListeners"]

_OF_CONTROLLERS: Final = frozenset(
    {*range(VoteRequest.kind, FetchSnapshotRequest.kind + 1, 2), DescribeQuorumRequest.kind}
)
"""The requests that only controllers are asked."""


class TwoListeners:
    """`clusters.node_port.effects.Node`.

    `asker`: the number of the host that a request comes from, by its source. Hosts from
    `clients_from` on are clients, from `operators_from` on operators; those below are nodes.
    """

    def __init__(
        self,
        node: CombinedNode,
        *,
        asker: Callable[[int], int],
        clients_from: int,
        operators_from: int,
    ) -> None:
        self.node: Final = node
        self._asker = asker
        self._clients_from = clients_from
        self._operators_from = operators_from

    def handle(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Hand an event to the node, and a request to the listener that is meant."""
        at_controller = kind in _OF_CONTROLLERS or (
            kind in REQUESTS and self._is_for_controller(source)
        )
        handle = self.node.vote if at_controller else self.node.handle
        handle(now, source, kind, message, effects)

    def _is_for_controller(self, source: int) -> bool:
        number = self._asker(source)
        if number < self._clients_from:
            return True
        return number >= self._operators_from and self.node.leads
