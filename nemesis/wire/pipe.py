"""One direction of a connection: where its walk stands, and what waits in it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from nemesis.wire.effects import Side
from nemesis.wire.frame import Frame
from nemesis.wire.frames import Walker
from nemesis.wire.rulebook import Entry
from nemesis.wire.rules import Direction
from nemesis.wire.tape import Fate

if TYPE_CHECKING:
    from nemesis.wire.sessions import Session

__all__ = ["RECEIVER", "SENDER", "Pipe", "Waiting"]

SENDER: Final = {Direction.REQUEST: Side.NEAR, Direction.RESPONSE: Side.FAR}
RECEIVER: Final = {Direction.REQUEST: Side.FAR, Direction.RESPONSE: Side.NEAR}


@dataclass(slots=True, eq=False, kw_only=True)
class Waiting:
    """A frame at which its direction stands still, until its rule lets go of it."""

    session: "Session"
    pipe: "Pipe"
    entry: "Entry[Waiting]"
    frame: Frame
    number: int
    """On the tape."""
    fate: Fate
    """What it becomes once it is passed on."""
    passed: bool = False
    """It was passed on already: only what follows it waits (a stall)."""
    due_ns: int | None = None
    """When it is passed on by itself."""


@dataclass(slots=True, eq=False, kw_only=True)
class Pipe:
    """One direction. What comes while it stands still is carried behind what waits."""

    direction: Direction
    walker: Walker
    carry: bytearray = field(default_factory=bytearray)
    waiting: Waiting | None = None
    blocked: bool = False
    """Its flow is: nothing goes through."""
    ended: bool = False
    """Its sender will send no more."""
    finished: bool = False
    """Its receiver was told so."""

    @property
    def stopped(self) -> bool:
        """Whether it stands still, so that its sender is not to be read."""
        return self.blocked or self.waiting is not None

    @property
    def receiver(self) -> Side:
        """Where its bytes go."""
        return RECEIVER[self.direction]
