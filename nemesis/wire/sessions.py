"""A proxied connection as a state machine: bytes and events in, effects out; no socket, no clock.

Each direction is a pipe. A pipe stands still while a frame of it waits (held, delayed, to be
overtaken) or while its flow is blocked; what arrives then is carried behind it, and goes on in its
order afterwards. What the two ends do meanwhile changes nothing about that:

- A sender that ends or dies ends its pipe, once what waits in it was passed on: bytes that are in
  the network outlive who sent them. So the far side stays open for a request that waits.
- A receiver that is gone gets nothing: what waits for it is *undeliverable* when it is released.
  Nobody dials again in silence.

A target that has closed its end takes no more either; servers of Kafka never close half.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, assert_never

from clusters.protocol.framing import FrameError
from nemesis.wire.answers import error_response
from nemesis.wire.apis import FETCH
from nemesis.wire.effects import Broken, Effect, Errand, Finish, Reset, Send, Side, Wake
from nemesis.wire.frame import Frame, TopicNames
from nemesis.wire.frames import Header, Walker, read_correlation_id, read_request_header
from nemesis.wire.pipe import SENDER, Pipe, Waiting
from nemesis.wire.rewriting import lowered
from nemesis.wire.rulebook import Entry, Rulebook
from nemesis.wire.rules import (
    Action,
    Answer,
    Cut,
    Delay,
    Direction,
    Drop,
    Duplicate,
    Hold,
    Link,
    LowerVersion,
    Reorder,
    Stall,
    Watch,
)
from nemesis.wire.tape import Fate, Tape, taped

__all__ = ["Common", "Session"]

_UNANSWERED_MAX: Final = 1 << 17
"""Requests of one connection; a client that pipelines more than that is none of Kafka's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """What all sessions of a proxy share."""

    book: Rulebook[Waiting]
    tape: Tape
    names: TopicNames
    act: Callable[["Session", Effect], None]
    """Takes each effect, in its order; does it before the next bytes come in."""


class Session:
    """One connection. `errand`: it only takes one request of the proxy's own to the target."""

    def __init__(self, number: int, link: Link, common: Common, *, errand: bool = False) -> None:
        self.number: Final = number
        self.link: Final = link
        self._common = common
        self._errand = errand
        self._requests = Pipe(
            direction=Direction.REQUEST, walker=Walker(self._read_request, self._wants_request)
        )
        self._responses = Pipe(
            direction=Direction.RESPONSE, walker=Walker(self._read_response, self._wants_response)
        )
        self._pipes: Final = {
            Direction.REQUEST: self._requests,
            Direction.RESPONSE: self._responses,
        }
        self._gone = {Side.NEAR: errand, Side.FAR: False}
        self._unanswered: dict[int, Header] = {}
        """In the order of the requests, which is that of Kafka's answers."""
        self._answers: dict[int, tuple[Frame, str]] = {}
        """Made by a rule, and its name; each waits for the answers to the requests before it."""
        self._fetched = False

    def reads(self, side: Side) -> bool:
        """Whether what this side sends is wanted now."""
        pipe = self._from(side)
        return not (pipe.stopped or pipe.ended)

    def is_gone(self, side: Side) -> bool:
        """Whether nothing more can be sent to this side."""
        return self._gone[side]

    def carried_bytes(self, direction: Direction) -> int:
        """What waits in this direction."""
        pipe = self._pipes[direction]
        waiting = pipe.waiting
        frame = 0 if waiting is None or waiting.passed else len(waiting.frame.data)
        return len(pipe.carry) + frame

    def receive(self, direction: Direction, chunk: memoryview, now_ns: int) -> None:
        """Bytes have come from the sender of this direction."""
        pipe = self._pipes[direction]
        if pipe.stopped:
            pipe.carry += chunk
        else:
            self._walk(pipe, chunk, now_ns)

    def end(self, side: Side, now_ns: int) -> None:
        """This side has said that it will send no more (FIN)."""
        self._from(side).ended = True
        if side is Side.FAR:
            self._gone[Side.FAR] = True
        self._advance(self._from(side), now_ns)

    def lose(self, side: Side, now_ns: int) -> None:
        """This side is gone for both directions (RST); all that it had sent was received."""
        self._gone[side] = True
        self._from(side).ended = True
        for pipe in (self._requests, self._responses):
            self._advance(pipe, now_ns)

    def refuse(self) -> None:
        """The target cannot be reached: the source is to see what it would see without us."""
        self._gone[Side.FAR] = True
        self._responses.ended = True
        self.cut()

    def cut(self) -> None:
        """Close both sides; only what waits keeps its receiver."""
        kept = {
            pipe.receiver
            for pipe in self._pipes.values()
            if pipe.waiting is not None and not pipe.waiting.passed
        }
        for side in Side:
            if side not in kept:
                self._reset(side)

    def block(self, direction: Direction) -> None:
        """Nothing goes through in this direction any more."""
        self._pipes[direction].blocked = True

    def unblock(self, direction: Direction, now_ns: int) -> None:
        """It goes on where it stood."""
        self._pipes[direction].blocked = False
        self._advance(self._pipes[direction], now_ns)

    def due(self, now_ns: int) -> None:
        """Pass on what was delayed until now."""
        for pipe in self._pipes.values():
            waiting = pipe.waiting
            if waiting is not None and waiting.due_ns is not None and waiting.due_ns <= now_ns:
                waiting.entry.let_go(waiting, delivered=self.deliver(waiting, now_ns))

    def deliver(self, waiting: Waiting, now_ns: int) -> bool:
        """Pass on what waits, and go on behind it. False: its receiver is gone."""
        pipe = waiting.pipe
        assert pipe.waiting is waiting
        pipe.waiting = None
        delivered = waiting.passed or self._deliver_frame(waiting, now_ns)
        self._advance(pipe, now_ns)
        return delivered

    def discard(self, waiting: Waiting) -> None:
        """Throw away what waits, and cut the connection."""
        waiting.pipe.waiting = None
        if not waiting.passed:
            self._common.tape.change(waiting.number, Fate.DROPPED, forwarded_ns=None)
        self.cut()

    def run_errand(self, frame: Frame, now_ns: int, *, copy: bool) -> None:
        """Send this request to the target, and nothing else."""
        assert self._errand
        if copy:
            own = Frame(
                connection=self.number,
                link=frame.link,
                direction=frame.direction,
                header=frame.header,
                data=frame.data,
                time_ns=now_ns,
                names=frame.names,
            )
            self._common.tape.record(own, Fate.DUPLICATED, forwarded_ns=now_ns)
        self._common.act(self, Send(Side.FAR, frame.data))
        self._requests.ended = True
        if frame.header.answered:
            self._unanswered[frame.header.correlation_id] = frame.header
        else:
            self._advance(self._requests, now_ns)

    # What the walkers ask.

    def _read_request(self, chunk: memoryview, at: int) -> tuple[int, Header] | None:
        found = read_request_header(chunk, at)
        if found is not None and found[1].answered:
            header = found[1]
            if header.correlation_id in self._unanswered:
                raise FrameError(f"a second request {header.correlation_id} before the answer")
            if len(self._unanswered) >= _UNANSWERED_MAX:
                raise FrameError(f"more than {_UNANSWERED_MAX} requests without an answer")
            self._unanswered[header.correlation_id] = header
        return found

    def _read_response(self, chunk: memoryview, at: int) -> tuple[int, Header] | None:
        found = read_correlation_id(chunk, at)
        if found is None:
            return None
        size, correlation_id = found
        header = self._unanswered.pop(correlation_id, None)
        if header is None or correlation_id in self._answers:
            raise FrameError(f"an answer to request {correlation_id}, which nobody asked")
        return size, header

    def _wants_request(self, header: Header) -> bool:
        first_fetch = header.api_key == FETCH and not self._fetched
        return first_fetch or self._wants(Direction.REQUEST, header)

    def _wants_response(self, header: Header) -> bool:
        return self._errand or self._wants(Direction.RESPONSE, header)

    def _wants(self, direction: Direction, header: Header) -> bool:
        return taped(self.link, header) or self._common.book.wants(self.link, direction, header)

    # Bytes.

    def _walk(self, pipe: Pipe, chunk: memoryview, now_ns: int) -> None:
        try:
            chunk = pipe.walker.joined(chunk)
            at, end = 0, len(chunk)
            while at < end:
                step = pipe.walker.walk(chunk, at)
                if step.passed_to > at:
                    self._send(pipe, chunk[at : step.passed_to])
                at = step.at
                if step.frame is not None:
                    self._meet(pipe, *step.frame, now_ns)
                if self._answers:
                    self._send_answers(now_ns)
                if pipe.stopped:
                    pipe.carry += chunk[at:]
                    return
        except FrameError as error:
            self._common.act(self, Broken(f"{pipe.direction}: {error}"))
            self.cut()

    def _advance(self, pipe: Pipe, now_ns: int) -> None:
        """Go on with what was carried; pass the end on once nothing is left."""
        while pipe.carry and not pipe.stopped:
            carried = memoryview(bytes(pipe.carry))
            pipe.carry.clear()
            self._walk(pipe, carried, now_ns)
        if pipe is self._responses:
            self._send_answers(now_ns)
        if not pipe.ended or pipe.finished or pipe.stopped:
            return
        pipe.finished = True
        if rest := pipe.walker.rest():
            self._send(pipe, rest)
        if not self._gone[pipe.receiver]:
            self._common.act(self, Finish(pipe.receiver))

    def _send(self, pipe: Pipe, data: bytes | memoryview) -> None:
        if not self._gone[pipe.receiver]:
            self._common.act(self, Send(pipe.receiver, data))

    def _reset(self, side: Side) -> None:
        pipe = self._from(side)
        pipe.ended = True
        if pipe.waiting is None:
            pipe.carry.clear()
        if not self._gone[side]:
            self._gone[side] = True
            self._common.act(self, Reset(side))

    def _from(self, side: Side) -> Pipe:
        return self._requests if side is Side.NEAR else self._responses

    # Frames.

    def _meet(self, pipe: Pipe, header: Header, data: bytes, now_ns: int) -> None:
        frame = Frame(
            connection=self.number,
            link=self.link,
            direction=pipe.direction,
            header=header,
            data=data,
            time_ns=now_ns,
            names=self._common.names,
        )
        if self._errand:
            self._pass_on(pipe, frame, Fate.FORWARDED, rule=None)
            self._advance(self._requests, now_ns)
            return
        first_fetch = header.api_key == FETCH and not self._fetched
        self._fetched |= first_fetch
        judgement = self._common.book.judge(frame)
        if judgement.entry is not None:
            self._do(judgement.entry, judgement.entry.rule.action, pipe, frame)
        elif first_fetch or judgement.rule is not None or taped(self.link, header):
            self._pass_on(pipe, frame, Fate.FORWARDED, rule=judgement.rule)
        else:
            self._send(pipe, frame.data)

    def _do(self, entry: Entry[Waiting], action: Action, pipe: Pipe, frame: Frame) -> None:
        rule = entry.rule.name
        match action:
            case Hold():
                self._wait(entry, pipe, frame, Fate.HELD, Fate.RELEASED)
            case Delay(min_ms=low, max_ms=high):
                due_ns = frame.time_ns + round(entry.random.uniform(low, high) * 1e6)
                self._wait(entry, pipe, frame, Fate.DELAYED, Fate.DELAYED, due_ns=due_ns)
                self._common.act(self, Wake(due_ns))
            case Reorder():
                self._reorder(entry, pipe, frame)
            case Stall():
                self._stall(entry, pipe, frame)
            case Drop():
                self._common.tape.record(frame, Fate.DROPPED, forwarded_ns=None, rule=rule)
                self.cut()
            case Cut(passed_on=passed_on):
                self._cut_at(pipe, frame, rule, passed_on=passed_on)
            case Duplicate():
                self._pass_on(pipe, frame, Fate.DUPLICATED, rule=rule)
                self._common.act(self, Errand(frame, copy=True))
            case Answer(error=error):
                self._answer(frame, error, rule)
            case LowerVersion(api=api, max_version=max_version):
                data = lowered(frame, api, max_version)
                self._pass_on(pipe, frame, Fate.REWRITTEN, rule=rule, data=data)
            case Watch():
                raise AssertionError(action)
            case _:
                assert_never(action)

    def _pass_on(
        self, pipe: Pipe, frame: Frame, fate: Fate, *, rule: str | None, data: bytes | None = None
    ) -> int:
        gone = self._gone[pipe.receiver]
        number = self._common.tape.record(
            frame,
            Fate.UNDELIVERABLE if gone else fate,
            forwarded_ns=None if gone else frame.time_ns,
            rule=rule,
        )
        self._send(pipe, frame.data if data is None else data)
        return number

    def _wait(
        self,
        entry: Entry[Waiting],
        pipe: Pipe,
        frame: Frame,
        now: Fate,
        later: Fate,
        *,
        due_ns: int | None = None,
    ) -> Waiting:
        number = self._common.tape.record(frame, now, forwarded_ns=None, rule=entry.rule.name)
        waiting = Waiting(
            session=self,
            pipe=pipe,
            entry=entry,
            frame=frame,
            number=number,
            fate=later,
            due_ns=due_ns,
        )
        pipe.waiting = waiting
        entry.keep(waiting)
        return waiting

    def _stall(self, entry: Entry[Waiting], pipe: Pipe, frame: Frame) -> None:
        number = self._pass_on(pipe, frame, Fate.FORWARDED, rule=entry.rule.name)
        pipe.waiting = Waiting(
            session=self,
            pipe=pipe,
            entry=entry,
            frame=frame,
            number=number,
            fate=Fate.FORWARDED,
            passed=True,
        )
        entry.keep(pipe.waiting)

    def _reorder(self, entry: Entry[Waiting], pipe: Pipe, frame: Frame) -> None:
        link = (self.link.source, self.link.target)
        overtaken = entry.overtaken.pop(link, None)
        if overtaken is None:
            waiting = self._wait(entry, pipe, frame, Fate.REORDERED, Fate.REORDERED)
            entry.overtaken[link] = waiting
            return
        self._pass_on(pipe, frame, Fate.FORWARDED, rule=entry.rule.name)
        delivered = overtaken.session.deliver(overtaken, frame.time_ns)
        entry.let_go(overtaken, delivered=delivered)

    def _cut_at(self, pipe: Pipe, frame: Frame, rule: str, *, passed_on: bool) -> None:
        if not passed_on:
            self._common.tape.record(frame, Fate.CUT, forwarded_ns=None, rule=rule)
            self.cut()
            return
        self._pass_on(pipe, frame, Fate.CUT, rule=rule)
        self._reset(SENDER[pipe.direction])
        # The receiver reads the frame, then that nothing follows. What it answers goes nowhere.
        self._advance(pipe, frame.time_ns)

    def _answer(self, frame: Frame, error: str, rule: str) -> None:
        made = error_response(frame, error) if frame.header.answered else b""
        if made is None:
            self._common.tape.record(frame, Fate.DROPPED, forwarded_ns=None, rule=rule)
            self._common.act(self, Broken(f"rule {rule} cannot answer {frame}"))
            self.cut()
            return
        self._common.tape.record(frame, Fate.ANSWERED, forwarded_ns=None, rule=rule)
        if made:
            answer = Frame(
                connection=self.number,
                link=self.link,
                direction=Direction.RESPONSE,
                header=frame.header,
                data=made,
                time_ns=frame.time_ns,
                names=self._common.names,
            )
            self._answers[frame.header.correlation_id] = (answer, rule)

    def _send_answers(self, now_ns: int) -> None:
        """Send the answers whose turn it is: those before which no response is outstanding."""
        pipe = self._responses
        while self._answers and not (pipe.stopped or pipe.carry or pipe.walker.inside):
            correlation_id = next(iter(self._unanswered))
            if correlation_id not in self._answers:
                break
            del self._unanswered[correlation_id]
            answer, rule = self._answers.pop(correlation_id)
            gone = self._gone[Side.NEAR]
            self._common.tape.record(
                answer, Fate.ANSWERED, forwarded_ns=None if gone else now_ns, rule=rule
            )
            self._send(pipe, answer.data)
        pipe.walker.attentive = bool(self._answers)

    def _deliver_frame(self, waiting: Waiting, now_ns: int) -> bool:
        pipe, tape = waiting.pipe, self._common.tape
        if not self._gone[pipe.receiver]:
            tape.change(waiting.number, waiting.fate, forwarded_ns=now_ns)
            self._send(pipe, waiting.frame.data)
            return True
        if waiting.fate is Fate.REORDERED and pipe is self._requests:
            tape.change(waiting.number, waiting.fate, forwarded_ns=now_ns)
            self._common.act(self, Errand(waiting.frame, copy=False))
            return True
        tape.change(waiting.number, Fate.UNDELIVERABLE, forwarded_ns=None)
        return False
