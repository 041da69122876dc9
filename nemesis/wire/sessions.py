"""A connection as a state machine: events and what comes go in, effects come out; without I/O.

What goes over it is its content: the bytes of a proxied connection (`streams`), or the messages of
a simulated one (`nemesis.simulated.connections`). All that rules do to frames is told here once.

Each direction is a pipe. A pipe stands still while a frame of it waits (held, delayed, to be
overtaken) or while its flow is blocked; what arrives then is carried behind it, and goes on in its
order afterwards. What the two ends do meanwhile changes nothing about that:

- A sender that ends or dies ends its pipe, once what waits in it was passed on: bytes that are in
  the network outlive who sent them. So the far side stays open for a request that waits.
- A receiver that is gone gets nothing: what waits for it is *undeliverable* when it is released.
  The proxy never dials again in silence.

A target that has closed its end takes no more either; servers of Kafka never close half.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from fencepost.nemesis.wire.actions import act, let_go
from fencepost.nemesis.wire.effects import (
    Broken,
    Effect,
    Finish,
    ProxyRequest,
    Reset,
    Resumed,
    Send,
    Side,
    Wake,
)
from fencepost.nemesis.wire.exchanges import Exchanges
from fencepost.nemesis.wire.frame import Frame, TopicNames
from fencepost.nemesis.wire.frames import Header
from fencepost.nemesis.wire.pipe import SENDER, HeldFrame, Pipe, Walk
from fencepost.nemesis.wire.rulebook import Judgement, Rulebook
from fencepost.nemesis.wire.rules import Direction, Link
from fencepost.nemesis.wire.tape import FrameFate, Tapes


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """The parts that all sessions of a proxy share."""

    book: Rulebook[HeldFrame]
    tape: Tapes
    names: TopicNames
    act: Callable[["Session", Effect], None]
    """Takes each effect, in its order; does it before the next bytes come in."""
    meant: Callable[[Header], Header] | None = None
    """Translates the header of a request to a controller, where the nodes have a dialect."""


class Content(Protocol):
    """The traffic of a connection, in its own form: bytes or messages."""

    exchanges: Exchanges

    @property
    def hold_ns_max(self) -> int | None:
        """The time for which its source can do without an answer; None: as long as it takes."""

    def walker(self, direction: Direction) -> Walk:
        """Return the walk of a direction."""

    def walk(self, pipe: Pipe, chunk: Any, arrived_ns: int) -> None:
        """Look at what has come, as far as the pipe goes on; it carries the rest."""

    def kept(self, chunk: Any) -> Any:
        """Return what has come, so that it can be kept."""

    def is_gone(self, side: Side) -> bool:
        """Return whether a side is gone, though no event said so."""


class Session:
    """One connection. `errand`: it only takes one request of the wire's own to the target.

    `content` makes what goes over it.
    """

    def __init__(
        self,
        number: int,
        link: Link,
        common: Common,
        content: "Callable[[Session], Content]",
        *,
        errand: bool = False,
    ) -> None:
        self.number: Final = number
        self.link: Final = link
        self.common: Final = common
        self.errand: Final = errand
        self._content = content(self)
        self._exchanges = self._content.exchanges
        self.requests, self.responses = (
            Pipe(direction=direction, walker=self._content.walker(direction))
            for direction in (Direction.REQUEST, Direction.RESPONSE)
        )
        self._pipes: Final = {
            Direction.REQUEST: self.requests,
            Direction.RESPONSE: self.responses,
        }
        self._gone = {Side.NEAR: errand, Side.FAR: False}
        self.now_ns = 0
        """The time of the event that is being dealt with."""

    @property
    def is_idle(self) -> bool:
        """Return whether nothing waits in it."""
        pipes = self._pipes.values()
        return not (self._exchanges.made or any(one.stopped or one.carries for one in pipes))

    def reads(self, side: Side) -> bool:
        """Return whether what this side sends is wanted now."""
        return self._from(side).reads

    def is_gone(self, side: Side) -> bool:
        """Return whether nothing more can be sent to this side."""
        return self._gone[side]

    def carried_bytes(self, direction: Direction) -> int:
        """Return the number of bytes that wait in this direction."""
        return self._pipes[direction].carried_bytes

    def receive(self, side: Side, chunk: Any, now_ns: int) -> bool:
        """Take what came from this side; return whether it is to be read on."""
        self.now_ns = now_ns
        pipe = self.requests if side is Side.NEAR else self.responses
        if not (pipe.blocked or pipe.waiting or pipe.discarding):
            self._content.walk(pipe, chunk, now_ns)
        elif not pipe.discarding:
            pipe.carry(self._content.kept(chunk), arrived_ns=now_ns)
        return pipe.reads

    def end(self, side: Side, now_ns: int) -> None:
        """Take note that this side will send no more (FIN)."""
        self.now_ns = now_ns
        self._from(side).ended = True
        if side is Side.FAR:
            self._gone[Side.FAR] = True
        self._advance(self._from(side))

    def lose(self, side: Side, now_ns: int) -> None:
        """Take note that this side is gone both ways (RST); all that it had sent was received."""
        self.now_ns = now_ns
        self._gone[side] = True
        self._from(side).ended = True
        for pipe in self._pipes.values():
            self._advance(pipe)

    def refuse(self) -> None:
        """Cut both sides, as the target cannot be reached: the source sees the same without us."""
        self._gone[Side.FAR] = True
        self.responses.ended = True
        self.close()

    def close(self) -> None:
        """Close both sides; only a frame that waits keeps its receiver."""
        kept = {pipe.receiver for pipe in self._pipes.values() if pipe.keeps_receiver}
        for side in Side:
            if side not in kept:
                self._reset(side)

    def block(self, direction: Direction) -> None:
        """Let nothing more through in this direction."""
        self._pipes[direction].blocked = True

    def unblock(self, direction: Direction, now_ns: int) -> None:
        """Let the direction go on where it stood."""
        self.now_ns = now_ns
        pipe = self._pipes[direction]
        pipe.blocked = False
        for released in pipe.late:
            fate = FrameFate.UNDELIVERABLE if self._gone[pipe.receiver] else released.fate
            forwarded_ns = None if fate is FrameFate.UNDELIVERABLE else now_ns
            self.common.tape.change(released.number, fate, forwarded_ns=forwarded_ns)
        pipe.late.clear()
        self._advance(pipe)

    def due(self, now_ns: int) -> None:
        """Pass on the frames that were delayed until now."""
        for pipe in self._pipes.values():
            waiting = pipe.waiting
            if waiting is not None and waiting.due_ns is not None and waiting.due_ns <= now_ns:
                let_go(waiting, now_ns)

    def discard(self, waiting: HeldFrame) -> None:
        """Throw away what waits, and cut the connection."""
        waiting.pipe.waiting = None
        self.common.act(self, Resumed())
        if not waiting.passed:
            self.common.tape.change(waiting.number, FrameFate.DROPPED, forwarded_ns=None)
        self.close()

    def run_errand(self, frame: Frame, now_ns: int, *, copy: bool) -> None:
        """Send this request to the target, wait for the answer, and end."""
        assert self.errand
        self.now_ns = now_ns
        if copy:
            own = replace(frame, connection=self.number, time_ns=now_ns)
            self.common.tape.record(own, FrameFate.DUPLICATED, forwarded_ns=now_ns)
        self._exchanges.ask(frame.header)
        self.pass_bytes(self.requests, frame.data)
        self.end_errand()

    # The acts of rules: `RuledConnection`.

    @property
    def hold_ns_max(self) -> int | None:
        """The time for which its source can do without an answer; None: as long as it takes."""
        return self._content.hold_ns_max

    def send(
        self,
        pipe: Pipe,
        frame: Frame,
        fate: FrameFate,
        *,
        rule: str | None,
        data: bytes | None = None,
    ) -> int:
        """Pass a frame on (`data` in its place); return its number on the tape."""
        number = self.common.tape.record(frame, fate, forwarded_ns=self.now_ns, rule=rule)
        self.pass_bytes(pipe, frame.payload if data is None else data)
        return number

    def keep_back(self, frame: Frame, fate: FrameFate, *, rule: str) -> int:
        """Do not pass a frame on; return its number on the tape."""
        return self.common.tape.record(frame, fate, forwarded_ns=None, rule=rule)

    def stop(self, held: HeldFrame) -> None:
        """Have the frame's direction stand still from here on."""
        held.pipe.waiting = held
        held.entry.keep(held)
        if held.due_ns is not None:
            self.common.act(self, Wake(held.due_ns))

    def resume(self, held: HeldFrame, now_ns: int) -> bool:
        """Pass on what waits, and go on behind it; return False if its receiver is gone."""
        self.now_ns = now_ns
        assert held.pipe.waiting is held
        held.pipe.waiting = None
        self.common.act(self, Resumed())
        delivered = held.passed or self._deliver_frame(held)
        self._advance(held.pipe)
        return delivered

    def close_behind(self, pipe: Pipe) -> None:
        """Reset the sender: nothing follows in this direction, and nothing comes back."""
        self._reset(SENDER[pipe.direction])
        self._advance(pipe)

    def answer(self, request: Frame, response: bytes, *, rule: str) -> None:
        """Answer a request in the target's place, when it is its turn."""
        made = request.answered(response)
        if made is None:
            self.give_up(f"the answer of rule {rule} to {request} cannot be read")
            return
        self._exchanges.make(made, rule=rule)
        self.responses.walker.attentive = True

    def again(self, frame: Frame, *, copy: bool) -> None:
        """Send a request over a connection of its own. `copy`: it is there twice now."""
        self.common.act(self, ProxyRequest(frame, copy=copy))

    def give_up(self, reason: str) -> None:
        """Close the connection, and say why."""
        self.common.act(self, Broken(reason))
        self.close()

    # Called by contents.

    def meet(self, pipe: Pipe, frame: Frame, *, taped: bool) -> bool:
        """Do to a whole frame what the rules say; return whether it was passed on untouched."""
        if self._is_gone(pipe.receiver):
            # No rule may wait for what can go nowhere.
            if taped or self.errand:
                self.common.tape.record(frame, FrameFate.UNDELIVERABLE, forwarded_ns=None)
            self.end_errand()
            return False
        return self.obey(pipe, frame, self.common.book.judge(frame), taped=taped)

    def obey(
        self, pipe: Pipe, frame: Frame, judgement: Judgement[HeldFrame], *, taped: bool
    ) -> bool:
        """Do to a frame what was judged; return whether it was passed on untouched."""
        if judgement.entry is not None:
            act(self, pipe, frame, judgement.entry)
            return False
        if taped or judgement.rule is not None:
            self.send(pipe, frame, FrameFate.FORWARDED, rule=judgement.rule)
        else:
            self.pass_bytes(pipe, frame.payload)
        return True

    def pass_bytes(self, pipe: Pipe, data: Any) -> None:
        """Pass on what no rule concerns."""
        if not self._gone[pipe.receiver]:
            self.common.act(self, Send(pipe.receiver, data))

    def send_made(self) -> None:
        """Send the responses of ours whose turn it is, between two frames of the target's."""
        pipe = self.responses
        idle = not (pipe.stopped or pipe.walker.inside)
        while idle and (made := self._exchanges.next_made()) is not None:
            self.send(pipe, made[0], FrameFate.ANSWERED, rule=made[1])
        pipe.walker.attentive = self._exchanges.made

    def end_errand(self) -> None:
        """End it, if it is one and has its answer."""
        if self.errand and not self._exchanges.open:
            self.requests.ended = True
            self._advance(self.requests)

    def _advance(self, pipe: Pipe) -> None:
        """Go on with what was carried; pass the end on once nothing is left."""
        self.send_made()  # Its turn may be before what was carried.
        while pipe.carries and not pipe.stopped:
            arrived_ns, chunk = pipe.take()
            self._content.walk(pipe, chunk, arrived_ns)
        self.send_made()
        if not pipe.ended or pipe.finished or pipe.stopped:
            return
        pipe.finished = True
        if rest := pipe.walker.rest():
            self.pass_bytes(pipe, rest)
        if not self._gone[pipe.receiver]:
            self.common.act(self, Finish(pipe.receiver))

    def _deliver_frame(self, waiting: HeldFrame) -> bool:
        pipe, tape = waiting.pipe, self.common.tape
        gone = self._is_gone(pipe.receiver)
        if gone and not (waiting.fate is FrameFate.REORDERED and pipe is self.requests):
            tape.change(waiting.number, FrameFate.UNDELIVERABLE, forwarded_ns=None)
            return False
        if pipe.blocked:
            pipe.late.append(waiting)
        forwarded_ns = None if pipe.blocked else self.now_ns
        tape.change(waiting.number, waiting.fate, forwarded_ns=forwarded_ns)
        if gone:
            self.again(waiting.frame, copy=False)
        else:
            self.pass_bytes(pipe, waiting.frame.payload)
        return True

    def _is_gone(self, side: Side) -> bool:
        return self._gone[side] or self._content.is_gone(side)

    def _reset(self, side: Side) -> None:
        pipe = self._from(side)
        pipe.ended = True
        if not pipe.keeps_receiver:
            pipe.clear()
        if not self._gone[side]:
            self._gone[side] = True
            self.common.act(self, Reset(side))

    def _from(self, side: Side) -> Pipe:
        return self.requests if side is Side.NEAR else self.responses
