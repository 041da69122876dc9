"""A connection as the actions of rules see it: two pipes, and what waits in them."""

from collections import deque
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, Protocol

from fencepost.nemesis.wire.effects import Side
from fencepost.nemesis.wire.frame import Frame
from fencepost.nemesis.wire.rulebook import LaidRule
from fencepost.nemesis.wire.rules import Direction
from fencepost.nemesis.wire.tape import FrameFate

SENDER: Final = {Direction.REQUEST: Side.NEAR, Direction.RESPONSE: Side.FAR}
RECEIVER: Final = {Direction.REQUEST: Side.FAR, Direction.RESPONSE: Side.NEAR}

_CARRIED_BYTES_MAX: Final = 4 << 20
"""The bound of a pipe that is delayed, and so is read on."""


class RuledConnection(Protocol):
    """A connection, by the acts that the actions of rules are made of."""

    now_ns: int
    """The time of the event that is being dealt with."""

    @property
    def hold_ns_max(self) -> int | None:
        """The time for which its source can do without an answer; None: as long as it takes."""

    def send(
        self, pipe: "Pipe", frame: Frame, fate: FrameFate, *, rule: str, data: bytes | None = None
    ) -> int:
        """Pass a frame on (`data` in its place); return its number on the tape."""

    def keep_back(self, frame: Frame, fate: FrameFate, *, rule: str) -> int:
        """Do not pass a frame on; return its number on the tape."""

    def stop(self, held: "HeldFrame") -> None:
        """Have the frame's direction stand still from here on."""

    def resume(self, held: "HeldFrame", now_ns: int) -> bool:
        """Pass on what waits, and go on behind it; return False if its receiver is gone."""

    def discard(self, held: "HeldFrame") -> None:
        """Throw away what waits, and close the connection."""

    def close(self) -> None:
        """Close both sides; only a frame that waits keeps its receiver."""

    def close_behind(self, pipe: "Pipe") -> None:
        """Cut the sender off: what was passed on arrives, and nothing follows it."""

    def answer(self, request: Frame, response: bytes, *, rule: str) -> None:
        """Answer a request in the target's place, when it is its turn."""

    def again(self, frame: Frame, *, copy: bool) -> None:
        """Send a request over a connection of its own. `copy`: it is there twice now."""

    def give_up(self, reason: str) -> None:
        """Close the connection, and say why."""


class Walk(Protocol):
    """The walk of one direction over what comes, as far as its connection has to know."""

    attentive: bool
    """Stop also behind each frame that is passed on."""

    @property
    def inside(self) -> bool:
        """Return whether a frame has begun and not ended."""

    def rest(self) -> bytes:
        """Return the kept part of a frame that never became whole, once no more will come."""


@dataclass(slots=True, eq=False)
class HeldFrame:
    """A frame at which its direction stands still, until its rule lets go of it."""

    connection: RuledConnection
    pipe: "Pipe"
    entry: "LaidRule[HeldFrame]"
    frame: Frame
    _: KW_ONLY
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
    """One direction. What comes while it stands still is carried behind the waiting frame."""

    direction: Direction
    walker: Walk
    receiver: Side = field(init=False)
    """The side to which its bytes go."""
    _carry: deque[tuple[int, Any]] = field(default_factory=deque)
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
        """Return whether unparsed bytes are buffered."""
        return bool(self._carry)

    @property
    def carried_bytes(self) -> int:
        """Return the number of bytes that wait here."""
        waiting = self.waiting
        frame = len(waiting.frame.data) if waiting is not None and not waiting.passed else 0
        return frame + self._carry_bytes

    def carry(self, chunk: Any, *, arrived_ns: int) -> None:
        """Keep bytes that came, behind all that wait already."""
        self._carry.append((arrived_ns, chunk))
        self._carry_bytes += len(chunk)

    def carry_on(self, chunk: Any, *, arrived_ns: int) -> None:
        """Keep bytes that were taken, before all others."""
        self._carry.appendleft((arrived_ns, chunk))
        self._carry_bytes += len(chunk)

    def take(self) -> tuple[int, Any]:
        """Return the first bytes that wait, with the time of their arrival."""
        arrived_ns, chunk = self._carry.popleft()
        self._carry_bytes -= len(chunk)
        return arrived_ns, chunk

    def clear(self) -> None:
        """Throw away what waits, and whatever comes."""
        self._carry.clear()
        self._carry_bytes = 0
        self.discarding = True
