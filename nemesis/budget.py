"""The number of nodes that a mix may have down at once, by role.

A node counts as down from the first act of its episode until the cluster shows it whole again
(process running, broker unfenced and back in the ISR of all its partitions). It counts in each of
its roles.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from fencepost.clusters.port import NodeName, NodeRoles
from fencepost.nemesis.mix_spec import MixSpec


@dataclass(frozen=True, slots=True)
class NodeBudget:
    """The greatest number of nodes of each role that may be down."""

    spec: MixSpec

    def within(
        self, wanted: tuple[NodeName, ...], busy: frozenset[NodeName], roles: NodeRoles
    ) -> tuple[NodeName, ...]:
        """Return those that may go, beside those that are busy."""
        kept: list[NodeName] = []
        for node in wanted:
            if node not in busy and self._has_room(node, busy.union(kept), roles):
                kept.append(node)
        return tuple(kept)

    def may_go(self, node: NodeName, gone: Collection[NodeName], roles: NodeRoles) -> bool:
        """Return whether a node may go to which nothing was done yet.

        One that is not whole is gone already. If it has a second role, it is gone in the one that
        the cluster shows: a broker that is fenced takes no part, but as a controller it votes on.
        """
        if node in roles.second:
            return self._has_room(node, frozenset(gone) - {node}, roles)
        return node in gone or self._has_room(node, gone, roles)

    def _has_room(self, node: NodeName, gone: Iterable[NodeName], roles: NodeRoles) -> bool:
        used = Counter(role for one in gone for role in roles.of(one))
        return all(used[role] < self.spec.down_max(role) for role in roles.of(node))
