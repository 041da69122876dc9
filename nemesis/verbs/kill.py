"""kill -9: the process is gone at once; what it had written to the page cache survives."""

from clusters.abilities import Kills, Starts
from clusters.port import Cluster, NodeName, NodeState
from nemesis.steps import Act
from nemesis.verbs.fault import Fault, one_by_one, require_state

__all__ = ["KILL"]


def _inject(cluster: Cluster, node: NodeName, _act: Act) -> str:
    assert isinstance(cluster, Kills)
    cluster.kill_node(node)
    require_state(cluster, node, NodeState.DOWN)
    return f"{node}: killed with SIGKILL, no process left"


KILL = Fault(name="kill", healed_by="start", abilities=(Kills, Starts), inject=one_by_one(_inject))
