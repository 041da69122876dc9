"""A power cut: the processes are gone, and with them what they had written and not made durable.

All nodes of one act lose their power together: that is what takes records which every replica has,
and none has synced.
"""

from collections.abc import Sequence

from clusters.abilities import LosesPower, Starts
from clusters.port import Cluster, NodeName, NodeState
from nemesis.steps import Act
from nemesis.verbs.fault import Fault, require_state

__all__ = ["CUT_POWER"]


def _inject(cluster: Cluster, nodes: Sequence[NodeName], act: Act) -> str:
    assert isinstance(cluster, LosesPower)
    lost = cluster.cut_power(nodes, torn_seed=act.seed if act.torn else None)
    for node in nodes:
        require_state(cluster, node, NodeState.DOWN)
    return f"without power: {lost}"


CUT_POWER = Fault(
    name="cut_power", healed_by="start", abilities=(LosesPower, Starts), inject=_inject
)
