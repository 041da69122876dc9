"""A wall clock that is wrong: it jumps, runs too fast or too slow, or goes back and forth."""

from clusters.abilities import Skew, Skews
from clusters.port import Cluster, NodeName
from nemesis.steps import Act
from nemesis.verbs.fault import Fault, one_by_one

__all__ = ["SKEW"]


def _inject(cluster: Cluster, node: NodeName, act: Act) -> str:
    assert isinstance(cluster, Skews)
    assert isinstance(act.hardship, Skew)
    return cluster.skew_node(node, act.hardship)


SKEW = Fault(name="skew", healed_by="unskew", abilities=(Skews,), inject=one_by_one(_inject))
