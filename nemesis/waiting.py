"""The state of a mix in which nothing is broken by it, though something is due.

Nothing is due while a drawn fault lasts, and in the drawn gap before the next one.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_QUIET_S: Final = 40.0
"""The time without a fault in which what is waited for is to have come, or to be left out."""
_PATIENCE_S_MIN: Final = 5.0


class Awaited(StrEnum):
    """The kinds of event that a mix waits for."""

    RECOVERY = "recovery"
    """Nodes that are whole again."""
    DISK = "lost disk"
    """A node whose disk was lost, to be known as lost or whole again."""
    PROTOCOL = "protocol"
    """A message, or what a node does, upon which a strike goes on."""
    TURN = "turn"
    """A state of the cluster in which the kind of fault whose turn it is can begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The event that a mix waits for."""

    kind: Awaited
    words: str


def patience_s(usual_s: float, *, quiet_s: float) -> float:
    """Return the bound of a wait that begins now; `quiet_s`: how long nothing has been broken."""
    return min(usual_s, max(_QUIET_S - quiet_s, _PATIENCE_S_MIN))
