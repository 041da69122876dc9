"""The windows that a mix can open, and what may strike in them: the grid that a series fills.

A strike that no run tried, in a window that none opened, is only seen by who knows that there
could have been one.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from fencepost.clusters.port import OWN_ROLES, NodeName, NodeRoles
from fencepost.clusters.systems import SYSTEMS
from fencepost.nemesis.messages import sent_by
from fencepost.nemesis.mix_spec import MixSpec
from fencepost.nemesis.wire.rules import Direction

CHANGES_CONTROLLER: Final = "change_controller"
"""The name of any strike on the active controller: what comes of it counts, not how it was done."""

_FETCH: Final = "Fetch"
_BY_ANY: Final = ("kill", "pause", "stop", "wipe", "cut_power", "move_leader", CHANGES_CONTROLLER)
_STRIKES: Final[Mapping[str, Sequence[str]]] = {
    "window": _BY_ANY,
    "ambush": _BY_ANY,
    "relay": ("pause", "move_leader"),
    "late_fetch": ("kill", "pause", "wipe"),
    "hold": (),
}
"""The strikes that each kind with windows draws. Others may strike by chance, in a mix that
overlaps."""
_OF_FETCHES: Final = frozenset(("relay", "late_fetch"))
_IF_DRAWN: Final = frozenset(("cut_power",))
"""The strikes of a mix that draws them alone, too."""


def asked_messages(
    spec: MixSpec, *, nodes: Sequence[NodeName], roles: NodeRoles = OWN_ROLES
) -> tuple[str, ...]:
    """Return the messages, by Kafka's names, around which windows of this mix may lie."""
    forms = {kind for kind in spec.faults if kind in _STRIKES}
    if not forms:
        return ()
    if forms <= _OF_FETCHES:
        return (_FETCH,)
    return tuple(name for name in sent_by(nodes, roles) if not spec.windows or name in spec.windows)


def asked_windows(
    spec: MixSpec, *, nodes: Sequence[NodeName], roles: NodeRoles = OWN_ROLES
) -> tuple[str, ...]:
    """Return the kinds of window of this mix: `AlterPartition request` and so on."""
    messages = asked_messages(spec, nodes=nodes, roles=roles)
    names = SYSTEMS[spec.system].message_names
    return tuple(
        f"{names.get(message, message)} {direction}"
        for message in messages
        for direction in Direction
    )


def asked_strikes(spec: MixSpec) -> tuple[str, ...]:
    """Return the strikes that this mix draws in its windows."""
    drawn = {strike for kind in spec.faults for strike in _STRIKES.get(kind, ())}
    return tuple(one for one in _BY_ANY if one in drawn - (_IF_DRAWN - {*spec.faults}))
