"""The start of a node that is down, on the disk that it has; perhaps of another release."""

from dataclasses import dataclass

from fencepost.clusters.abilities import Starts
from fencepost.clusters.evolution import ChangesReleases
from fencepost.clusters.port import Cluster, NodeName, NodeState
from fencepost.nemesis.release_course import parse_release
from fencepost.nemesis.verbs.on_nodes import each, node_verb
from fencepost.nemesis.verbs.predicted_state import Now, PredictedState
from fencepost.nemesis.verbs.step import OnNodes
from fencepost.nemesis.verbs.step_source import StepSource
from fencepost.nemesis.verbs.verb import Healing, NodeAction


@dataclass(frozen=True, slots=True, kw_only=True)
class StartsAnew(OnNodes):
    """A step after which a node runs in a new process."""

    release: str | None = None
    """The release that the node runs from then on; None: the one it ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start(StartsAnew):
    """Start each node."""


def release_of(written: StepSource) -> dict[str, str | None]:
    """Read the release that `to` names, if it is there."""
    return {"release": written.read("to", parse_release) if "to" in written.item else None}


def release_data(step: StartsAnew) -> dict[str, object]:
    """Write the modifier that `release_of` reads."""
    return {} if step.release is None else {"to": step.release}


def new_release(step: StartsAnew, predicted: PredictedState) -> None:
    """Follow a node to its new release."""
    if step.release is not None:
        predicted.releases.moved(step.target, step.release)


def further(step: StartsAnew) -> tuple[type, ...]:
    """Name what a change of release takes."""
    return () if step.release is None else (ChangesReleases,)


def change_release(cluster: Cluster, node: NodeName, step: StartsAnew) -> str:
    """Have the node run the step's release from its next start on; return the evidence, if any."""
    if step.release is None:
        return ""
    assert isinstance(cluster, ChangesReleases)
    return cluster.change_release(node, step.release)


def _do(cluster: Cluster, node: NodeName, step: Start) -> str:
    assert isinstance(cluster, Starts)
    change_release(cluster, node, step)
    cluster.start_node(node)
    return ""


_START = node_verb(
    "start",
    ("kill: broker-1", "start: broker-1"),
    Start,
    NodeAction(
        do=each(_do),
        abilities=(Starts,),
        further=further,
        tried_in=(NodeState.DOWN,),
        needs_down=True,
        heals=Healing(seen="runs again, it takes part"),
    ),
    modifiers=("to",),
    own=release_of,
    own_data=release_data,
    before=(Now.DOWN,),
    after=Now.UP,
    also=new_release,
)
VERBS = (_START,)
