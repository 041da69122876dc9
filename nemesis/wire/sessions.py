"""A proxied connection as a state machine: bytes and events in, effects out; no socket, no clock.

Each direction is a pipe. A pipe stands still while a frame of it waits (held, delayed, to be
overtaken) or while its flow is blocked; what arrives then is carried behind it, and goes on in its
order afterwards. What the two ends do meanwhile changes nothing about that:

- A sender that ends or dies ends its pipe, once what waits in it was passed on: bytes that are in
  the network outlive who sent them. So the far side stays open for a request that waits.
- A receiver that is gone gets nothing: what waits for it is *undeliverable* when it is released.
  The proxy never dials again in silence.

A target that has closed its end takes no more either; servers of Kafka never close half.

The harness's own probes of a link (`Wire.probe`) are no frames of the source's: the tape does not
have them, and no rule concerns them. Only a partition does.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from clusters.kafka.asking import CLIENT_ID
from clusters.kafka_port import Role
from clusters.link_protocol import LinkProtocol
from clusters.port import CLIENTS
from clusters.protocol.framing import FrameError
from nemesis.wire.actions import act_on
from nemesis.wire.apis import API_VERSIONS, FETCH
from nemesis.wire.effects import Broken, Effect, Errand, Finish, Reset, Resumed, Send, Side
from nemesis.wire.exchanges import Exchanges
from nemesis.wire.fetches import Fetches, said_by
from nemesis.wire.frame import Frame, TopicNames
from nemesis.wire.frames import (
    BYTES,
    Header,
    Unread,
    Walker,
)
from nemesis.wire.pipe import SENDER, HeldFrame, Pipe
from nemesis.wire.readers import reader_of
from nemesis.wire.rulebook import Rulebook
from nemesis.wire.rules import Direction, Link
from nemesis.wire.served import Served
from nemesis.wire.tape import FrameFate, Tape

__all__ = ["Common", "Session"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """The parts that all sessions of a proxy share."""

    book: Rulebook[HeldFrame]
    tape: Tape
    names: TopicNames
    act: Callable[["Session", Effect], None]
    """Takes each effect, in its order; does it before the next bytes come in."""
    meant: Callable[[Header], Header] | None = None
    """Translates the header of a request to a controller, where the nodes have a dialect."""


class Session:
    """One connection. `errand`: it only takes one request of the proxy's own to the target."""

    def __init__(self, number: int, link: Link, common: Common, *, errand: bool = False) -> None:
        self.number: Final = number
        self.link: Final = link
        self.common: Final = common
        self._errand = errand
        self._exchanges = Exchanges()
        meant = common.meant if link.asks(Role.CONTROLLER) else None
        self._reader = reader_of(link, self._exchanges, meant=meant)
        self._taped = self._reader.taped
        ways = (Direction.REQUEST, Direction.RESPONSE)
        self._requests, self._responses = (self._pipe(direction) for direction in ways)
        self._pipes: Final = {
            Direction.REQUEST: self._requests,
            Direction.RESPONSE: self._responses,
        }
        self._gone = {Side.NEAR: errand, Side.FAR: False}
        follows = link.asks(Role.BROKER) and link.source.startswith(f"{Role.BROKER}-")
        self._fetches = Fetches() if follows and not errand else None
        """For a follower's own connection: the broker epoch that its leader was told."""
        asks = link.source == CLIENTS and link.asks(Role.BROKER)
        self._served = Served() if asks and not errand else None
        """For a client's connection: its requests of data that are on the tape."""
        self.now_ns = 0
        """The time of the event that is being dealt with."""

    def reads(self, side: Side) -> bool:
        """Return whether what this side sends is wanted now."""
        return self._from(side).reads

    def is_gone(self, side: Side) -> bool:
        """Return whether nothing more can be sent to this side."""
        return self._gone[side]

    def carried_bytes(self, direction: Direction) -> int:
        """Return the number of bytes that wait in this direction."""
        return self._pipes[direction].carried_bytes

    def receive(self, side: Side, chunk: memoryview, now_ns: int) -> bool:
        """Take bytes that came from this side; return whether it is to be read on."""
        self.now_ns = now_ns
        pipe = self._requests if side is Side.NEAR else self._responses
        if not (pipe.blocked or pipe.waiting or pipe.discarding):
            self._walk(pipe, chunk, now_ns)
        elif not pipe.discarding:
            pipe.carry(bytes(chunk), arrived_ns=now_ns)
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
        self._responses.ended = True
        self.cut()

    def cut(self) -> None:
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
                waiting.entry.let_go(waiting, delivered=self.deliver(waiting, now_ns))

    def deliver(self, waiting: HeldFrame, now_ns: int) -> bool:
        """Pass on what waits, and go on behind it; return False if its receiver is gone."""
        self.now_ns = now_ns
        assert waiting.pipe.waiting is waiting
        waiting.pipe.waiting = None
        self.common.act(self, Resumed())
        delivered = waiting.passed or self._deliver_frame(waiting)
        self._advance(waiting.pipe)
        return delivered

    def discard(self, waiting: HeldFrame) -> None:
        """Throw away what waits, and cut the connection."""
        waiting.pipe.waiting = None
        if not waiting.passed:
            self.common.tape.change(waiting.number, FrameFate.DROPPED, forwarded_ns=None)
        self.cut()

    def run_errand(self, frame: Frame, now_ns: int, *, copy: bool) -> None:
        """Send this request to the target, wait for the answer, and end."""
        assert self._errand
        self.now_ns = now_ns
        if copy:
            own = replace(frame, connection=self.number, time_ns=now_ns)
            self.common.tape.record(own, FrameFate.DUPLICATED, forwarded_ns=now_ns)
        self._exchanges.ask(frame.header)
        self._send(self._requests, frame.data)
        self._end_errand()

    # Called by actions.

    def pass_on(
        self,
        pipe: Pipe,
        frame: Frame,
        fate: FrameFate,
        *,
        rule: str | None,
        data: bytes | None = None,
    ) -> int:
        """Send a frame (`data` in its place) to its receiver; return its number on the tape."""
        number = self.common.tape.record(frame, fate, forwarded_ns=self.now_ns, rule=rule)
        self._send(pipe, frame.data if data is None else data)
        return number

    def wait(self, waiting: HeldFrame) -> None:
        """Have the frame's direction stand still from here on."""
        waiting.pipe.waiting = waiting
        waiting.entry.keep(waiting)

    def close_behind(self, pipe: Pipe) -> None:
        """Reset the sender: nothing follows in this direction, and nothing comes back."""
        self._reset(SENDER[pipe.direction])
        self._advance(pipe)

    def answer(self, request: Frame, response: bytes, *, rule: str) -> None:
        """Answer a request in the target's place, when it is its turn."""
        made = replace(request, direction=Direction.RESPONSE, data=response)
        self._exchanges.make(made, rule=rule)
        self._responses.walker.attentive = True

    def give_up(self, reason: str) -> None:
        """Cut the connection, and say why."""
        self.common.act(self, Broken(reason))
        self.cut()

    @property
    def hold_ns_max(self) -> int | None:
        """The time for which its source can do without an answer; None: as long as it takes."""
        return self._reader.hold_ns_max

    # Asked by walkers.

    def _wants_bytes(self, direction: Direction) -> bool:
        book = self.common.book
        return book.in_use and book.wants(self.link, direction, BYTES)

    def _wants_request(self, header: Header) -> bool:
        if _is_probe(header):
            return False
        if header.api_key in self._taped or (self._fetches and header.api_key == FETCH):
            return True
        served = self._served
        if served and header.answered and served.wants_request(header.api_key, self.now_ns):
            return True
        book = self.common.book
        return book.in_use and book.wants(self.link, Direction.REQUEST, header)

    def _wants_response(self, header: Header) -> bool:
        if _is_probe(header):
            return False
        if header.api_key in self._taped or self._errand:
            return True
        if self._served and self._served.wants_response(header.correlation_id):
            return True
        book = self.common.book
        return book.in_use and book.wants(self.link, Direction.RESPONSE, header)

    # Bytes.

    def _pipe(self, direction: Direction) -> Pipe:
        if self.link.protocol is LinkProtocol.BYTES:
            unread = Unread(lambda: self._wants_bytes(direction))
            return Pipe(direction=direction, walker=unread)
        if direction is Direction.REQUEST:
            walker = Walker(self._reader.read_request, self._wants_request)
        else:
            walker = Walker(self._reader.read_response, self._wants_response)
        return Pipe(direction=direction, walker=walker)

    def _walk(self, pipe: Pipe, chunk: memoryview, arrived_ns: int) -> None:
        try:
            chunk = pipe.walker.joined(chunk)
            at, end = 0, len(chunk)
            while at < end:
                step = pipe.walker.walk(chunk, at)
                if step.passed_to > at:
                    self._send(pipe, chunk[at : step.passed_to])
                at = step.at
                if step.frame is not None:
                    self._meet(pipe, *step.frame, arrived_ns)
                if self._exchanges.made:
                    self._send_made()
                if pipe.discarding:
                    return
                if pipe.stopped:
                    if at < end:
                        pipe.carry_on(bytes(chunk[at:]), arrived_ns=arrived_ns)
                    return
        except FrameError as error:
            self.give_up(f"{pipe.direction}: {error}")

    def _meet(self, pipe: Pipe, header: Header, data: bytes, arrived_ns: int) -> None:
        book = self.common.book
        taped = header.api_key in self._taped or self._serves(pipe, header)
        fetches = self._fetches if header.api_key == FETCH and pipe is self._requests else None
        if fetches is not None:
            said = said_by(header, data)
            taped = fetches.tells(*said)
            if not (taped or (book.in_use and book.wants(self.link, pipe.direction, header))):
                self._send(pipe, data)  # Nearly all are such: nothing more is made of them.
                return
        frame = Frame(
            connection=self.number,
            link=self.link,
            direction=pipe.direction,
            header=header,
            data=data,
            time_ns=arrived_ns,
            names=self.common.names,
        )
        if self._gone[pipe.receiver]:
            # No rule may wait for what can go nowhere.
            if taped or self._errand:
                self.common.tape.record(frame, FrameFate.UNDELIVERABLE, forwarded_ns=None)
            self._end_errand()
            return
        judgement = book.judge(frame)
        if judgement.entry is not None:
            act_on(self, pipe, frame, judgement.entry)
        elif taped or judgement.rule is not None:
            self.pass_on(pipe, frame, FrameFate.FORWARDED, rule=judgement.rule)
            if fetches is not None:
                fetches.told(*said)
        else:
            self._send(pipe, data)

    def _serves(self, pipe: Pipe, header: Header) -> bool:
        served = self._served
        if served is None or not header.answered:
            return False
        if pipe is self._responses:
            return served.takes_response(header.correlation_id)
        return served.takes_request(header.api_key, header.correlation_id, self.now_ns)

    def _advance(self, pipe: Pipe) -> None:
        """Go on with what was carried; pass the end on once nothing is left."""
        while pipe.carries and not pipe.stopped:
            arrived_ns, chunk = pipe.take()
            self._walk(pipe, memoryview(chunk), arrived_ns)
        self._send_made()
        if not pipe.ended or pipe.finished or pipe.stopped:
            return
        pipe.finished = True
        if rest := pipe.walker.rest():
            self._send(pipe, rest)
        if not self._gone[pipe.receiver]:
            self.common.act(self, Finish(pipe.receiver))

    def _send(self, pipe: Pipe, data: bytes | memoryview) -> None:
        if not self._gone[pipe.receiver]:
            self.common.act(self, Send(pipe.receiver, data))

    def _send_made(self) -> None:
        """Send the responses of ours whose turn it is, between two frames of the target's."""
        pipe = self._responses
        idle = not (pipe.stopped or pipe.carries or pipe.walker.inside)
        while idle and (made := self._exchanges.next_made()) is not None:
            self.pass_on(pipe, made[0], FrameFate.ANSWERED, rule=made[1])
        pipe.walker.attentive = self._exchanges.made

    def _deliver_frame(self, waiting: HeldFrame) -> bool:
        pipe, tape = waiting.pipe, self.common.tape
        gone = self._gone[pipe.receiver]
        if gone and not (waiting.fate is FrameFate.REORDERED and pipe is self._requests):
            tape.change(waiting.number, FrameFate.UNDELIVERABLE, forwarded_ns=None)
            return False
        if pipe.blocked:
            pipe.late.append(waiting)
        forwarded_ns = None if pipe.blocked else self.now_ns
        tape.change(waiting.number, waiting.fate, forwarded_ns=forwarded_ns)
        if gone:
            self.common.act(self, Errand(waiting.frame, copy=False))
        else:
            self._send(pipe, waiting.frame.data)
        return True

    def _end_errand(self) -> None:
        if self._errand and not self._exchanges.open:
            self._requests.ended = True
            self._advance(self._requests)

    def _reset(self, side: Side) -> None:
        pipe = self._from(side)
        pipe.ended = True
        if not pipe.keeps_receiver:
            pipe.clear()
        if not self._gone[side]:
            self._gone[side] = True
            self.common.act(self, Reset(side))

    def _from(self, side: Side) -> Pipe:
        return self._requests if side is Side.NEAR else self._responses


def _is_probe(header: Header) -> bool:
    return header.api_key == API_VERSIONS and header.client_id == CLIENT_ID
