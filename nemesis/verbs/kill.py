"""kill -9: the process is gone at once; what it had written to the page cache survives."""

from dataclasses import dataclass

from fencepost.clusters.abilities import Kills, Starts
from fencepost.clusters.port import Cluster, NodeName, NodeState
from fencepost.nemesis.verbs.episode import on_nodes, until_healed
from fencepost.nemesis.verbs.on_nodes import UP, each, node_verb, require_state
from fencepost.nemesis.verbs.predicted_state import Now
from fencepost.nemesis.verbs.start import Start
from fencepost.nemesis.verbs.step import OnNodes
from fencepost.nemesis.verbs.verb import NodeAction


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill(OnNodes):
    """End the process of each node at once."""


def _do(cluster: Cluster, node: NodeName, _step: Kill) -> str:
    assert isinstance(cluster, Kills)
    cluster.kill_node(node)
    require_state(cluster, node, NodeState.DOWN)
    return f"{node}: killed with SIGKILL, no process left"


_KILL = node_verb(
    "kill",
    ("kill: broker-1",),
    Kill,
    NodeAction(do=each(_do), abilities=(Kills, Starts), tried_in=UP, takes_down=True),
    healed_by="start",
    before=(Now.UP, Now.PAUSED),
    after=Now.DOWN,
    episodes=(on_nodes("kill", until_healed(Kill, healed=Start)),),
    state="killed",
    tones=("#cf3f4f", "#ef6a78"),
)
VERBS = (_KILL,)
