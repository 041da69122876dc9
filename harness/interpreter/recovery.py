"""The time that nodes have to be whole after all was healed, before they are started anew.

Each node has its own. A look that shows nothing, as the one of a moment in which no server answers,
says nothing of a node that was whole a moment ago. And a node that is killed and started needs its
time anew: on a machine where that takes longer than the limit, it would be killed for ever. So it
has twice the time after each try, until it was whole.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from fencepost.clusters.port import NodeName


@dataclass(slots=True, kw_only=True)
class Recovery:
    """The nodes, and how much of their time they have had. Ask `stuck` at each look."""

    limit_s: float
    _since_s: dict[NodeName, float] = field(default_factory=dict)
    """The latest time at which a node was whole, or struck, or started anew."""
    _tries: Counter[NodeName] = field(default_factory=Counter)

    def stuck(
        self,
        now_s: float,
        nodes: Collection[NodeName],
        *,
        impaired: Collection[NodeName],
        idle: bool,
    ) -> tuple[NodeName, ...]:
        """Return the nodes that have had all their time; each counts as started anew now.

        `idle`: nothing is broken by the mix, or about to be healed.
        """
        for node in nodes:
            if node not in impaired:
                self._tries.pop(node, None)
            if node not in impaired or not idle:
                self._since_s[node] = now_s
        late = [
            node
            for node in sorted(impaired)
            if now_s > self._since_s.setdefault(node, now_s) + self._patience_s(node)
        ]
        self._tries.update(late)
        self._since_s |= dict.fromkeys(late, now_s)
        return tuple(late)

    def _patience_s(self, node: NodeName) -> float:
        return self.limit_s * 2.0 ** self._tries[node]
