"""A lost disk: the data of a node that is down is deleted, and its disk formatted anew."""

from clusters.abilities import Starts, Wipes
from clusters.port import Cluster, NodeName, NodeState
from nemesis.faults.fault import Fault, one_by_one, require_state
from nemesis.steps import Act

__all__ = ["WIPE"]


def _inject(cluster: Cluster, node: NodeName, act: Act) -> str:
    assert isinstance(cluster, Wipes)
    require_state(cluster, node, NodeState.DOWN)
    cluster.wipe_node(node, keep_directory_id=act.keep_directory_id, by_tool=act.by_tool)
    by = ", by the release's own tool, and not synced" if act.by_tool else ""
    return f"{node}: its data is deleted, its disk formatted anew{by}"


WIPE = Fault(name="wipe", healed_by="start", abilities=(Wipes, Starts), inject=one_by_one(_inject))
