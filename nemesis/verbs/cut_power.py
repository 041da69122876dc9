"""A power cut: the processes are gone, and with them what they had written and not made durable.

All nodes of one step lose their power together: that is what takes records which every replica has,
and none has synced.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from fencepost.clusters.abilities import LosesPower, Starts
from fencepost.clusters.port import Cluster, NodeName, NodeState
from fencepost.nemesis.schedules.schedule import Act, lasting
from fencepost.nemesis.schedules.scope import TARGET
from fencepost.nemesis.verbs.episode import on_nodes, until_healed
from fencepost.nemesis.verbs.on_nodes import UP, node_verb, require_state
from fencepost.nemesis.verbs.predicted_state import Now
from fencepost.nemesis.verbs.prerequisite import Prerequisite
from fencepost.nemesis.verbs.start import Start
from fencepost.nemesis.verbs.step import OnNodes
from fencepost.nemesis.verbs.step_source import StepSource
from fencepost.nemesis.verbs.verb import NodeAction


@dataclass(frozen=True, slots=True, kw_only=True)
class CutPower(OnNodes):
    """Take the power of all these nodes at once."""

    torn: bool = False
    """True: parts of some logs, drawn from the seed, are on the disk all the same."""
    seed: int | None = None
    """The seed of the draws for a torn log; None until it is performed."""


def _do(cluster: Cluster, nodes: Sequence[NodeName], step: CutPower) -> str:
    assert isinstance(cluster, LosesPower)
    lost = cluster.cut_power(nodes, torn_seed=step.seed if step.torn else None)
    for node in nodes:
        require_state(cluster, node, NodeState.DOWN)
    return f"without power: {lost}"


def _own(written: StepSource) -> dict[str, Any]:
    return {"torn": written.flag("torn"), "seed": written.whole_number("seed")}


def _own_data(step: CutPower) -> dict[str, object]:
    torn: dict[str, object] = {"torn": True} if step.torn else {}
    return torn if step.seed is None else torn | {"seed": step.seed}


def _drawn(step: CutPower, draw: Random) -> CutPower:
    is_open = step.torn and step.seed is None
    return replace(step, seed=draw.getrandbits(32)) if is_open else step


_CUT_POWER = node_verb(
    "cut_power",
    ("cut_power: broker-1",),
    CutPower,
    NodeAction(
        do=_do,
        abilities=(LosesPower, Starts),
        prerequisite=Prerequisite.DISKS,
        tried_in=UP,
        loses_records=True,
        takes_down=True,
        draws=_drawn,
    ),
    healed_by="start",
    modifiers=("torn", "seed"),
    own=_own,
    own_data=_own_data,
    after=Now.DOWN,
    kind=lambda step: "torn" if step.torn else "cut_power",
    episodes=(
        on_nodes("cut_power", until_healed(CutPower, healed=Start), destructive=True),
        on_nodes(
            "torn",
            lasting(Act(CutPower, TARGET, of=(("torn", True),)), healed=Act(Start, TARGET)),
            destructive=True,
        ),
    ),
    state="without power",
    tones=("#4b5563", "#b6bfcc"),
)
VERBS = (_CUT_POWER,)
