"""An old backup, a lost tail: the disk of a node that is down is put back to an earlier copy."""

from clusters.abilities import Snapshots, Starts
from clusters.port import Cluster, NodeName, NodeState
from nemesis.steps import Act
from nemesis.verbs.fault import Fault, one_by_one, require_state

__all__ = ["ROLLBACK"]


def _inject(cluster: Cluster, node: NodeName, act: Act) -> str:
    assert isinstance(cluster, Snapshots)
    require_state(cluster, node, NodeState.DOWN)
    cluster.rollback_node(node, act.label)
    return f"{node}: its data is that of snapshot {act.label!r}"


ROLLBACK = Fault(
    name="rollback", healed_by="start", abilities=(Snapshots, Starts), inject=one_by_one(_inject)
)
