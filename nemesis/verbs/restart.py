"""A planned restart: controlled shutdown, and the start at once; perhaps of another release."""

from clusters.abilities import Starts, Stops
from clusters.evolution import ChangesReleases
from clusters.port import Cluster, NodeName, NodeState
from nemesis.steps import Act
from nemesis.verbs.fault import Fault, one_by_one, require_state

__all__ = ["RESTART"]


def _inject(cluster: Cluster, node: NodeName, act: Act) -> str:
    assert isinstance(cluster, Stops)
    assert isinstance(cluster, Starts)
    by_itself = cluster.stop_node(node)
    require_state(cluster, node, NodeState.DOWN)
    evidence = f"{node}: {'shut down by itself' if by_itself else 'had to be killed after SIGTERM'}"
    if act.release is not None:
        assert isinstance(cluster, ChangesReleases)
        evidence += f"; {cluster.change_release(node, act.release)}"
    cluster.start_node(node)
    require_state(cluster, node, NodeState.RUNNING)
    return f"{evidence}; started again"


RESTART = Fault(
    name="restart",
    healed_by="start",
    abilities=(Stops, Starts),
    inject=one_by_one(_inject),
    mends_itself=True,
)
