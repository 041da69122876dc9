"""A power cut: the process is gone, and with it what it had written and not made durable."""

from clusters.port import Cluster, LosesPower, NodeName, NodeState, Starts
from nemesis.faults.fault import Fault, require_state
from nemesis.steps import Act

__all__ = ["CUT_POWER"]


def _inject(cluster: Cluster, node: NodeName, _act: Act) -> str:
    assert isinstance(cluster, LosesPower)
    lost = cluster.cut_power(node)
    require_state(cluster, node, NodeState.DOWN)
    return f"{node}: without power, {lost}"


CUT_POWER = Fault(
    name="cut_power", healed_by="start", abilities=(LosesPower, Starts), inject=_inject
)
