"""Little memory: what the node has cached and mapped is taken from it again and again."""

from clusters.abilities import Squeezes
from clusters.port import Cluster, NodeName
from nemesis.steps import Act, Room
from nemesis.verbs.fault import Fault, one_by_one

__all__ = ["SQUEEZE"]


def _inject(cluster: Cluster, node: NodeName, act: Act) -> str:
    assert isinstance(cluster, Squeezes)
    assert isinstance(act.hardship, Room)
    return cluster.squeeze_node(node, act.hardship.size_bytes)


SQUEEZE = Fault(
    name="squeeze", healed_by="unsqueeze", abilities=(Squeezes,), inject=one_by_one(_inject)
)
