"""SIGSTOP: the process holds its sockets and its leases and does nothing, like a long GC pause."""

from clusters.abilities import Pauses
from clusters.port import Cluster, NodeName, NodeState
from nemesis.steps import Act
from nemesis.verbs.fault import Fault, one_by_one, require_state

__all__ = ["PAUSE"]


def _inject(cluster: Cluster, node: NodeName, _act: Act) -> str:
    assert isinstance(cluster, Pauses)
    cluster.pause_node(node)
    require_state(cluster, node, NodeState.PAUSED)
    return f"{node}: every thread is stopped"


PAUSE = Fault(name="pause", healed_by="resume", abilities=(Pauses,), inject=one_by_one(_inject))
