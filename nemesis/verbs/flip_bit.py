"""A bit that is not what was written: in the log, an index or the metadata of a node that is down.

One that the node cannot know of by itself stays until somebody reads it. Kafka looks at checksums
only where it recovers a log after an unclean end, and where a consumer or a follower reads.
"""

from clusters.abilities import BitFlips, Starts
from clusters.port import Cluster, NodeName, NodeState
from nemesis.steps import Act
from nemesis.verbs.fault import Fault, one_by_one, require_state

__all__ = ["FLIP_BIT"]


def _inject(cluster: Cluster, node: NodeName, act: Act) -> str:
    assert isinstance(cluster, BitFlips)
    assert act.seed is not None, "drawn when it is performed"
    require_state(cluster, node, NodeState.DOWN)
    return f"{node}: {cluster.flip_bit(node, act.part, seed=act.seed)}"


FLIP_BIT = Fault(
    name="flip_bit", healed_by="start", abilities=(BitFlips, Starts), inject=one_by_one(_inject)
)
