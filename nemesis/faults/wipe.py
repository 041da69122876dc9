"""A lost disk: the data of a node that is down is deleted, and its disk formatted anew."""

from clusters.port import Cluster, NodeName, NodeState, Starts, Wipes
from nemesis.faults.fault import Fault, require_state
from nemesis.steps import Act

__all__ = ["WIPE"]


def _inject(cluster: Cluster, node: NodeName, act: Act) -> str:
    assert isinstance(cluster, Wipes)
    require_state(cluster, node, NodeState.DOWN)
    cluster.wipe_node(node, keep_directory_id=act.keep_directory_id)
    return f"{node}: its data is deleted, its disk formatted anew"


WIPE = Fault(name="wipe", healed_by="start", abilities=(Wipes, Starts), inject=_inject)
