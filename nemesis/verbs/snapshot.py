"""An old backup, a lost tail: the disk of a node that is down is put back to an earlier copy."""

from dataclasses import dataclass
from typing import Any

from fencepost.clusters.abilities import Snapshots, Starts
from fencepost.clusters.port import Cluster, NodeName, NodeState
from fencepost.history.failure import SpecError
from fencepost.nemesis.schedules.draws import Between, Drawn, Label
from fencepost.nemesis.schedules.schedule import DURATION, FOR_A_DRAWN_TIME, Act, WaitFor, then
from fencepost.nemesis.schedules.scope import TARGET
from fencepost.nemesis.verbs.episode import on_nodes
from fencepost.nemesis.verbs.kill import Kill
from fencepost.nemesis.verbs.on_nodes import each, node_verb, require_state
from fencepost.nemesis.verbs.predicted_state import Now, PredictedState
from fencepost.nemesis.verbs.start import Start
from fencepost.nemesis.verbs.step import OnNodes
from fencepost.nemesis.verbs.step_source import StepSource
from fencepost.nemesis.verbs.verb import NodeAction

_LABEL = "snapshot"


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeSnapshot(OnNodes):
    """Copy the disk of each node, running or not."""

    label: str = _LABEL


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback(OnNodes):
    """Put the disk of each node back to its copy of that label."""

    label: str = _LABEL


def _label(key: str, written: StepSource) -> dict[str, Any]:
    return {"label": str(written.item.get(key, _LABEL))}


def _copy(cluster: Cluster, node: NodeName, step: TakeSnapshot) -> str:
    assert isinstance(cluster, Snapshots)
    cluster.snapshot_node(node, step.label)
    return ""


def _roll_back(cluster: Cluster, node: NodeName, step: Rollback) -> str:
    assert isinstance(cluster, Snapshots)
    require_state(cluster, node, NodeState.DOWN)
    cluster.rollback_node(node, step.label)
    return f"{node}: its data is that of snapshot {step.label!r}"


def _taken(step: TakeSnapshot, predicted: PredictedState) -> None:
    predicted.snapshots.add(step.label)


def _has_one(step: Rollback, predicted: PredictedState) -> None:
    if step.label not in predicted.snapshots:
        raise SpecError(("rollback",), f"no earlier step takes a snapshot {step.label!r}")


_SCHEDULE = then(
    FOR_A_DRAWN_TIME,
    Act(TakeSnapshot, TARGET, of=(("label", Label()),)),
    WaitFor(Between(stated="gap")),
    Act(Kill, TARGET),
    Act(Rollback, TARGET, of=(("label", Label()),)),
    WaitFor(Drawn(DURATION)),
    Act(Start, TARGET),
)


_SNAPSHOT = node_verb(
    "snapshot",
    ("snapshot: broker-1",),
    TakeSnapshot,
    NodeAction(do=each(_copy), abilities=(Snapshots,), tried_in=tuple(NodeState)),
    modifiers=("as",),
    own=lambda written: _label("as", written),
    own_data=lambda step: {"as": step.label},
    also=_taken,
)
_ROLLBACK = node_verb(
    "rollback",
    ("snapshot: broker-1", "kill: broker-1", "rollback: broker-1"),
    Rollback,
    NodeAction(
        do=each(_roll_back),
        abilities=(Snapshots, Starts),
        tried_in=(NodeState.DOWN,),
        loses_records=True,
        needs_down=True,
    ),
    healed_by="start",
    modifiers=("to",),
    own=lambda written: _label("to", written),
    own_data=lambda step: {"to": step.label},
    before=(Now.DOWN,),
    also=_has_one,
    episodes=(on_nodes("rollback", _SCHEDULE, destructive=True),),
    state="rolled back",
    tones=("#a8477f", "#dd7fb6"),
)
VERBS = (_SNAPSHOT, _ROLLBACK)
