"""A broker's registration, answer by answer."""

from typing import Any

from zookeeper_double import ZookeeperDouble

from fencepost.clusters.node_port.effects import SEND, Effects
from fencepost.clusters.node_port.zookeeper import (
    OpenSession,
    SessionEvent,
    SessionState,
    WatchEvent,
    ZkError,
    ZkRequest,
    ZkResponse,
)
from fencepost.clusters.reference.zk.configuration import ZkConfiguration
from fencepost.clusters.reference.zk.registration import ZkRegistration
from fencepost.clusters.reference.zk.rules import ZkRules
from fencepost.clusters.reference.zk.situation import ZkSituation
from fencepost.clusters.reference.zk.znodes import broker_path

TIMEOUT = 60_000_000_000


class Registering:
    """A broker of id 1, and what its registration tells it."""

    def __init__(self, zookeeper: ZookeeperDouble) -> None:
        configuration = ZkConfiguration(node_id=1, is_controller=False, voters=(), cluster_id="c")
        self.situation = ZkSituation(configuration, ZkRules())
        self.zookeeper = zookeeper
        self.registration = ZkRegistration(self.situation, self)
        self.effects: Effects = []
        self.told: list[str] = []
        self.registration.start(None, self.effects)
        self.session = self.open()

    def open(self) -> Any:
        """Give it the session that it asks for."""
        assert isinstance(self.effects.pop()[2], OpenSession)
        return self.zookeeper.open()

    def connect(self) -> None:
        self.hear(SessionState.CONNECTED)

    def hear(self, state: SessionState, *, now: int = 0) -> None:
        event = SessionEvent(-1, state, self.session.number)
        self.situation.zookeeper.session(now, event, self.effects)
        self.settle(now=now)

    def settle(self, *, now: int = 0) -> None:
        """Let ZooKeeper answer until nothing is asked any more."""
        while self.session.inbox or any(_is_request(one) for one in self.effects):
            asked = [one[2] for one in self.effects if _is_request(one)]
            self.effects[:] = [one for one in self.effects if not _is_request(one)]
            for request in asked:
                self.zookeeper.request(self.session, request)
            while self.session.inbox:
                self.deliver(self.session.inbox.popleft(), now=now)

    def deliver(self, message: Any, *, now: int) -> None:
        if isinstance(message, WatchEvent):
            self.situation.zookeeper.watched(now, message, self.effects)
        else:
            self.situation.zookeeper.answered(now, message, self.effects)

    # The rest of the broker.

    def registered(self, _now: int, _effects: Effects) -> None:
        self.told.append(f"registered {self.situation.broker_epoch}")

    def session_lost(self, _now: int, _effects: Effects) -> None:
        self.told.append("session lost")

    def refused(self, why: str, _effects: Effects) -> None:
        self.told.append(why)


def _is_request(effect: tuple[Any, ...]) -> bool:
    return effect[0] == SEND and isinstance(effect[2], ZkRequest)


def czxid(zookeeper: ZookeeperDouble) -> int:
    return zookeeper.tree[broker_path(1)].czxid


def test_a_broker_registers_once_it_has_a_session() -> None:
    zookeeper = ZookeeperDouble()
    broker = Registering(zookeeper)
    assert broker.told == []
    broker.connect()
    assert broker.told == [f"registered {czxid(zookeeper)}"]


def test_a_registration_whose_answer_was_lost_is_known_by_its_session() -> None:
    zookeeper = ZookeeperDouble()
    broker = Registering(zookeeper)
    broker.situation.zookeeper.session(
        0, SessionEvent(-1, SessionState.CONNECTED, broker.session.number), broker.effects
    )
    while broker_path(1) not in zookeeper.tree:
        asked = [one[2] for one in broker.effects]
        broker.effects.clear()
        for request in asked:
            zookeeper.request(broker.session, request)
        if broker_path(1) not in zookeeper.tree:
            while broker.session.inbox:
                broker.deliver(broker.session.inbox.popleft(), now=0)
    answer = broker.session.inbox.pop()
    broker.deliver(ZkResponse(answer.correlation, int(ZkError.CONNECTION_LOSS), -1, ()), now=0)
    broker.settle()
    assert broker.told == [f"registered {czxid(zookeeper)}"]


def test_it_waits_for_the_znode_of_its_predecessor_to_go() -> None:
    zookeeper = ZookeeperDouble()
    Registering(zookeeper).connect()
    before = czxid(zookeeper)
    broker = Registering(zookeeper)
    broker.connect()
    broker.registration.tick(TIMEOUT - 1, broker.effects)
    assert broker.told == []
    zookeeper.expire(zookeeper.sessions[1])
    broker.settle()
    assert broker.told == [f"registered {czxid(zookeeper)}"]
    assert czxid(zookeeper) > before


def test_it_waits_only_so_long() -> None:
    zookeeper = ZookeeperDouble()
    Registering(zookeeper).connect()
    broker = Registering(zookeeper)
    broker.connect()
    broker.registration.tick(TIMEOUT, broker.effects)
    assert broker.told == ["another process is registered under broker id 1"]


def test_it_registers_anew_in_the_next_session() -> None:
    zookeeper = ZookeeperDouble()
    broker = Registering(zookeeper)
    broker.connect()
    before = broker.situation.broker_epoch
    zookeeper.expire(broker.session)
    broker.hear(SessionState.EXPIRED)
    broker.session = broker.open()
    broker.connect()
    assert broker.told[1:] == ["session lost", f"registered {czxid(zookeeper)}"]
    assert broker.situation.broker_epoch > before


def test_a_connection_that_comes_back_changes_nothing() -> None:
    broker = Registering(ZookeeperDouble())
    broker.connect()
    broker.hear(SessionState.SUSPENDED)
    broker.connect()
    assert len(broker.told) == 1
