"""Little memory: what the node has cached and mapped is taken from it again and again.

    - {squeeze: broker-1, room: 16MiB}           # beyond its heap

A mix draws so little room beyond the heap that cached and mapped pages are read again and again.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from fencepost.clusters.abilities import Squeezes
from fencepost.clusters.port import Cluster, NodeName
from fencepost.history.failure import SpecError
from fencepost.nemesis.schedules.draws import Amount
from fencepost.nemesis.schedules.schedule import Act, lasting
from fencepost.nemesis.schedules.scope import TARGET, Scope
from fencepost.nemesis.verbs.episode import on_nodes
from fencepost.nemesis.verbs.on_nodes import each, node_verb
from fencepost.nemesis.verbs.predicted_state import Now
from fencepost.nemesis.verbs.prerequisite import Prerequisite
from fencepost.nemesis.verbs.step import OnNodes
from fencepost.nemesis.verbs.step_source import StepSource
from fencepost.nemesis.verbs.verb import Healing, NodeAction

_SIZE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(KiB|MiB|GiB)")
_BYTES: Final = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_ROOM_MIN_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Squeeze(OnNodes):
    """Give each node little memory."""

    room_bytes: int
    """The memory that it is left beyond its heap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsqueeze(OnNodes):
    """Give each node as much memory as it asks for."""


def _own(written: StepSource) -> dict[str, Any]:
    return {"room_bytes": written.needed("room", _size_bytes)}


def _do(cluster: Cluster, node: NodeName, step: Squeeze) -> str:
    assert isinstance(cluster, Squeezes)
    return cluster.squeeze_node(node, step.room_bytes)


def _undo(cluster: Cluster, node: NodeName, _step: Unsqueeze) -> str:
    assert isinstance(cluster, Squeezes)
    return cluster.unsqueeze_node(node)


@dataclass(frozen=True, slots=True)
class _DrawnRoom(Amount):
    """So much memory, in whole KiB."""

    low_bytes: int = 4 << 20
    high_bytes: int = 16 << 20

    def drawn(self, scope: Scope) -> int:
        """Draw it."""
        return scope.draw.randint(self.low_bytes, self.high_bytes) >> 10 << 10


_SCHEDULE: Final = lasting(
    Act(Squeeze, TARGET, of=(("room_bytes", _DrawnRoom()),)), healed=Act(Unsqueeze, TARGET)
)


def _size_bytes(value: object) -> int:
    found = _SIZE.fullmatch(str(value).strip())
    size_bytes = round(float(found[1]) * _BYTES[found[2]]) if found else 0
    if size_bytes < _ROOM_MIN_BYTES:
        raise SpecError((), f"expected 1MiB or more, e.g. 16MiB, found {value!r}")
    return size_bytes


_SQUEEZE = node_verb(
    "squeeze",
    ("{squeeze: broker-1, room: 8MiB}",),
    Squeeze,
    NodeAction(
        do=each(_do),
        abilities=(Squeezes,),
        on_this_machine=True,
        prerequisite=Prerequisite.GROUPS,
    ),
    healed_by="unsqueeze",
    modifiers=("room",),
    own=_own,
    own_data=lambda step: {"room": f"{step.room_bytes // _BYTES['KiB']}KiB"},
    before=(Now.UP, Now.PAUSED),
    episodes=(on_nodes("squeeze", _SCHEDULE),),
    state="squeezed",
    tones=("#86198f", "#d08ad8"),
)
_UNSQUEEZE = node_verb(
    "unsqueeze",
    ("{squeeze: broker-1, room: 8MiB}", "unsqueeze: broker-1"),
    Unsqueeze,
    NodeAction(
        do=each(_undo),
        abilities=(Squeezes,),
        heals=Healing(seen="runs, it takes part", of_running_nodes=False, of_the_living=True),
    ),
)
VERBS = (_SQUEEZE, _UNSQUEEZE)
