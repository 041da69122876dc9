"""The broker ids of nodes, where a broker may register under another id than its node's number.

A registration names the broker's listeners, and these are its node's whatever its id is: the first
part of one of their hosts is the node's name. A node has the id that it registered last, until
another node registers under that id.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from fencepost.clusters.port import NodeName

NO_ID: Final = -1


class Identities:
    """The ids that nodes have. `first`: those that they begin with."""

    def __init__(self, first: Mapping[NodeName, int]) -> None:
        self._first = first
        self._moved: set[NodeName] = set()
        self.now: Mapping[NodeName, int] = dict(first)
        """The id of each node; NO_ID if another node has it. Replaced, never changed."""
        self.epochs: Mapping[NodeName, int] = {}
        """The latest broker epoch of each node that was seen."""

    def saw(self, registered: Mapping[int, NodeName], epochs: Mapping[int, int]) -> None:
        """Take note of the registrations: the node, and the broker epoch, of each broker id.

        Of a node's, the latest counts: one of a session that has not ended yet may be beside it.
        """
        in_order = sorted(registered, key=epochs.__getitem__)
        latest = {registered[broker]: broker for broker in in_order}
        self.epochs = {**self.epochs, **{node: epochs[broker] for node, broker in latest.items()}}
        moved = {node: broker for node, broker in latest.items() if self.now[node] != broker}
        if moved:
            taken = frozenset(moved.values())
            kept = {node: NO_ID if one in taken else one for node, one in self.now.items()}
            self.now = {**kept, **moved}
            self._moved |= {node for node, one in self.now.items() if one != self._first[node]}

    def node_of(self, broker: int) -> NodeName | None:
        """Return the node that has this id; None: none has."""
        return next((node for node, one in self.now.items() if one == broker), None)

    @property
    def of_whole_run(self) -> Mapping[NodeName, int]:
        """The ids of nodes that always had the same; NO_ID for others."""
        return {node: NO_ID if node in self._moved else one for node, one in self._first.items()}

    @property
    def last(self) -> Mapping[NodeName, int]:
        """The present ids of nodes that had several."""
        return {node: self.now[node] for node in sorted(self._moved)}


def node_with(endpoints: Iterable[str], nodes: Iterable[NodeName]) -> NodeName | None:
    """Return the node with these listeners, as `NAME://HOST:PORT`; None: none of these has them."""
    hosts = {one.rpartition("://")[2].rpartition(":")[0].partition(".")[0] for one in endpoints}
    return next((node for node in nodes if node in hosts), None)
