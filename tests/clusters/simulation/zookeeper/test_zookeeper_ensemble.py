"""An ensemble under faults: what a majority has is kept, and only a majority serves."""

from collections.abc import Callable
from random import Random

import pytest
from zookeeper_toys import Client, ZkStage

from fencepost.clusters.data_tree.requests import read, stat_of
from fencepost.clusters.data_tree.transactions import (
    CloseSessionTxn,
    CreateSessionTxn,
    CreateTxn,
    ErrorTxn,
    SetDataTxn,
)
from fencepost.clusters.data_tree.tree import OPEN
from fencepost.clusters.node_port.zookeeper import (
    Create,
    Exists,
    GetChildren,
    GetData,
    SessionEvent,
    SessionState,
    SetData,
    Sync,
    ZkError,
    ZkResponse,
)
from fencepost.clusters.simulation.host import ProcessState, SimulatedHost
from fencepost.clusters.simulation.zookeeper.sessioned import SessionedNode

LOST = ZkError.CONNECTION_LOSS


def use(stage: ZkStage, client: int, server: SimulatedHost) -> None:
    """Have a client go on at this server."""
    node = stage.hosts[client].node
    assert isinstance(node, SessionedNode)
    session = node._session
    if stage.ensemble.hosts[session._at] is not server:
        session._at = stage.ensemble.hosts.index(server) - 1
        before = len(stage.clients[client].states)
        session._lose(stage.world.now_ns)
        moved = [SessionState.SUSPENDED, SessionState.CONNECTED]
        stage.until(lambda: stage.clients[client].states[before:] == moved)
    assert stage.ensemble.hosts[session._at] is server


def leader_of(stage: ZkStage) -> SimulatedHost:
    stage.until(lambda: stage.ensemble.leader is not None)
    leader = stage.ensemble.leader
    assert leader is not None
    return leader


def cut(stage: ZkStage, one: SimulatedHost) -> Callable[[], None]:
    """Cut a server from the others; return how to heal it."""
    others = [host.number for host in stage.ensemble.hosts if host is not one]
    flows = [pair for n in others for pair in ((n, one.number), (one.number, n))]
    stage.world.network.block(flows)
    return lambda: stage.world.network.unblock(flows)


def test_a_read_at_a_follower_may_be_stale_and_a_sync_makes_it_catch_up() -> None:
    stage = ZkStage(3, 2)
    stage.open(timeout_ms=4000)
    leader = leader_of(stage)
    behind = next(host for host in stage.ensemble.hosts if host is not leader)
    use(stage, 0, leader)
    use(stage, 1, behind)
    stage.do(0, Create("/a", b"1"))
    stage.do(1, Sync("/"))
    stage.world.network.block([(leader.number, behind.number)])
    stage.do(0, SetData("/a", b"2"))
    assert stage.do(1, GetData("/a")).outcomes[0].data == b"1"
    synced = stage.ask(1, Sync("/"))
    read = stage.ask(1, GetData("/a"))
    stage.run(50)
    assert stage.clients[1].answer(synced) is None
    stage.world.network.unblock([(leader.number, behind.number)])
    stage.until(lambda: stage.clients[1].answer(read) is not None)
    answer = stage.clients[1].answer(read)
    assert answer is not None
    assert answer.outcomes[0].data == b"2"


def test_a_leader_without_a_majority_acknowledges_nothing_and_soon_serves_nobody() -> None:
    stage = ZkStage(3, 2)
    stage.open(timeout_ms=4000)
    leader = leader_of(stage)
    use(stage, 0, leader)
    heal = cut(stage, leader)
    asked = stage.ask(0, Create("/alone", b""))
    stage.run(100)
    assert stage.clients[0].answer(asked) is None
    stage.until(lambda: not stage.ensemble.server(leader).member.is_serving)
    stage.until(lambda: stage.clients[0].answer(asked) is not None)
    answer = stage.clients[0].answer(asked)
    assert answer is not None
    assert answer.error == LOST
    stage.state(0, SessionState.CONNECTED, SessionState.SUSPENDED, SessionState.CONNECTED)
    assert stage.do(0, Create("/b", b"")).error == 0
    heal()
    stage.run(2000)
    assert read(stage.ensemble.server(leader).tree, Exists("/alone")).error == ZkError.NO_NODE
    assert read(stage.ensemble.server(leader).tree, Exists("/b")).error == 0


def test_a_server_that_comes_back_from_a_partition_deposes_no_leader() -> None:
    stage = ZkStage(3, 1)
    stage.open(timeout_ms=4000)
    leader = leader_of(stage)
    epoch = stage.ensemble.server(leader).member.epoch.number
    heal = cut(stage, next(host for host in stage.ensemble.hosts if host is not leader))
    stage.run(5000)
    heal()
    stage.run(3000)
    assert stage.ensemble.leader is leader
    assert stage.ensemble.server(leader).member.epoch.number == epoch


def test_two_of_three_serve_and_one_does_not() -> None:
    stage = ZkStage(3, 1)
    stage.open(timeout_ms=4000)
    stage.do(0, Create("/a", b""))
    first, second, _ = stage.ensemble.hosts
    stage.world.kill(first)
    stage.run(3000)
    assert stage.do(0, Exists("/a")).error == 0
    stage.world.kill(second)
    stage.run(3000)
    assert stage.do(0, Exists("/a")).error == LOST
    stage.ensemble.start()
    stage.run(3000)
    assert stage.do(0, Exists("/a")).error == 0


@pytest.mark.parametrize("servers", [1, 3])
def test_what_was_acknowledged_survives_the_loss_of_all_power(servers: int) -> None:
    stage = ZkStage(servers, 1)
    stage.open(timeout_ms=4000)
    names = [f"/n{number}" for number in range(20)]
    for name in names:
        stage.do(0, Create(name, b""))
    unsure = [stage.ask(0, Create(f"/x{number}", b"")) for number in range(20)]
    stage.run(1)
    for host in stage.ensemble.hosts:
        stage.world.cut_power(host)
    stage.run(100)
    stage.ensemble.start()
    leader_of(stage)
    stage.run(5000)
    assert all(stage.do(0, Exists(name)).error == 0 for name in names)
    assert all(stage.clients[0].answer(one) is not None for one in unsure)


def test_a_session_lives_through_the_change_of_the_leader() -> None:
    stage = ZkStage(3, 2)
    stage.open(timeout_ms=2000)
    stage.do(0, Create("/e", b"", ephemeral=True))
    for _ in range(3):
        stage.world.kill(leader_of(stage))
        stage.run(2500)
        stage.ensemble.start()
        stage.run(1000)
    assert stage.do(1, Exists("/e")).error == 0
    stage.world.kill(stage.hosts[0])
    stage.run(4000)
    assert stage.do(1, Exists("/e")).error == ZkError.NO_NODE


def created(path: str, data: bytes = b"", *, owner: int = 0, nth: int) -> CreateTxn:
    return CreateTxn(path=path, data=data, acls=OPEN, ephemeral_owner=owner, parent_cversion=nth)


def test_the_log_tells_what_every_transaction_did() -> None:
    stage = ZkStage(1, 1)
    stage.open(timeout_ms=1000)
    stage.do(0, Create("/q", b""))
    stage.do(0, Create("/q/n-", b"1", sequential=True), Create("/q/e", b"", ephemeral=True))
    stage.do(0, SetData("/q", b"2"))
    stage.do(0, SetData("/q", b"3", 7))
    stage.close(0)
    found = list(stage.ensemble.transactions())
    session = found[0].session
    assert [tuple(change for _, change in one.changes) for one in found] == [
        (CreateSessionTxn(timeout_ms=1000),),
        (created("/q", nth=1),),
        (created("/q/n-0000000000", b"1", nth=1), created("/q/e", owner=session, nth=2)),
        (SetDataTxn(path="/q", data=b"2", version=1),),
        (ErrorTxn(error=ZkError.BAD_VERSION),),
        (CloseSessionTxn(paths=("/q/e",)),),
    ]
    assert [one.zxid for one in found] == [1 << 32 | number for number in range(1, 7)]


class Storm:
    """Faults and writes at random; what was acknowledged, by client."""

    def __init__(self, seed: int, servers: int) -> None:
        self.random = Random(seed)
        self.stage = ZkStage(servers, 3, seed=seed)
        self.stage.open(timeout_ms=3000)
        self.written: list[tuple[int, int, str]] = []
        """(client, correlation, name)."""
        self.blocked: list[tuple[int, int]] = []
        self.stage.do(0, Create("/q", b""))

    def step(self) -> None:
        stage, draw = self.stage, self.random
        for number, client in enumerate(stage.clients):
            if client.states[-1] is SessionState.EXPIRED:
                stage.open(number)
            name = f"/q/{len(self.written)}"
            self.written.append((number, stage.ask(number, Create(name, b"")), name))
            stage.ask(number, GetChildren("/q"))
        if draw.random() < 0.1:
            self.strike(draw.choice(stage.ensemble.hosts))
        stage.run(draw.uniform(0, 60))

    def strike(self, host: SimulatedHost) -> None:
        world, network = self.stage.world, self.stage.world.network
        if host.state is ProcessState.DOWN:
            world.start(host)
        elif host.state is ProcessState.PAUSED:
            world.resume(host)
        elif self.blocked:
            network.unblock(self.blocked)
            self.blocked = []
        else:
            fault = self.random.choice(("kill", "power", "pause", "cut"))
            if fault == "kill":
                world.kill(host)
            elif fault == "power":
                world.cut_power(host)
            elif fault == "pause":
                world.pause(host)
            else:
                other = self.random.choice([*self.stage.ensemble.hosts, *self.stage.hosts])
                flows = [(host.number, other.number), (other.number, host.number)]
                self.blocked = self.random.sample(flows, self.random.randint(1, 2))
                network.block(self.blocked)

    def heal(self) -> None:
        stage = self.stage
        stage.world.network.unblock(self.blocked)
        for host in stage.ensemble.hosts:
            if host.state is ProcessState.PAUSED:
                stage.world.resume(host)
        stage.ensemble.start()
        leader_of(stage)
        stage.run(8000)


@pytest.mark.parametrize("servers", [1, 3])
@pytest.mark.parametrize("seed", range(6))
def test_an_ensemble_keeps_its_promises_under_faults(seed: int, servers: int) -> None:
    storm = Storm(seed, servers)
    for _ in range(200):
        storm.step()
    storm.heal()
    stage = storm.stage
    names = {
        change.path
        for one in stage.ensemble.transactions()
        for _, change in one.changes
        if isinstance(change, CreateTxn)
    }
    answers = [stage.clients[number].answer(asked) for number, asked, _ in storm.written]
    acknowledged = [
        name
        for (_, _, name), answer in zip(storm.written, answers, strict=True)
        if answer is not None and not answer.error
    ]
    assert len(acknowledged) > 50
    assert set(acknowledged) <= names
    assert all(answer is not None for answer in answers)
    trees = [stage.ensemble.server(host).tree for host in stage.ensemble.hosts]
    assert all(
        {path: stat_of(one) for path, one in tree.znodes.items()}
        == {path: stat_of(one) for path, one in trees[0].znodes.items()}
        for tree in trees
    )
    for client in stage.clients:
        assert_it_only_goes_forward(client)


def assert_it_only_goes_forward(client: Client) -> None:
    """Assert that no answer of a session shows less than one before it."""
    zxid, mine, wrote = 0, set[str](), 0
    for one in client.heard:
        if isinstance(one, SessionEvent) and one.state is SessionState.EXPIRED:
            zxid, mine = 0, set()
        elif isinstance(one, ZkResponse) and not one.error:
            assert one.zxid >= zxid
            zxid = one.zxid
            outcome = one.outcomes[0]
            if outcome.path:
                mine.add(outcome.path.rpartition("/")[2])
                wrote += 1
            else:
                assert mine - {"q"} <= set(outcome.children)
    assert wrote


def followers_of(stage: ZkStage, leader: SimulatedHost) -> list[SimulatedHost]:
    return [host for host in stage.ensemble.hosts if host is not leader]


def test_what_a_leader_logged_before_it_died_is_committed_late_by_one_that_has_it() -> None:
    """Its client is told that the connection is lost: it cannot know."""
    stage = ZkStage(3, 2)
    stage.open(timeout_ms=4000)
    leader = leader_of(stage)
    use(stage, 0, leader)
    use(stage, 1, followers_of(stage, leader)[0])
    asked = stage.ask(0, Create("/late", b""))
    stage.until(lambda: len(stage.ensemble.log(leader)) > len(stage.ensemble.committed()))
    stage.world.kill(leader)
    stage.until(lambda: stage.clients[0].answer(asked) is not None)
    answer = stage.clients[0].answer(asked)
    assert answer is not None
    assert answer.error == LOST
    leader_of(stage)
    stage.run(1000)
    assert stage.do(1, Exists("/late")).error == 0


def test_what_only_a_leader_without_a_majority_logged_is_gone_from_its_disk() -> None:
    stage = ZkStage(3, 1)
    stage.open(timeout_ms=4000)
    leader = leader_of(stage)
    use(stage, 0, leader)
    heal = cut(stage, leader)
    stage.ask(0, Create("/alone", b""))
    stage.run(50)
    logged = stage.ensemble.log(leader)
    stage.until(lambda: stage.ensemble.leader not in (None, leader))
    heal()
    stage.run(2000)
    now = stage.ensemble.log(leader)
    assert logged[-1] not in now
    assert now == stage.ensemble.log(followers_of(stage, leader)[0])


def test_a_paused_server_lags_and_catches_up() -> None:
    stage = ZkStage(3, 2)
    stage.open(timeout_ms=4000)
    leader = leader_of(stage)
    behind = followers_of(stage, leader)[0]
    use(stage, 0, leader)
    stage.world.pause(behind)
    stage.do(0, Create("/a", b""))
    assert len(stage.ensemble.log(behind)) < len(stage.ensemble.log(leader))
    stage.run(300)
    stage.world.resume(behind)
    stage.run(300)
    use(stage, 1, behind)
    assert stage.do(1, Exists("/a")).error == 0
    assert stage.ensemble.log(behind) == stage.ensemble.log(leader)


def test_a_server_that_lost_its_disk_has_it_from_the_others() -> None:
    stage = ZkStage(3, 1)
    stage.open(timeout_ms=4000)
    stage.do(0, Create("/a", b""))
    lost = followers_of(stage, leader_of(stage))[0]
    stage.world.kill(lost)
    lost.disk.format({})
    stage.world.start(lost)
    stage.run(3000)
    use(stage, 0, lost)
    assert stage.do(0, Exists("/a")).error == 0


def test_where_a_majority_lost_its_disks_what_the_last_one_has_alone_is_undone() -> None:
    """No ensemble survives that; the server that had everything goes back to what is decided."""
    stage = ZkStage(3, 1)
    stage.open(timeout_ms=4000)
    stage.do(0, Create("/a", b""))
    stage.run(200)
    first, *others = stage.ensemble.hosts
    heal = cut(stage, first)
    for host in others:
        stage.world.kill(host)
        host.disk.format({})
        stage.world.start(host)
    stage.until(lambda: stage.ensemble.leader in others)
    heal()
    stage.run(3000)
    assert stage.ensemble.log(first) == stage.ensemble.log(others[0])
    assert read(stage.ensemble.server(first).tree, Exists("/a")).error == ZkError.NO_NODE
    assert stage.ensemble.server(first).member.is_serving


def test_an_old_copy_of_a_disk_is_brought_up_to_date() -> None:
    stage = ZkStage(3, 1)
    stage.open(timeout_ms=4000)
    old = followers_of(stage, leader_of(stage))[0]
    old.disk.snapshot("old")
    stage.do(0, Create("/a", b""))
    stage.world.kill(old)
    old.disk.rollback("old")
    stage.world.start(old)
    stage.run(3000)
    use(stage, 0, old)
    assert stage.do(0, Exists("/a")).error == 0
