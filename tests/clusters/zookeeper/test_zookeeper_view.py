"""Who leads, who follows and who lags, as the servers themselves say; what plays ask of it."""

import random
from dataclasses import replace

import pytest

from fencepost.clusters.observation import AllRecovered, Condition, Observation
from fencepost.clusters.port import NodeName, NodeState
from fencepost.clusters.stage import Stage
from fencepost.clusters.targets import NotNowError
from fencepost.clusters.zookeeper.view import EnsembleView, ServerState, first_view
from fencepost.history.failure import SpecError
from fencepost.nemesis.targets import Scene, parse_target, resolve, target_data
from fencepost.nemesis.verbs.await_condition import parse_condition

NODES = tuple(NodeName(f"server-{number}") for number in (1, 2, 3))
STAGE = Stage(nodes=NODES, system="zookeeper")
IDS = {node: number for number, node in enumerate(NODES, 1)}
EPOCH = 1 << 32
ALL = frozenset(IDS.values())


def serving(mode: str, zxid: int) -> ServerState:
    return ServerState(mode=mode, zxid=zxid)


LOOKING = ServerState(mode=None, zxid=None)


def view(*servers: ServerState | None, earlier: int = 0) -> EnsembleView:
    """A view of server-1, server-2, …; None: it did not answer."""
    shown = {number: state for number, state in enumerate(servers, 1) if state is not None}
    return EnsembleView(servers=shown, earlier=earlier)


WHOLE = view(
    serving("follower", EPOCH + 7), serving("leader", EPOCH + 9), serving("follower", EPOCH + 8)
)


def observation(shown: EnsembleView | None) -> Observation:
    return Observation(
        view=shown,
        active_controller=None,
        states=dict.fromkeys(NODES, NodeState.RUNNING),
        broker_ids=IDS,
        acknowledged_count=0,
    )


def scene(shown: EnsembleView | None) -> Scene:
    return Scene(nodes=NODES, broker_ids=IDS, view=shown, active_controller=None)


def condition(value: object) -> Condition:
    return parse_condition(value, stage=STAGE)


def test_a_leader_and_its_followers_take_part() -> None:
    assert WHOLE.leader == 2
    assert WHOLE.taking_part == ALL
    assert WHOLE.is_whole(ALL)


def test_servers_without_a_leader_take_no_part() -> None:
    shown = view(LOOKING, LOOKING, None)
    assert shown.leader is None
    assert shown.taking_part == frozenset()
    assert shown.incomplete == ["no server leads"]
    assert not shown.is_whole(ALL)


def test_one_that_looks_or_is_silent_keeps_the_ensemble_from_being_whole() -> None:
    for missing in (LOOKING, None):
        shown = view(serving("follower", EPOCH), serving("leader", EPOCH), missing)
        assert shown.taking_part == {1, 2}
        assert not shown.is_whole(ALL)
        assert shown.is_whole(frozenset({1, 2}))


def test_of_two_that_say_they_lead_the_one_of_the_latest_epoch_does() -> None:
    shown = view(serving("leader", EPOCH + 9), serving("leader", 2 * EPOCH), LOOKING)
    assert shown.leader == 2
    assert shown.taking_part == {2}
    assert shown.incomplete == ["servers [1, 2] say that they lead"]
    assert not shown.is_whole(frozenset({2}))


def test_a_follower_lags_that_lacks_what_the_leader_had_applied_before() -> None:
    shown = view(
        serving("follower", EPOCH + 3),
        serving("leader", EPOCH + 9),
        serving("follower", EPOCH + 5),
        earlier=EPOCH + 5,
    )
    assert shown.lagging == {1}
    assert not shown.is_whole(ALL)
    assert shown.incomplete == ["server 1 has applied 0x100000003 of 0x100000005"]


def test_a_leader_before_its_first_transaction_has_nothing_that_a_follower_could_lack() -> None:
    assert view(serving("follower", 0), serving("leader", EPOCH)).applied == 0
    assert view(serving("follower", 0), serving("leader", EPOCH + 1)).applied == EPOCH + 1


def test_a_new_ensemble_is_whole() -> None:
    assert first_view((1, 2, 3), ()).is_whole(ALL)


@pytest.mark.parametrize(
    ("value", "holds", "fails"),
    [
        ({"led": True}, WHOLE, view(serving("leader", EPOCH), LOOKING, None)),
        ({"led": False}, view(LOOKING, None, None), WHOLE),
        ({"leader": "server-2"}, WHOLE, view(LOOKING, LOOKING, LOOKING)),
        ({"follows": "server-1"}, WHOLE, view(LOOKING, serving("leader", 1), None)),
        (
            {"caught_up": "server-1"},
            WHOLE,
            view(serving("follower", 3), serving("leader", 9), None, earlier=5),
        ),
        (
            {"last_zxid": {"server-1": "0x100000007"}},
            WHOLE,
            view(serving("follower", EPOCH + 6), serving("leader", EPOCH + 9)),
        ),
    ],
)
def test_a_condition_holds_or_not_and_is_written_as_it_was_read(
    value: object, holds: EnsembleView, fails: EnsembleView
) -> None:
    asked = condition(value)
    assert asked.holds(observation(holds))
    assert not asked.holds(observation(fails))
    assert condition(asked.data()) == asked


@pytest.mark.parametrize(
    "value",
    [
        {"leader": "server-2"},
        {"follows": "server-1"},
        {"caught_up": "server-1"},
        {"last_zxid": {"server-1": 1}},
        {"led": True},
        "recovered",
    ],
)
def test_what_no_server_shows_does_not_hold(value: object) -> None:
    assert not condition(value).holds(observation(None))


def test_a_leader_does_not_follow() -> None:
    assert not condition({"follows": "server-2"}).holds(observation(WHOLE))


def test_a_zxid_may_be_a_number_or_as_zookeeper_writes_it() -> None:
    said = condition({"last_zxid": {"server-1": 0x100000005}})
    assert said == condition({"last_zxid": {"server-1": "0x100000005"}})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"leader": "server-4"}, "no such node: 'server-4'"),
        ({"led": "yes"}, "expected true or false"),
        ({"last_zxid": {"server-1": "late"}}, "expected a zxid"),
        ({"last_zxid": {"server-1": -1}}, "expected a zxid"),
        ({"last_zxid": 5}, "expected a server and a zxid"),
        ({"isr": {"t-0": [1]}}, "unknown condition 'isr'"),
    ],
)
def test_what_cannot_be_asked_is_refused(value: object, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        condition(value)


def test_recovered_asks_that_all_run_too() -> None:
    now = observation(WHOLE)
    assert AllRecovered().holds(now)
    down = Observation(
        view=WHOLE,
        active_controller=None,
        states={**now.states, NODES[0]: NodeState.DOWN},
        broker_ids=IDS,
        acknowledged_count=0,
    )
    assert not AllRecovered().holds(down)


def test_the_leader_and_a_follower_can_be_named_by_what_they_are() -> None:
    leader, follower = parse_target("leader", STAGE), parse_target("follower", STAGE)
    assert resolve(leader, scene(WHOLE), random.Random(1)) == (NODES[1],)
    drawn = {resolve(follower, scene(WHOLE), random.Random(seed)) for seed in range(30)}
    assert drawn == {(NODES[0],), (NODES[2],)}
    assert [target_data(one) for one in (leader, follower)] == ["leader", "follower"]


def test_a_server_that_was_killed_since_the_last_look_is_no_follower() -> None:
    follower = parse_target("follower", STAGE)
    killed = replace(scene(WHOLE), down=frozenset(NODES[:1]))
    drawn = {resolve(follower, killed, random.Random(seed)) for seed in range(30)}
    assert drawn == {(NODES[2],)}
    with pytest.raises(NotNowError, match="no server says that it follows"):
        resolve(follower, replace(killed, down=frozenset(NODES)), random.Random(1))


@pytest.mark.parametrize("words", ["leader", "follower"])
def test_nobody_leads_or_follows_an_ensemble_without_a_quorum(words: str) -> None:
    for shown in (None, view(LOOKING, LOOKING, None)):
        with pytest.raises(NotNowError, match="no server says that it"):
            resolve(parse_target(words, STAGE), scene(shown), random.Random(1))


@pytest.mark.parametrize("words", ["leader of t-0", "active controller", "one broker"])
def test_what_kafka_describes_is_no_target_here(words: str) -> None:
    with pytest.raises(SpecError, match="a list of nodes, 'leader', 'follower', or 'one"):
        parse_target(words, STAGE)
