"""The disks that a mix may let a node lose: never more than what a correct cluster survives.

What is acknowledged is on every member of the ISR. So a disk may be lost while no other one is, and
while for each of its replicas another member of the ISR goes on, or the replica is out of the ISR
anyway. From then on the lost replica is as good as none, and must not be taken for a member: until
a look that began later shows it out of every ISR, nothing is done to any other node that serves
clients. (A member that is the last of its ISR stays a member though it died, and would be elected
with an empty disk: by design, in most releases.) The node may lose another disk when all it lost is
back.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from clusters.kafka_port import ClusterView, PartitionView
from clusters.port import NodeName
from nemesis.targets import Scene

__all__ = ["NEXT_LOOK", "LostDisks"]

NEXT_LOOK: Final = 2
"""So many looks later one has begun since: one may be under way."""


@dataclass(slots=True)
class LostDisks:
    """The disks that were lost and are not whole again."""

    _lost: dict[NodeName, int] = field(default_factory=dict)
    """The count of looks at which a look has begun since the loss, by node."""
    _pending: set[NodeName] = field(default_factory=set)
    """Those of which no look has shown yet that they are out of every ISR."""

    @property
    def lost(self) -> Collection[NodeName]:
        """The nodes whose disks are not whole again."""
        return self._lost.keys()

    @property
    def pending(self) -> Collection[NodeName]:
        """The nodes that may still be taken for members of an ISR."""
        return self._pending

    def lose(self, node: NodeName, *, look_count: int) -> None:
        """Note that the node loses its disk now."""
        self._lost[node] = look_count + NEXT_LOOK
        self._pending.add(node)

    def look(self, scene: Scene, *, look_count: int, impaired: Collection[NodeName]) -> None:
        """Take note of what a look shows."""
        partitions = _partitions(scene)
        for node, since in list(self._lost.items()):
            if look_count < since or partitions is None:
                continue
            member = scene.broker_ids.get(node)
            if not any(member in one.isr for one in partitions):
                self._pending.discard(node)
            if node not in self._pending and node not in impaired:
                del self._lost[node]

    def may_lose(self, node: NodeName, scene: Scene, *, gone: Collection[NodeName]) -> bool:
        """Return whether this node may lose its disk. `gone`: those that do not go on."""
        partitions = _partitions(scene)
        member = scene.broker_ids.get(node)
        if self._lost.keys() - {node} or partitions is None or member is None:
            return False
        well = {
            number
            for name, number in scene.broker_ids.items()
            if name != node and name not in gone and number in scene.view.taking_part
        }
        return all(member not in one.isr or well.intersection(one.isr) for one in partitions)


def _partitions(scene: Scene) -> Sequence[PartitionView] | None:
    """The partitions with several replicas: a single one is lost with its disk, whatever else."""
    view: ClusterView | None = scene.view
    if view is None:
        return None
    return [one for one in view.partitions.values() if len(one.replicas) > 1]
