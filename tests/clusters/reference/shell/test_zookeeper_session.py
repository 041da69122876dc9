"""A node's session with a real server: what the border promises, over a connection that breaks."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from waiting import kill_all

from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.node_port.zookeeper import (
    Check,
    CloseSession,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    OpenSession,
    Operation,
    SessionEvent,
    SessionState,
    SetData,
    Sync,
    WatchEvent,
    WatchType,
    ZkError,
    ZkRequest,
    ZkResponse,
)
from fencepost.clusters.reference.shell.zookeeper import ZooKeeper
from fencepost.clusters.system import Wanted
from fencepost.clusters.zookeeper.driver import DRIVER, ZooKeeperCluster
from fencepost.clusters.zookeeper.system import ZooKeeperSpec
from fencepost.history.clock import Clock

pytestmark = pytest.mark.kafka

Address = tuple[str, int]
TIMEOUT_MS = 2000
CONNECTED, SUSPENDED, EXPIRED = (
    SessionState.CONNECTED,
    SessionState.SUSPENDED,
    SessionState.EXPIRED,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    spec = ZooKeeperSpec(servers=1)
    with Warden(run_id="test") as warden:
        cluster = ZooKeeperCluster(
            spec,
            prepared=DRIVER.prepare(spec, Wanted(), print),
            site=Site(
                host=LocalHost(warden),
                directory=tmp_path_factory.mktemp("nodes"),
                clock=Clock.start(),
            ),
        )
        try:
            cluster.start()
            host, port = cluster.client_addresses()[0].split(":")
            yield (host, int(port))
        finally:
            kill_all(cluster)
            cluster.stop()


class Relay:
    """A way to the server that can be cut."""

    def __init__(self, server: Address) -> None:
        self._server = server
        self._open: list[asyncio.StreamWriter] = []
        self.is_cut = False

    async def start(self) -> Address:
        self._listening = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        address: Address = self._listening.sockets[0].getsockname()
        return address

    def cut(self) -> None:
        self.is_cut = True
        for writer in self._open:
            writer.transport.abort()
        self._open.clear()

    def close(self) -> None:
        self.cut()
        self._listening.close()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection(*self._server)
        self._open += [writer, back]
        await asyncio.gather(_pump(reader, back), _pump(there, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
    except OSError:
        pass
    writer.close()


class Client:
    """What a node is told, in its order."""

    def __init__(self, server: Address) -> None:
        self.told: list[Any] = []
        self.zookeeper = ZooKeeper([server], told=self.told.append)
        self._count = 0

    async def until(self, claim: Callable[[], Any]) -> Any:
        """Wait for a claim, as the node's ticks would; what it returned."""
        async with asyncio.timeout(30):
            while not (found := claim()):
                self.zookeeper.look()
                await asyncio.sleep(0.01)
        return found

    def states(self) -> list[SessionState]:
        return [one.state for one in self.told if isinstance(one, SessionEvent)]

    def watches(self) -> list[tuple[WatchType, str]]:
        return [(one.type, one.path) for one in self.told if isinstance(one, WatchEvent)]

    async def open(self) -> None:
        count = self.states().count(CONNECTED)
        self.zookeeper.send(OpenSession(0, TIMEOUT_MS))
        await self.until(lambda: self.states().count(CONNECTED) > count)

    def ask(self, *operations: Operation) -> int:
        self._count += 1
        self.zookeeper.send(ZkRequest(self._count, operations))
        return self._count

    def answer(self, number: int) -> ZkResponse | None:
        found = (one for one in self.told if isinstance(one, ZkResponse))
        return next((one for one in found if one.correlation == number), None)

    async def do(self, *operations: Operation) -> ZkResponse:
        number = self.ask(*operations)
        response = await self.until(lambda: self.answer(number))
        assert isinstance(response, ZkResponse)
        return response


def with_client(server: Address, body: Callable[[Client], Awaitable[None]]) -> None:
    async def run() -> None:
        client = Client(server)
        await client.open()
        await body(client)
        client.zookeeper.close()

    asyncio.run(run())


def test_each_operation_is_answered_with_what_it_returns(server: Address) -> None:
    async def body(client: Client) -> None:
        made = (await client.do(Create("/a", b"x"))).outcomes[0]
        assert (made.error, made.path) == (0, "/a")
        assert made.stat is not None
        assert made.stat.czxid > 0
        again = await client.do(Create("/a", b"y"))
        assert again.error == ZkError.NODE_EXISTS
        assert again.zxid > made.stat.czxid
        read = (await client.do(GetData("/a"))).outcomes[0]
        assert (read.data, read.stat and read.stat.czxid) == (b"x", made.stat.czxid)
        assert (await client.do(SetData("/a", b"z", 3))).error == ZkError.BAD_VERSION
        changed = (await client.do(SetData("/a", b"z", 0))).outcomes[0].stat
        assert changed is not None
        assert changed.version == 1
        first = (await client.do(Create("/a/s-", b"", ephemeral=True, sequential=True))).outcomes[0]
        second = (await client.do(Create("/a/s-", b"", sequential=True))).outcomes[0]
        assert (first.path, second.path) == ("/a/s-0000000000", "/a/s-0000000001")
        assert first.stat is not None
        assert first.stat.ephemeral_owner != 0
        children = (await client.do(GetChildren("/a"))).outcomes[0]
        assert children.children == ("s-0000000000", "s-0000000001")
        assert (await client.do(Delete("/a"))).error == ZkError.NOT_EMPTY
        assert (await client.do(Exists("/b"))).error == ZkError.NO_NODE
        assert (await client.do(Sync("/"))).error == 0
        assert (await client.do(Check("/a", 7))).error == ZkError.BAD_VERSION
        assert (await client.do(Check("/a", 1))).error == 0

    with_client(server, body)


def test_writes_are_carried_out_all_together_or_not_at_all(server: Address) -> None:
    async def body(client: Client) -> None:
        done = await client.do(Create("/m", b""), Create("/m/n", b""), SetData("/m", b"1", 0))
        assert [one.error for one in done.outcomes] == [0, 0, 0]
        assert all(one.stat is not None for one in done.outcomes)
        refused = await client.do(Delete("/m/n"), Check("/m", 0), Create("/o", b""))
        assert refused.error == ZkError.BAD_VERSION
        errors = [one.error for one in refused.outcomes]
        assert errors == [0, ZkError.BAD_VERSION, ZkError.RUNTIME_INCONSISTENCY]
        assert (await client.do(Exists("/m/n"))).error == 0

    with_client(server, body)


def test_a_watch_fires_once_and_before_an_answer_shows_what_it_tells_of(server: Address) -> None:
    async def body(client: Client) -> None:
        await client.do(Exists("/w", watch=True))
        await client.do(GetChildren("/", watch=True))
        await client.do(Create("/w", b""))
        await client.do(GetData("/w", watch=True))
        await client.do(SetData("/w", b"1"))
        await client.do(SetData("/w", b"2"))
        fired = [(WatchType.CREATED, "/w"), (WatchType.CHILDREN, "/"), (WatchType.CHANGED, "/w")]
        assert sorted(client.watches()) == sorted(fired)
        # Each lies before the answer to the write that caused it.
        kinds = [type(one).__name__ for one in client.told]
        changed = client.told.index(next(one for one in client.told if _is_change(one)))
        assert kinds[changed : changed + 2] == ["WatchEvent", "ZkResponse"]

    with_client(server, body)


def _is_change(message: Any) -> bool:
    return isinstance(message, WatchEvent) and message.type is WatchType.CHANGED


def test_a_session_outlives_its_connection_and_so_do_its_watches(server: Address) -> None:
    async def run() -> None:
        relay = Relay(server)
        client, other = Client(await relay.start()), Client(server)
        await client.open()
        await other.open()
        await other.do(Create("/kept", b""))
        await client.do(Create("/mine", b"", ephemeral=True))
        await client.do(GetData("/kept", watch=True))
        relay.cut()
        number = client.ask(GetData("/kept"))
        await client.until(lambda: SUSPENDED in client.states())
        lost = await client.until(lambda: client.answer(number))
        assert lost.error == ZkError.CONNECTION_LOSS
        late = await client.do(GetData("/kept"))
        assert late.error == ZkError.CONNECTION_LOSS
        await other.do(SetData("/kept", b"1"))
        relay.is_cut = False
        await client.until(lambda: client.states() == [CONNECTED, SUSPENDED, CONNECTED])
        await client.until(lambda: client.watches() == [(WatchType.CHANGED, "/kept")])
        assert (await other.do(Exists("/mine"))).error == 0
        events = [one for one in client.told if isinstance(one, SessionEvent)]
        assert len({one.session_id for one in events}) == 1
        client.zookeeper.send(CloseSession(0))
        await gone(other, "/mine")
        other.zookeeper.close()
        relay.close()

    asyncio.run(run())


async def gone(client: Client, path: str) -> None:
    """Wait until an ephemeral znode has gone with its session."""
    if (await client.do(Exists(path, watch=True))).error != ZkError.NO_NODE:
        await client.until(lambda: (WatchType.DELETED, path) in client.watches())


def test_a_session_that_was_away_too_long_has_expired_and_another_one_is_opened(
    server: Address,
) -> None:
    async def run() -> None:
        relay = Relay(server)
        client, other = Client(await relay.start()), Client(server)
        await client.open()
        await other.open()
        await client.do(Create("/short", b"", ephemeral=True))
        relay.cut()
        await gone(other, "/short")
        relay.is_cut = False
        await client.until(lambda: EXPIRED in client.states())
        assert client.states() == [CONNECTED, SUSPENDED, EXPIRED]
        assert (await client.do(GetData("/"))).error == ZkError.SESSION_EXPIRED
        await client.open()
        first, *_, last = (one for one in client.told if isinstance(one, SessionEvent))
        assert first.session_id != last.session_id
        assert (await client.do(GetData("/"))).error == 0
        client.zookeeper.close()
        other.zookeeper.close()
        relay.close()

    asyncio.run(run())
