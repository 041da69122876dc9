"""A graceful stop: controlled shutdown, as in a rolling restart."""

from clusters.abilities import Starts, Stops
from clusters.port import Cluster, NodeName, NodeState
from nemesis.steps import Act
from nemesis.verbs.fault import Fault, one_by_one, require_state

__all__ = ["STOP"]


def _inject(cluster: Cluster, node: NodeName, _act: Act) -> str:
    assert isinstance(cluster, Stops)
    by_itself = cluster.stop_node(node)
    require_state(cluster, node, NodeState.DOWN)
    return f"{node}: {'shut down by itself' if by_itself else 'had to be killed after SIGTERM'}"


STOP = Fault(name="stop", healed_by="start", abilities=(Stops, Starts), inject=one_by_one(_inject))
