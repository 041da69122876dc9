"""A lost disk: the data of a node that is down is deleted, and its disk formatted anew."""

from dataclasses import dataclass, replace
from typing import Any

from fencepost.clusters.abilities import FormatsByTool, Starts, Wipes
from fencepost.clusters.port import Cluster, NodeName, NodeState
from fencepost.nemesis.targets import NamedNodes
from fencepost.nemesis.verbs.episode import on_nodes, until_healed
from fencepost.nemesis.verbs.kill import Kill
from fencepost.nemesis.verbs.on_nodes import each, node_verb, require_state
from fencepost.nemesis.verbs.predicted_state import Now, PredictedState
from fencepost.nemesis.verbs.start import Start
from fencepost.nemesis.verbs.step import OnNodes
from fencepost.nemesis.verbs.step_source import StepSource
from fencepost.nemesis.verbs.verb import NodeAction

_FLAGS = ("keep_directory_id", "by_tool")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wipe(OnNodes):
    """Delete the data of each node."""

    keep_directory_id: bool = False
    """The disk is empty, and Kafka takes it for the one it was."""
    by_tool: bool = False
    """The release's own tool formats the disk, which is not synced then."""


def _own(written: StepSource) -> dict[str, Any]:
    return {flag: written.flag(flag) for flag in _FLAGS}


def _own_data(step: Wipe) -> dict[str, object]:
    return {flag: True for flag in _FLAGS if getattr(step, flag)}


def _do(cluster: Cluster, node: NodeName, step: Wipe) -> str:
    assert isinstance(cluster, Wipes)
    require_state(cluster, node, NodeState.DOWN)
    if step.by_tool:
        assert isinstance(cluster, FormatsByTool)
        cluster.wipe_node_by_tool(node)
        return f"{node}: its data is deleted; the release's own tool formatted its disk, unsynced"
    cluster.wipe_node(node, keep_directory_id=step.keep_directory_id)
    return f"{node}: its data is deleted, its disk formatted anew"


_WIPE = node_verb(
    "wipe",
    ("kill: broker-1", "wipe: broker-1"),
    Wipe,
    NodeAction(
        do=each(_do),
        abilities=(Wipes, Starts),
        further=lambda step: (FormatsByTool,) if step.by_tool else (),
        tried_in=(NodeState.DOWN,),
        loses_records=True,
        needs_down=True,
    ),
    healed_by="start",
    modifiers=_FLAGS,
    own=_own,
    own_data=_own_data,
    before=(Now.DOWN,),
    episodes=(on_nodes("wipe", until_healed(Kill, Wipe, healed=Start), destructive=True),),
    state="wiped",
    tones=("#8d5a34", "#c08d63"),
)


def _follow(step: Wipe, predicted: PredictedState) -> None:
    """Follow a wipe: a node that was removed may lose its disk before it is added anew."""
    if isinstance(step.target, NamedNodes):
        members = tuple(node for node in step.target.nodes if node in predicted.members)
        step = replace(step, target=NamedNodes(nodes=members))
    _WIPE.follow(step, predicted)


VERBS = (replace(_WIPE, follow=_follow),)
