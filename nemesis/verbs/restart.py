"""A planned restart: controlled shutdown, and the start at once; perhaps of another release.

Each node in turn: the next one once this one is back.
"""

from dataclasses import dataclass

from fencepost.clusters.abilities import Starts, Stops
from fencepost.clusters.port import Cluster, NodeName, NodeState
from fencepost.nemesis.schedules.schedule import Act
from fencepost.nemesis.schedules.scope import TARGET
from fencepost.nemesis.verbs.episode import Begun, Episode, Opening, timed
from fencepost.nemesis.verbs.on_nodes import each, node_verb, require_state
from fencepost.nemesis.verbs.predicted_state import Now
from fencepost.nemesis.verbs.start import (
    Start,
    StartsAnew,
    change_release,
    further,
    new_release,
    release_data,
    release_of,
)
from fencepost.nemesis.verbs.stop import ShutDown, shut_down
from fencepost.nemesis.verbs.verb import NodeAction


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart(StartsAnew):
    """Stop and start each node in turn."""


def _do(cluster: Cluster, node: NodeName, step: Restart) -> str:
    assert isinstance(cluster, Starts)
    stopped, changed = shut_down(cluster, node), change_release(cluster, node, step)
    cluster.start_node(node)
    require_state(cluster, node, NodeState.RUNNING)
    return f"{'; '.join(filter(None, (stopped, changed)))}; started again"


def _parts(step: Restart) -> tuple[ShutDown, Start]:
    return (
        ShutDown(target=step.target, kind=step.kind),
        Start(target=step.target, kind=step.kind, release=step.release),
    )


def _roll(draft: Opening) -> Begun | None:
    """Begin with all nodes of a role; the step is over once each node was waited for."""
    if not draft.roles or draft.busy:
        return None
    role, roles = draft.draw.choice(sorted(draft.roles)), draft.scene.roles
    peers = roles.among(draft.scene.nodes, role)
    nodes = tuple(node for node in peers if {*roles.of(node)} <= {*draft.roles})
    if not nodes:
        return None
    return Begun(nodes=nodes, due=timed(_ROLL, draft.scope(*nodes), draft.now_s))


_ROLL = Act(Restart, TARGET)
_RESTART = node_verb(
    "restart",
    ("restart: broker-1",),
    Restart,
    NodeAction(
        do=each(_do),
        abilities=(Stops, Starts),
        further=further,
        parts=_parts,
        mends_itself=True,
    ),
    healed_by="start",
    modifiers=("to",),
    own=release_of,
    own_data=release_data,
    before=(Now.UP, Now.PAUSED),
    after=Now.UP,
    also=new_release,
    episodes=(Episode(kind="roll", schedule=_ROLL, begin=_roll),),
    tones=("#64748b", "#94a3b8"),
)
VERBS = (_RESTART,)
