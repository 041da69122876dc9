"""Sessions in virtual time: what a client is told, in which order, and when its session ends."""

import pytest
from zookeeper_toys import ZkStage

from fencepost.clusters.node_port.zookeeper import (
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    SessionEvent,
    SessionState,
    SetData,
    Sync,
    WatchEvent,
    ZkError,
    ZkResponse,
)
from fencepost.clusters.simulation.network import Trouble
from fencepost.clusters.simulation.zookeeper.sessioned import SessionedNode

CONNECTED, SUSPENDED, EXPIRED = SessionState
LOST = ZkError.CONNECTION_LOSS


@pytest.mark.parametrize("servers", [1, 3])
def test_answers_come_in_the_order_of_the_requests(servers: int) -> None:
    stage = ZkStage(servers)
    stage.open()
    asked = [
        stage.ask(0, one)
        for one in (
            Create("/a", b"1"),
            GetData("/a"),
            SetData("/a", b"2"),
            GetData("/a"),
            Sync("/"),
            GetData("/a"),
        )
    ]
    stage.until(lambda: stage.clients[0].answer(asked[-1]) is not None)
    answers = [one for one in stage.clients[0].heard if isinstance(one, ZkResponse)]
    assert [one.correlation for one in answers] == asked
    assert [one.outcomes[0].data for one in answers] == [b"", b"1", b"", b"2", b"", b"2"]


def test_a_read_behind_a_sync_does_not_show_what_is_written_behind_it() -> None:
    stage = ZkStage(1)
    stage.open()
    stage.do(0, Create("/a", b"1"))
    stage.ask(0, Create("/b", b""))
    stage.ask(0, Sync("/"))
    read = stage.ask(0, GetData("/a"))
    stage.do(0, SetData("/a", b"2"))
    answer = stage.clients[0].answer(read)
    assert answer is not None
    assert answer.outcomes[0].data == b"1"


@pytest.mark.parametrize("servers", [1, 3])
def test_a_watch_fires_once_and_before_any_answer_that_shows_the_change(servers: int) -> None:
    stage = ZkStage(servers, 2)
    stage.open()
    stage.do(0, Create("/a", b"1"))
    stage.do(1, Sync("/"))
    stage.do(1, GetData("/a", watch=True))
    stage.do(1, Exists("/a", watch=True))
    stage.clients[1].heard.clear()
    for number in range(2, 12):
        stage.ask(0, SetData("/a", b"%d" % number))
        for _ in range(8):
            stage.ask(1, GetData("/a"))
            stage.run(0.3)
    stage.run(100)
    heard = stage.clients[1].heard
    fired = [at for at, one in enumerate(heard) if isinstance(one, WatchEvent)]
    shown = [
        at
        for at, one in enumerate(heard)
        if isinstance(one, ZkResponse) and one.outcomes[0].data != b"1"
    ]
    assert len(fired) == 1
    assert fired[0] < shown[0]


def test_watches_tell_what_they_were_set_for() -> None:
    stage = ZkStage(1, 2)
    stage.open()
    stage.do(1, Exists("/a", watch=True))
    stage.do(1, GetData("/a", watch=True))  # no such znode: no watch
    stage.do(0, Create("/a", b""))
    stage.do(1, GetChildren("/a", watch=True))
    stage.do(0, Create("/a/b", b""))
    stage.do(0, SetData("/a", b""))
    stage.do(1, GetData("/a", watch=True))
    stage.do(1, GetChildren("/a", watch=True))
    stage.do(0, Delete("/a/b"))
    stage.do(1, GetChildren("/a", watch=True))
    stage.do(0, Delete("/a"))
    stage.run(10)
    assert stage.clients[1].watched == [
        ("created", "/a"),
        ("children", "/a"),
        ("children", "/a"),
        ("deleted", "/a"),  # once, though its data and its children were watched
    ]


def test_the_session_of_a_paused_node_expires_and_the_node_is_told_so_when_it_goes_on() -> None:
    stage = ZkStage(1, 2)
    stage.open(timeout_ms=1000)
    stage.do(0, Create("/e", b"", ephemeral=True))
    stage.do(1, Exists("/e", watch=True))
    began_ms = stage.world.now_ns // 1_000_000
    stage.world.pause(stage.hosts[0])
    stage.until(lambda: ("deleted", "/e") in stage.clients[1].watched)
    assert 600 <= stage.world.now_ns // 1_000_000 - began_ms <= 1100
    stage.world.resume(stage.hosts[0])
    stage.state(0, CONNECTED, SUSPENDED, EXPIRED)
    stage.open(0)
    stage.do(0, Create("/e", b"", ephemeral=True))


def test_a_pause_that_is_short_enough_costs_nothing_but_the_connection() -> None:
    stage = ZkStage(1, 1)
    stage.open(timeout_ms=1000)
    stage.do(0, Create("/e", b"", ephemeral=True))
    stage.world.pause(stage.hosts[0])
    stage.run(550)
    stage.world.resume(stage.hosts[0])
    stage.run(2000)
    assert stage.do(0, Exists("/e")).error == 0
    assert EXPIRED not in stage.clients[0].states


def test_a_killed_nodes_znodes_outlive_it_until_its_session_expires() -> None:
    stage = ZkStage(1, 2)
    stage.open(timeout_ms=1000)
    stage.do(0, Create("/e", b"", ephemeral=True))
    stage.world.kill(stage.hosts[0])
    stage.run(500)
    assert stage.do(1, Exists("/e")).error == 0
    stage.run(700)
    assert stage.do(1, Exists("/e")).error == ZkError.NO_NODE


def test_a_session_that_is_closed_ends_at_once() -> None:
    stage = ZkStage(1, 2)
    stage.open()
    stage.do(0, Create("/e", b"", ephemeral=True))
    stage.close(0)
    assert stage.do(1, Exists("/e")).error == ZkError.NO_NODE
    assert stage.clients[0].states == [CONNECTED]


def test_what_is_open_when_the_connection_breaks_is_answered_so_after_the_event() -> None:
    stage = ZkStage(1, 1)
    stage.open()
    stage.world.pause(stage.ensemble.hosts[0])
    first, second = stage.ask(0, Create("/a", b"")), stage.ask(0, GetData("/a"))
    stage.run(5)
    stage.world.kill(stage.ensemble.hosts[0])
    stage.state(0, SUSPENDED)
    third = stage.ask(0, GetData("/a"))
    stage.run(5)
    heard = stage.clients[0].heard[1:]
    assert heard[0].state is SUSPENDED
    assert [(one.correlation, one.error) for one in heard[1:]] == [
        (first, LOST),
        (second, LOST),
        (third, LOST),
    ]


@pytest.mark.parametrize("servers", [1, 3])
def test_a_session_goes_on_at_another_server_and_its_watches_with_it(servers: int) -> None:
    stage = ZkStage(servers, 2)
    stage.open(timeout_ms=4000)
    for path in ("/data", "/same", "/gone", "/above"):
        stage.do(0, Create(path, b""))
    stage.do(0, Create("/e", b"", ephemeral=True))
    client = stage.clients[0]
    for path in ("/data", "/same", "/gone"):
        stage.do(0, GetData(path, watch=True))
    stage.do(0, Exists("/made", watch=True))
    stage.do(0, GetChildren("/above", watch=True))
    node = stage.hosts[0].node
    assert isinstance(node, SessionedNode)
    before = stage.ensemble.hosts[node._session._at]
    stage.world.network.block([(before.number, 0)])
    stage.state(0, CONNECTED, SUSPENDED)
    for change in (
        SetData("/data", b""),
        Delete("/gone"),
        Create("/made", b""),
        Create("/above/b", b""),
    ):
        stage.do(1, change)
    assert not client.watched
    stage.world.network.unblock([(before.number, 0)])
    stage.state(0, CONNECTED, SUSPENDED, CONNECTED)
    stage.do(0, Exists("/e"))
    assert sorted(client.watched) == [
        ("changed", "/data"),
        ("children", "/above"),
        ("created", "/made"),
        ("deleted", "/gone"),
    ]
    stage.do(1, SetData("/same", b""))
    stage.run(10)
    assert ("changed", "/same") in client.watched


def test_a_server_that_lacks_what_a_client_has_seen_does_not_serve_it() -> None:
    stage = ZkStage(3, 1)
    stage.open(timeout_ms=4000)
    leader = stage.ensemble.leader
    assert leader is not None
    behind = next(host for host in stage.ensemble.hosts if host is not leader)
    stage.world.network.block([(leader.number, behind.number)])
    stage.do(0, Create("/a", b""))
    node = stage.hosts[0].node
    assert isinstance(node, SessionedNode)
    node._session._at = stage.ensemble.hosts.index(behind) - 1
    node._session._lose(stage.world.now_ns)
    stage.run(500)
    assert stage.do(0, Exists("/a")).error == 0
    assert stage.ensemble.hosts[node._session._at] is not behind


@pytest.mark.parametrize("servers", [1, 3])
def test_a_bad_network_makes_one_session_of_one_connection(servers: int) -> None:
    """A session that a client does not know of would own what the client makes."""
    stage = ZkStage(servers)
    stage.world.network.trouble(Trouble(duplication=1.0))
    stage.open(timeout_ms=4000)
    stage.run(50)
    told = [one.session_id for one in stage.clients[0].heard if isinstance(one, SessionEvent)]
    made = stage.do(0, Create("/mine", b"", ephemeral=True)).outcomes[0].stat
    assert made is not None
    assert told == [made.ephemeral_owner]


@pytest.mark.parametrize("servers", [1, 3])
def test_a_bad_network_is_slow_and_breaks_no_promise(servers: int) -> None:
    stage = ZkStage(servers, 2)
    stage.open(timeout_ms=4000)
    stage.world.network.trouble(Trouble(loss=0.02, duplication=0.05, reordering=0.1))
    stage.do(0, Create("/q", b""))
    acknowledged, correlations = [], []
    for number in range(200):
        correlations.append(stage.ask(number % 2, Create(f"/q/{number}", b"")))
        stage.run(20)
    stage.world.network.trouble(None)
    stage.run(5000)
    for number, correlation in enumerate(correlations):
        answer = stage.clients[number % 2].answer(correlation)
        assert answer is not None, number
        assert answer.error in (0, LOST), answer
        if not answer.error:
            acknowledged.append(str(number))
    stage.do(0, Sync("/"))
    children = stage.do(0, GetChildren("/q")).outcomes[0].children
    assert set(acknowledged) <= set(children)
    assert len(acknowledged) > 190
    for client in stage.clients:
        zxids = [one.zxid for one in client.heard if isinstance(one, ZkResponse) if one.zxid > 0]
        assert zxids == sorted(zxids)
