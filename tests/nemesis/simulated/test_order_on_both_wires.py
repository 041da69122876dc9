"""The order of what arrives, at servers and clients, is the same on both wires for each rule.

A client has several Produces open on one connection, or goes on over another one. Each row is one
rule; its two ends are played by a proxied connection and by hosts of a simulated network.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Protocol, assert_never

import pytest
from simulated_stage import Stage
from wire_doubles import Notes
from wire_samples import KEY, VOTERS, client_batch, image_with

from fencepost.clusters.node_port.storage import Batch
from fencepost.clusters.port import CLIENTS, NodeName
from fencepost.clusters.reference.codec.api import ListenerType
from fencepost.clusters.reference.codec.codec import Codec, kraft_apis
from fencepost.clusters.reference.nodes.messages.data import ProduceRequest, ProduceResponse
from fencepost.clusters.simulation.network import RECONNECT
from fencepost.nemesis.wire.actions import let_go
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
from fencepost.nemesis.wire.frame import TopicNames
from fencepost.nemesis.wire.pipe import HeldFrame
from fencepost.nemesis.wire.rulebook import Rulebook
from fencepost.nemesis.wire.rules import (
    Action,
    Answer,
    Cut,
    Delay,
    Direction,
    Drop,
    Duplicate,
    Hold,
    Link,
    Match,
    Reorder,
    Rule,
    Stall,
    Watch,
)
from fencepost.nemesis.wire.sessions import Common, Session
from fencepost.nemesis.wire.streams import proxied
from fencepost.nemesis.wire.tape import Tape

REQUEST, RESPONSE = Direction.REQUEST, Direction.RESPONSE
LINK = Link(source=CLIENTS, target=NodeName("broker-1"), address="", port=1)
CODEC = Codec(apis=kraft_apis(VOTERS), image=image_with, wall_offset_ns=0)
BATCH = Batch(0, -1, 1, -1, -1, -1, client_batch(b"a"))
MS = 1_000_000


def produced(correlation: int) -> ProduceRequest:
    return ProduceRequest(correlation, -1, 5 * MS, ((KEY, BATCH),))


@dataclass
class Seen:
    """What the server got, and what came of the client's requests."""

    server: list[int]
    client: list[tuple[str, int]]
    tape: list[tuple[str, int, str]]
    """(direction, correlation, what was done) of all that a rule concerned."""


class Wired(Protocol):
    """Two ends and a wire between them."""

    def ask(self, correlation: int, *, anew: bool = False) -> None:
        """Ask over the connection, or `anew` over another one; what follows happens at once."""

    def wait(self, ms: int) -> None:
        """Let so much time pass."""

    def release(self, name: str) -> None:
        """Lift a rule."""

    def seen(self) -> Seen:
        """What was seen until now."""


def _told(rows: list[dict[str, Any]]) -> list[tuple[str, int, str]]:
    ruled = (row for row in rows if "rule" in row)
    return [(str(r["direction"]), r["correlation_id"], str(r["action"])) for r in ruled]


class Proxied:
    """Sessions of a proxy; the server answers at once."""

    def __init__(self, *rules: Rule) -> None:
        self._notes = Notes()
        self._book: Rulebook[HeldFrame] = Rulebook()
        for rule in rules:
            self._book.add(rule)
        self._effects: deque[tuple[Session, Effect]] = deque()
        self._common = Common(
            book=self._book,
            tape=Tape(self._notes),
            names=TopicNames(),
            act=lambda session, effect: self._effects.append((session, effect)),
        )
        self._now_ns = 1
        self._session = self._dialled()
        self._open: dict[Session, list[int]] = {}
        self._closed: set[Session] = set()
        self._due: list[tuple[int, Session]] = []
        self._server: list[int] = []
        self._client: list[tuple[str, int]] = []

    def _dialled(self, *, errand: bool = False) -> Session:
        return proxied(0, LINK, self._common, errand=errand)

    def ask(self, correlation: int, *, anew: bool = False) -> None:
        if anew or self._session in self._closed:
            self._session = self._dialled()
        sent = CODEC.outgoing(produced(correlation), correlation_id=correlation, client_id="c")
        self._open.setdefault(self._session, []).append(correlation)
        self._session.receive(Side.NEAR, memoryview(sent.frame), self._now_ns)
        self._settle()

    def wait(self, ms: int) -> None:
        end_ns = self._now_ns + ms * MS
        while due := [one for one in self._due if one[0] <= end_ns]:
            at_ns, session = min(due, key=lambda one: one[0])
            self._due.remove((at_ns, session))
            self._now_ns = at_ns
            session.due(at_ns)
            self._settle()
        self._now_ns = end_ns

    def release(self, name: str) -> None:
        entry = self._book.remove(name)
        assert entry is not None
        for held in tuple(entry.held):
            let_go(held, self._now_ns)
        self._settle()

    def seen(self) -> Seen:
        return Seen(self._server, self._client, _told(self._notes.rows))

    def _settle(self) -> None:
        while self._effects:
            session, effect = self._effects.popleft()
            match effect:
                case Send(side=Side.FAR, data=data):
                    self._served(session, bytes(data))
                case Send(data=data):
                    correlation = int.from_bytes(data[4:8])
                    self._open[session].remove(correlation)
                    self._client.append(("got", correlation))
                case Reset(side=Side.NEAR) | Finish(side=Side.NEAR):
                    self._closed.add(session)
                    self._client += [("lost", one) for one in self._open.pop(session, [])]
                case ProxyRequest(frame=frame, copy=copy):
                    self._dialled(errand=True).run_errand(frame, self._now_ns, copy=copy)
                case Wake(at_ns=at_ns):
                    self._due.append((at_ns, session))
                case Reset() | Finish() | Resumed() | Broken():
                    pass
                case other:
                    assert_never(other)

    def _served(self, session: Session, data: bytes) -> None:
        while data:
            frame, data = data[4:][: int.from_bytes(data[:4])], data[4 + int.from_bytes(data[:4]) :]
            correlation = int.from_bytes(frame[4:8])
            self._server.append(correlation)
            came = CODEC.incoming(ListenerType.BROKER, frame, correlation=correlation)
            answer = came.answer(ProduceResponse(correlation, ()))
            session.receive(Side.FAR, memoryview(answer), self._now_ns)


class Simulated:
    """Hosts of a simulated network and its wire."""

    def __init__(self, *rules: Rule) -> None:
        self._stage = Stage(clients=True)
        for rule in rules:
            self._stage.wire.add(rule)

    def ask(self, correlation: int, *, anew: bool = False) -> None:
        stage = self._stage
        if anew:
            effect = (RECONNECT, stage.hosts["broker-1"].number)
            stage.world._perform(stage.hosts["client"], stage.world.now_ns, [effect])
        stage.send("client", "broker-1", produced(correlation))
        stage.run(3)

    def wait(self, ms: int) -> None:
        self._stage.run(ms)

    def release(self, name: str) -> None:
        self._stage.wire.release(name)
        self._stage.run(3)

    def seen(self) -> Seen:
        stage = self._stage
        return Seen(stage.got("broker-1"), stage.nodes["client"].heard, _told(stage.tape.rows))


@dataclass(frozen=True)
class Row:
    """A rule of the first Produce, and what is expected of three."""

    action: Action
    way: Direction = REQUEST
    anew: bool = False
    """The second and the third go over another connection."""
    server: list[int] = field(default_factory=lambda: [1, 2, 3])
    client: str = "1 2 3"
    """In order; `-1`: request 1 was lost."""

    def __str__(self) -> str:
        action = type(self.action).__name__
        kept = "" if not isinstance(self.action, Cut) else f" passed_on={self.action.passed_on}"
        return f"{action}{kept} {self.way}{' anew' if self.anew else ''}"


SLOW = Delay(min_ms=50, max_ms=50, seed=1)
PASSED, KEPT = Cut(passed_on=True), Cut(passed_on=False)
ROWS = [
    Row(Hold()),
    Row(Hold(), anew=True, server=[2, 3, 1], client="2 3 1"),
    Row(Hold(), RESPONSE),
    Row(Hold(), RESPONSE, anew=True, client="2 3 1"),
    Row(SLOW),
    Row(SLOW, anew=True, server=[2, 3, 1], client="2 3 1"),
    Row(SLOW, RESPONSE),
    Row(SLOW, RESPONSE, anew=True, client="2 3 1"),
    Row(Stall()),
    Row(Stall(), anew=True),
    Row(Stall(), RESPONSE),
    Row(Drop(), server=[2, 3], client="-1 2 3"),
    Row(Drop(), RESPONSE, client="-1 2 3"),
    Row(PASSED, client="-1 2 3"),
    Row(PASSED, RESPONSE),
    Row(KEPT, server=[2, 3], client="-1 2 3"),
    Row(KEPT, RESPONSE, client="-1 2 3"),
    Row(Duplicate(), server=[1, 1, 2, 3]),
    Row(Reorder(), anew=True, server=[2, 1, 3], client="2 1 3"),
    Row(Reorder()),
    Row(Answer(error="NOT_LEADER_OR_FOLLOWER"), server=[2, 3]),
    Row(Watch()),
]


def _rule(name: str, action: Action, way: Direction, *, skip: int = 0) -> Rule:
    match = Match(api="Produce", direction=way, skip=skip, times=1)
    return Rule(name=name, action=action, match=match)


def _client(words: str) -> list[tuple[str, int]]:
    numbers = map(int, words.split())
    return [("got" if one > 0 else "lost", abs(one)) for one in numbers]


@pytest.mark.parametrize("make", [Proxied, Simulated])
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_frames_arrive_in_the_same_order(row: Row, make: type[Proxied] | type[Simulated]) -> None:
    wired: Wired = make(_rule("r", row.action, row.way))
    wired.ask(1)
    wired.ask(2, anew=row.anew)
    wired.ask(3)
    wired.wait(100)
    wired.release("r")
    found = wired.seen()
    assert found.server == row.server
    assert found.client == _client(row.client)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_the_tape_tells_the_same_of_them(row: Row) -> None:
    tapes = []
    for make in (Proxied, Simulated):
        wired: Wired = make(_rule("r", row.action, row.way))
        for correlation in (1, 2, 3):
            wired.ask(correlation, anew=row.anew and correlation == 2)
        wired.wait(100)
        wired.release("r")
        tapes.append(wired.seen().tape)
    assert tapes[0] == tapes[1]


@pytest.mark.parametrize("make", [Proxied, Simulated])
def test_an_answer_of_the_wire_waits_for_its_turn(
    make: type[Proxied] | type[Simulated],
) -> None:
    wired: Wired = make(
        _rule("late", Hold(), RESPONSE),
        _rule("no", Answer(error="NOT_LEADER_OR_FOLLOWER"), REQUEST, skip=1),
    )
    wired.ask(1)
    wired.ask(2)
    wired.ask(3)
    wired.wait(10)
    assert wired.seen().client == []
    wired.release("late")
    assert wired.seen().client == _client("1 2 3")
    assert wired.seen().server == [1, 3]


@pytest.mark.parametrize("api", ["Produce", "Fetch"])
def test_what_waited_at_a_blocked_link_goes_on_over_its_own_connection(api: str) -> None:
    stage = Stage(clients=True)
    match = Match(api=api, direction=RESPONSE, times=1)
    stage.wire.add(Rule(name="late", action=Hold(), match=match))

    def ask(correlation: int) -> None:
        if api == "Produce":
            stage.send("client", "broker-1", produced(correlation))
        else:
            stage.fetch(correlation, source="client", epoch=-1)

    ask(1)  # It is on its way already.
    stage.wire.block([(CLIENTS, NodeName("broker-1"))])
    ask(2)
    stage.run(3)
    stage.wire.unblock()
    stage.run(3)
    assert stage.got("broker-1") == [1, 2]
    assert stage.nodes["client"].heard == []
    stage.wire.release("late")
    stage.run(3)
    assert stage.nodes["client"].heard == _client("1 2")
