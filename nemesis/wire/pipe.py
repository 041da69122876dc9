"""One direction of a connection: where its walk stands, and what waits in it."""

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from nemesis.wire.effects import Side
from nemesis.wire.frame import Frame
from nemesis.wire.frames import Unread, Walker
from nemesis.wire.rulebook import LaidRule
from nemesis.wire.rules import Direction
from nemesis.wire.tape import FrameFate

if TYPE_CHECKING:
    from nemesis.wire.sessions import Session

__all__ = ["RECEIVER", "SENDER", "HeldFrame", "Pipe"]

SENDER: Final = {Direction.REQUEST: Side.NEAR, Direction.RESPONSE: Side.FAR}
RECEIVER: Final = {Direction.REQUEST: Side.FAR, Direction.RESPONSE: Side.NEAR}

_CARRIED_BYTES_MAX: Final = 4 << 20
"""The bound of a pipe that is delayed, and so is read on."""


@dataclass(slots=True, eq=False, kw_only=True)
class HeldFrame:
    """A frame at which its direction stands still, until its rule lets go of it."""

    session: "Session"
    pipe: "Pipe"
    entry: "LaidRule[HeldFrame]"
    frame: Frame
    number: int
    """Its number on the tape."""
    fate: FrameFate
    """The tape's word for it once it is passed on."""
    passed: bool = False
    """It was passed on already: only what follows it waits (a stall)."""
    due_ns: int | None = None
    """The time at which it is passed on without a release; None: it waits for one."""


@dataclass(slots=True, eq=False, kw_only=True)
class Pipe:
    """One direction. Bytes that come while it stands still are carried behind the waiting frame."""

    direction: Direction
    walker: Walker | Unread
    receiver: Side = field(init=False)
    """The side to which its bytes go."""
    _carry: deque[tuple[int, bytes]] = field(default_factory=deque)
    _carry_bytes: int = 0
    waiting: HeldFrame | None = None
    blocked: bool = False
    """Its flow is blocked: nothing goes through."""
    late: list[HeldFrame] = field(default_factory=list)
    """Frames that were released while it was blocked: they arrive when it heals."""
    ended: bool = False
    """Its sender will send no more."""
    finished: bool = False
    """Its receiver was told that it has ended."""
    discarding: bool = False
    """Its sender was cut off: what it had sent is thrown away."""

    def __post_init__(self) -> None:
        self.receiver = RECEIVER[self.direction]

    @property
    def stopped(self) -> bool:
        """Return whether it stands still."""
        return self.blocked or self.waiting is not None

    @property
    def reads(self) -> bool:
        """Return whether its sender is to be read. A line that is merely slow takes what comes."""
        if self.ended:
            return False
        if not self.stopped:
            return True
        delayed = self.waiting is not None and self.waiting.due_ns is not None
        return delayed and not self.blocked and self.carried_bytes < _CARRIED_BYTES_MAX

    @property
    def keeps_receiver(self) -> bool:
        """Return whether a frame waits here that is still to be delivered."""
        return self.waiting is not None and not self.waiting.passed

    @property
    def carries(self) -> bool:
        """Return whether bytes wait here that are still to be walked over."""
        return bool(self._carry)

    @property
    def carried_bytes(self) -> int:
        """Return the number of bytes that wait here."""
        waiting = self.waiting
        frame = len(waiting.frame.data) if waiting is not None and not waiting.passed else 0
        return frame + self._carry_bytes

    def carry(self, chunk: bytes, *, arrived_ns: int) -> None:
        """Keep bytes that came, behind all that wait already."""
        self._carry.append((arrived_ns, chunk))
        self._carry_bytes += len(chunk)

    def carry_on(self, chunk: bytes, *, arrived_ns: int) -> None:
        """Keep bytes that were taken, before all others."""
        self._carry.appendleft((arrived_ns, chunk))
        self._carry_bytes += len(chunk)

    def take(self) -> tuple[int, bytes]:
        """Return the first bytes that wait, with the time of their arrival."""
        arrived_ns, chunk = self._carry.popleft()
        self._carry_bytes -= len(chunk)
        return arrived_ns, chunk

    def clear(self) -> None:
        """Throw away what waits, and whatever comes."""
        self._carry.clear()
        self._carry_bytes = 0
        self.discarding = True
