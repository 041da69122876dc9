"""Coroutines of a node: what they ask for, when they go on, and how they end."""

from collections.abc import Callable, Sequence
from typing import Any

from fencepost.clusters.node_port.effects import SEND, Effects
from fencepost.clusters.node_port.zookeeper import (
    GetData,
    SessionEvent,
    SessionState,
    ZkError,
    ZkOutcome,
    ZkResponse,
)
from fencepost.clusters.reference.zk.coroutines import Coroutines, NotDoneError, Result
from fencepost.clusters.reference.zk.session_requests import SessionExpiredError, SessionRequests

CONNECTED, SUSPENDED, EXPIRED = SessionState.CONNECTED, SessionState.SUSPENDED, SessionState.EXPIRED
LOST = int(ZkError.CONNECTION_LOSS)


class Reader:
    """A node that reads znodes by coroutines; its session is the test's."""

    def __init__(self) -> None:
        self.zookeeper = SessionRequests()
        self.coroutines = self.zookeeper.coroutines
        self.found: list[Any] = []
        self.hear(CONNECTED)

    def hear(self, state: SessionState) -> list[str]:
        effects: Effects = []
        self.zookeeper.session(0, SessionEvent(-1, state, 7), effects)
        return paths(effects)

    def start(self, *names: str, of: Coroutines | None = None) -> list[str]:
        effects: Effects = []
        (of or self.coroutines).run(0, self.read(names, of or self.coroutines), effects)
        return paths(effects)

    async def read(self, names: Sequence[str], of: Coroutines) -> None:
        for name in names:
            reads = [GetData(one) for one in name.split("+")]
            data = [one.data.decode() for one in await self.zookeeper.read(reads)]
            self.found.append((of.now, "+".join(data)))
            of.effects.append(("found", name))

    def answer(self, number: int, data: str = "", *, error: int = 0, now: int = 1) -> Effects:
        """Answer the request of this number; return the effects of that event."""
        outcomes = (ZkOutcome(error, data=data.encode()),) if error != LOST else ()
        effects: Effects = []
        self.zookeeper.answered(now, ZkResponse(number, error, 1, outcomes), effects)
        return effects


def paths(effects: Effects) -> list[str]:
    return [one[2].operations[0].path for one in effects if one[0] == SEND]


def test_reads_go_out_together_and_their_outcomes_come_in_the_order_of_asking() -> None:
    reader = Reader()
    assert reader.start("/a+/b") == ["/a", "/b"]
    reader.answer(2, "B")
    assert reader.found == []
    reader.answer(1, "A", now=5)
    assert reader.found == [(5, "A+B")]


def test_a_coroutine_goes_on_within_the_event_that_brings_its_answer() -> None:
    reader = Reader()
    reader.start("/a", "/b")
    effects = reader.answer(1, "A")
    assert effects[0] == ("found", "/a")
    assert paths(effects) == ["/b"]
    assert reader.answer(2, "B") == [("found", "/b")]


def test_a_request_that_was_lost_is_asked_again_once_connected() -> None:
    reader = Reader()
    reader.start("/a+/b")
    assert reader.hear(SUSPENDED) == []
    assert reader.answer(1, error=LOST) == reader.answer(2, error=LOST) == []
    assert reader.start("/c") == []
    assert reader.hear(CONNECTED) == ["/a", "/b", "/c"]
    reader.answer(3, "A")
    reader.answer(4, "B")
    assert reader.found == [(1, "A+B")]


def test_the_end_of_the_session_ends_what_waits_in_it_for_good() -> None:
    reader = Reader()
    reader.start("/a+/b")
    reader.answer(1, "A")
    reader.hear(EXPIRED)
    assert reader.hear(CONNECTED) == []
    assert reader.answer(2, "B") == []
    assert reader.found == []


def test_a_coroutine_may_go_on_in_the_next_session() -> None:
    reader = Reader()

    async def stubborn() -> None:
        try:
            await reader.zookeeper.read([GetData("/a")])
        except SessionExpiredError:
            reader.found.append("expired")
            await reader.read(["/a"], reader.coroutines)

    reader.coroutines.run(0, stubborn(), [])
    assert reader.hear(EXPIRED) == []
    assert reader.found == ["expired"]
    assert reader.hear(CONNECTED) == ["/a"]
    reader.answer(2, "A")
    assert reader.found == ["expired", (1, "A")]


def test_coroutines_that_were_ended_ask_nothing_and_run_no_further() -> None:
    reader, epoch = Reader(), Coroutines()
    reader.start("/a", "/b", of=epoch)
    reader.start("/c")
    epoch.end()
    assert reader.answer(1, "A") == []
    assert reader.found == []
    assert reader.start("/d", of=epoch) == []
    reader.answer(2, "C")
    assert reader.found == [(1, "C")]


def test_a_coroutine_that_ends_its_own_kind_stops_where_it_next_waits() -> None:
    reader, epoch = Reader(), Coroutines()

    async def last() -> None:
        epoch.end()
        reader.found.append("goes on to there")
        await reader.read(["/a"], epoch)

    effects: Effects = []
    epoch.run(0, last(), effects)
    assert (reader.found, effects) == (["goes on to there"], [])


def test_an_answer_that_is_there_at_once_resumes_within_the_call() -> None:
    coroutines, found = Coroutines(), list[Any]()

    def at_once(now: int, result: Result[str], effects: Effects) -> None:
        result.done(now, f"at {now}", effects)

    def never(now: int, result: Result[str], effects: Effects) -> None:
        result.failed(now, NotDoneError(), effects)

    async def waits(ask: Callable[[int, Result[str], Effects], None]) -> None:
        found.append(await Result[str](ask))

    coroutines.run(3, waits(at_once), [])
    coroutines.run(4, waits(never), [])
    assert found == ["at 3"]
