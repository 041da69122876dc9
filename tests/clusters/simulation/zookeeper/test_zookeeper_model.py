"""The model is held against a real ZooKeeper: the same random history, the same answers.

Compared are error codes, names, data, versions, zxids, owners, and watches with their place among
the answers of their client. One difference is allowed: the ephemeral znodes of one session end in
any order, and so do the watches that tell of them.
"""

import os
import sys
import time
from collections.abc import Callable, Collection, Iterator

import pytest
from real_zookeeper import RealSession
from waiting import kill_all
from zookeeper_histories import CLIENTS, ROOT, Comparison, Heard, Script
from zookeeper_toys import ZkStage

from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.node_port.zookeeper import (
    Exists,
    Operation,
    SessionEvent,
    SessionState,
    WatchEvent,
    ZkResponse,
)
from fencepost.clusters.simulation.zookeeper.sessioned import SessionedNode
from fencepost.clusters.system import Wanted
from fencepost.clusters.zookeeper.driver import DRIVER, ZooKeeperCluster
from fencepost.clusters.zookeeper.system import ZooKeeperSpec
from fencepost.history.clock import Clock

TIMEOUT_MS = 2000
"""Of every session: as long as it takes for one to expire, and as a client may be slow."""
SERVES_WITHIN_S = 60.0
SEED = int(os.environ.get("FENCEPOST_SEED", "1"))
OPERATIONS = int(os.environ.get("FENCEPOST_OPERATIONS", "3000"))
"""Three thousand take about 20 s."""


class Modelled:
    """`zookeeper_histories.Side`: the model."""

    def __init__(self, seed: int) -> None:
        self.stage = ZkStage(1, CLIENTS, seed=seed)
        self.sessions = [0] * CLIENTS

    def open(self, client: int) -> None:
        self.stage.open(client, timeout_ms=TIMEOUT_MS)
        (event,) = [
            one for one in self.stage.clients[client].heard if isinstance(one, SessionEvent)
        ]
        self.sessions[client] = event.session_id

    def close(self, client: int) -> None:
        self.stage.close(client)
        self.sessions[client] = 0

    def ask(self, client: int, requests: list[tuple[Operation, ...]]) -> None:
        for operations in requests:
            self.stage.ask(client, *operations)

    def reconnect(self, client: int) -> None:
        node = self.stage.hosts[client].node
        assert isinstance(node, SessionedNode)
        node._session._lose(self.stage.world.now_ns)
        self.stage.state(client, SessionState.CONNECTED)

    def expire(self, clients: list[int]) -> None:
        for client in clients:
            self.stage.world.pause(self.stage.hosts[client])
        self.stage.run(TIMEOUT_MS + 500)
        for client in clients:
            self.stage.world.resume(self.stage.hosts[client])
            self.stage.state(client, SessionState.EXPIRED)
            self.sessions[client] = 0

    def restart(self) -> None:
        (server,) = self.stage.ensemble.hosts
        self.stage.world.kill(server)
        self.stage.run(1000)
        self.stage.world.start(server)
        for client, session in enumerate(self.sessions):
            if session:
                self.stage.state(client, SessionState.SUSPENDED, SessionState.CONNECTED)

    def flush(self) -> list[list[Heard]]:
        self.stage.run(20)
        found: list[list[Heard]] = []
        for client in self.stage.clients:
            found.append([])
            for one in client.heard:
                if isinstance(one, ZkResponse):
                    found[-1].append(one)
                elif isinstance(one, WatchEvent):
                    found[-1].append((one.type, one.path))
            client.heard.clear()
        return found


class Real:
    """`zookeeper_histories.Side`: a server of Apache ZooKeeper."""

    def __init__(self, cluster: ZooKeeperCluster) -> None:
        self._cluster = cluster
        self._clients: list[RealSession | None] = [None] * CLIENTS

    def end(self) -> None:
        for session in filter(None, self._clients):
            session.drop()

    @property
    def sessions(self) -> list[int]:
        return [0 if one is None else one.session for one in self._clients]

    def open(self, client: int) -> None:
        session = RealSession(TIMEOUT_MS)
        assert self._connected(session)
        self._clients[client] = session

    def close(self, client: int) -> None:
        self._of(client).close()
        self._clients[client] = None

    def ask(self, client: int, requests: list[tuple[Operation, ...]]) -> None:
        for operations in requests:
            self._of(client).send(*operations)

    def reconnect(self, client: int) -> None:
        assert self._connected(self._of(client))

    def expire(self, clients: list[int]) -> None:
        for client in clients:
            self._of(client).drop()
        awaited = self._zxid() + len(clients)
        self._until(lambda: self._zxid() == awaited, but=clients)
        for client in clients:
            assert not self._connected(self._of(client))
            self._clients[client] = None

    def restart(self) -> None:
        (node,) = self._cluster.nodes
        self._cluster.kill_node(node)
        self._cluster.start_node(node)
        for session in self._clients:
            assert session is None or self._connected(session)

    def flush(self) -> list[list[Heard]]:
        for session in filter(None, self._clients):
            session.ping()  # All is done that anyone asked for; then all is told that it fired.
        found: list[list[Heard]] = []
        for session in self._clients:
            found.append([])
            if session is not None:
                session.ping()
                found[-1], session.heard = session.heard, []
        return found

    def _of(self, client: int) -> RealSession:
        session = self._clients[client]
        assert session is not None
        return session

    def _zxid(self) -> int:
        """Return the last transaction that the server has applied."""
        session = self._of(0)
        heard, session.heard = session.heard, []
        session.send(Exists(ROOT))
        session.ping()
        # A watch may fire beside the answer.
        (answer,) = (one for one in session.heard if isinstance(one, ZkResponse))
        session.heard = heard + [one for one in session.heard if one is not answer]
        return answer.zxid

    def _until(self, reached: Callable[[], bool], *, but: Collection[int]) -> None:
        end_s = time.monotonic() + SERVES_WITHIN_S
        while not reached():
            assert time.monotonic() < end_s
            for client, session in enumerate(self._clients):
                if session is not None and client not in but:
                    session.ping()
            time.sleep(0.05)  # A real server's clock goes on meanwhile: sessions expire by it.

    def _connected(self, session: RealSession) -> bool:
        host, _, port = self._cluster.client_addresses()[0].rpartition(":")
        end_s = time.monotonic() + SERVES_WITHIN_S
        while True:
            try:
                return session.connect((host, int(port)))
            except OSError:
                assert time.monotonic() < end_s
                time.sleep(0.02)  # as above


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperCluster]:
    spec = ZooKeeperSpec(servers=1)
    with Warden(run_id="test") as warden:
        it = ZooKeeperCluster(
            spec,
            prepared=DRIVER.prepare(spec, Wanted(), print),
            site=Site(
                host=LocalHost(warden),
                directory=tmp_path_factory.mktemp("nodes"),
                clock=Clock.start(),
            ),
        )
        try:
            it.start()
            yield it
        finally:
            kill_all(it)
            it.stop()


@pytest.mark.kafka
def test_the_model_answers_as_zookeeper_does(cluster: ZooKeeperCluster) -> None:
    script = Script(SEED, expiries=0.002, restarts=0.001)
    real = Real(cluster)
    comparison = Comparison(script, real, Modelled(SEED))
    try:
        comparison.run(lambda counts: counts["operations"] < OPERATIONS)
    finally:
        real.end()
    sys.stdout.write(f"{comparison.counts}\n")
    assert all(comparison.counts.values()), comparison.counts
