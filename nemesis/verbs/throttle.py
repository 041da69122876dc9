"""Little processor time: the kernel lets the node run for a share of each tenth of a second.

    - {throttle: broker-1, cpu: 10%}             # of one core

A mix draws 3 % to 10 %: sessions lapse at the one, and an idle node hardly asks for more than the
other.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from fencepost.clusters.abilities import Throttles
from fencepost.clusters.port import Cluster, NodeName
from fencepost.history.failure import SpecError
from fencepost.nemesis.schedules.draws import Between
from fencepost.nemesis.schedules.schedule import Act, lasting
from fencepost.nemesis.schedules.scope import TARGET
from fencepost.nemesis.verbs.episode import on_nodes
from fencepost.nemesis.verbs.on_nodes import each, node_verb
from fencepost.nemesis.verbs.predicted_state import Now
from fencepost.nemesis.verbs.prerequisite import Prerequisite
from fencepost.nemesis.verbs.step import OnNodes
from fencepost.nemesis.verbs.step_source import StepSource
from fencepost.nemesis.verbs.verb import Healing, NodeAction

_PERCENT: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*%")
_SHARE_MIN: Final = 0.01
_DRAWN: Final = Between(0.03, 0.1, digits=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle(OnNodes):
    """Give each node little processor time."""

    of_a_core: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Unthrottle(OnNodes):
    """Give each node as much processor time as it asks for."""


def _own(written: StepSource) -> dict[str, Any]:
    return {"of_a_core": written.needed("cpu", _share)}


def _do(cluster: Cluster, node: NodeName, step: Throttle) -> str:
    assert isinstance(cluster, Throttles)
    return cluster.throttle_node(node, step.of_a_core)


def _undo(cluster: Cluster, node: NodeName, _step: Unthrottle) -> str:
    assert isinstance(cluster, Throttles)
    return cluster.unthrottle_node(node)


_SCHEDULE: Final = lasting(
    Act(Throttle, TARGET, of=(("of_a_core", _DRAWN),)), healed=Act(Unthrottle, TARGET)
)


def _share(value: object) -> float:
    found = _PERCENT.fullmatch(str(value).strip())
    share = float(found[1]) / 100 if found else 0.0
    if not share >= _SHARE_MIN:
        raise SpecError((), f"expected a share of one core from 1% on, e.g. 10%, found {value!r}")
    return share


_THROTTLE = node_verb(
    "throttle",
    ("{throttle: broker-1, cpu: 10%}",),
    Throttle,
    NodeAction(
        do=each(_do),
        abilities=(Throttles,),
        on_this_machine=True,
        prerequisite=Prerequisite.GROUPS,
    ),
    healed_by="unthrottle",
    modifiers=("cpu",),
    own=_own,
    own_data=lambda step: {"cpu": f"{step.of_a_core * 100:.6g}%"},
    before=(Now.UP, Now.PAUSED),
    episodes=(on_nodes("throttle", _SCHEDULE),),
    state="throttled",
    tones=("#a16207", "#d9b44a"),
)
_UNTHROTTLE = node_verb(
    "unthrottle",
    ("{throttle: broker-1, cpu: 10%}", "unthrottle: broker-1"),
    Unthrottle,
    NodeAction(
        do=each(_undo),
        abilities=(Throttles,),
        heals=Healing(seen="runs, it takes part", of_running_nodes=False, of_the_living=True),
    ),
)
VERBS = (_THROTTLE, _UNTHROTTLE)
