"""A lost disk: the data of a node that is down is deleted, and its disk formatted anew."""

from clusters.abilities import FormatsByTool, Starts, Wipes
from clusters.port import Cluster, NodeName, NodeState
from nemesis.steps import Act
from nemesis.verbs.fault import Fault, one_by_one, require_state

__all__ = ["WIPE"]


def _inject(cluster: Cluster, node: NodeName, act: Act) -> str:
    assert isinstance(cluster, Wipes)
    require_state(cluster, node, NodeState.DOWN)
    if act.by_tool:
        assert isinstance(cluster, FormatsByTool)
        cluster.wipe_node_by_tool(node)
        return f"{node}: its data is deleted; the release's own tool formatted its disk, unsynced"
    cluster.wipe_node(node, keep_directory_id=act.keep_directory_id)
    return f"{node}: its data is deleted, its disk formatted anew"


WIPE = Fault(name="wipe", healed_by="start", abilities=(Wipes, Starts), inject=one_by_one(_inject))
