"""A lost disk: the data of a node that is down is deleted, and its disk formatted anew."""

from clusters.port import Cluster, NodeName, NodeState, Starts, Wipes
from nemesis.faults.fault import Fault, require_state

__all__ = ["WIPE"]


def _inject(cluster: Cluster, node: NodeName, _label: str) -> str:
    assert isinstance(cluster, Wipes)
    require_state(cluster, node, NodeState.DOWN)
    cluster.wipe_node(node)
    return f"{node}: its data is deleted, its disk formatted anew"


WIPE = Fault(name="wipe", healed_by="start", abilities=(Wipes, Starts), inject=_inject)
