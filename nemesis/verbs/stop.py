"""A graceful stop: controlled shutdown, as in a rolling restart."""

from dataclasses import dataclass

from fencepost.clusters.abilities import Starts, Stops
from fencepost.clusters.port import Cluster, NodeName, NodeState
from fencepost.nemesis.schedules.schedule import FOR_A_DRAWN_TIME, Act, then
from fencepost.nemesis.schedules.scope import TARGET
from fencepost.nemesis.verbs.episode import on_nodes
from fencepost.nemesis.verbs.on_nodes import each, node_verb, require_state
from fencepost.nemesis.verbs.predicted_state import Now
from fencepost.nemesis.verbs.start import Start
from fencepost.nemesis.verbs.step import OnNodes
from fencepost.nemesis.verbs.verb import NodeAction

STOP_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutDown(OnNodes):
    """Have each node shut itself down."""

    timeout_s: float = STOP_S
    """The time after which it is killed. No play states it."""


def shut_down(cluster: Cluster, node: NodeName, *, timeout_s: float = STOP_S) -> str:
    """Stop the node, and say how it went."""
    assert isinstance(cluster, Stops)
    by_itself = cluster.stop_node(node, timeout_s=timeout_s)
    require_state(cluster, node, NodeState.DOWN)
    return f"{node}: {'shut down by itself' if by_itself else 'had to be killed after SIGTERM'}"


def _do(cluster: Cluster, node: NodeName, step: ShutDown) -> str:
    return shut_down(cluster, node, timeout_s=step.timeout_s)


_RESTART = then(
    FOR_A_DRAWN_TIME,  # every kind on nodes draws it: what the seed draws next stays the same
    Act(ShutDown, TARGET),
    Act(Start, TARGET),
)
_STOP = node_verb(
    "stop",
    ("stop: broker-1",),
    ShutDown,
    NodeAction(
        do=each(_do),
        abilities=(Stops, Starts),
        tried_in=(NodeState.RUNNING,),
        takes_down=True,
    ),
    healed_by="start",
    before=(Now.UP, Now.PAUSED),
    after=Now.DOWN,
    episodes=(on_nodes("restart", _RESTART),),
    state="stopped",
    tones=("#64748b", "#94a3b8"),
)
VERBS = (_STOP,)
