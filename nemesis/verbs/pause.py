"""SIGSTOP: the process holds its sockets and its leases and does nothing, like a long GC pause."""

from dataclasses import dataclass

from fencepost.clusters.abilities import Pauses
from fencepost.clusters.port import Cluster, NodeName, NodeState
from fencepost.nemesis.verbs.episode import on_nodes, until_healed
from fencepost.nemesis.verbs.on_nodes import each, node_verb, require_state
from fencepost.nemesis.verbs.predicted_state import Now
from fencepost.nemesis.verbs.step import OnNodes
from fencepost.nemesis.verbs.verb import Healing, NodeAction


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause(OnNodes):
    """Stop every thread of each node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume(OnNodes):
    """Let each node go on."""


def _pause(cluster: Cluster, node: NodeName, _step: Pause) -> str:
    assert isinstance(cluster, Pauses)
    cluster.pause_node(node)
    require_state(cluster, node, NodeState.PAUSED)
    return f"{node}: every thread is stopped"


def _resume(cluster: Cluster, node: NodeName, _step: Resume) -> str:
    assert isinstance(cluster, Pauses)
    cluster.resume_node(node)
    return ""


_PAUSE = node_verb(
    "pause",
    ("pause: broker-1",),
    Pause,
    NodeAction(do=each(_pause), abilities=(Pauses,), tried_in=(NodeState.RUNNING,)),
    healed_by="resume",
    before=(Now.UP,),
    after=Now.PAUSED,
    episodes=(on_nodes("pause", until_healed(Pause, healed=Resume)),),
    state="paused",
    tones=("#cf8a12", "#e9ab3c"),
)
_RESUME = node_verb(
    "resume",
    ("pause: broker-1", "resume: broker-1"),
    Resume,
    NodeAction(
        do=each(_resume),
        abilities=(Pauses,),
        tried_in=(NodeState.PAUSED,),
        heals=Healing(seen="goes on, it takes part"),
    ),
    before=(Now.PAUSED,),
    after=Now.UP,
)
VERBS = (_PAUSE, _RESUME)
