"""Little processor time: the kernel lets the node run for a share of each tenth of a second."""

from clusters.abilities import Throttles
from clusters.port import Cluster, NodeName
from nemesis.steps import Act, Share
from nemesis.verbs.fault import Fault, one_by_one

__all__ = ["THROTTLE"]


def _inject(cluster: Cluster, node: NodeName, act: Act) -> str:
    assert isinstance(cluster, Throttles)
    assert isinstance(act.hardship, Share)
    return cluster.throttle_node(node, act.hardship.of_a_core)


THROTTLE = Fault(
    name="throttle", healed_by="unthrottle", abilities=(Throttles,), inject=one_by_one(_inject)
)
