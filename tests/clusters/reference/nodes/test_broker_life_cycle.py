"""The life cycle of a broker: KIP-631's states, registration, leases, and its ways to end."""

from typing import Any

import pytest
from broker_world import World, batch, copied, ready, without
from stage import CLOSED, formatted_disk

from fencepost.clusters.node_port.effects import CLOSE, SEND
from fencepost.clusters.node_port.storage import CLEAN_STOP, HIGH_WATERMARKS
from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.nodes.life_cycle_transitions import TRANSITIONS, Trigger
from fencepost.clusters.reference.nodes.messages.client import ApiVersionsRequest, MetadataRequest
from fencepost.clusters.reference.nodes.messages.control import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    CreateTopicsRequest,
    NewTopic,
)
from fencepost.clusters.reference.nodes.messages.data import FetchRequest

LEASE_NS = 2_000 * MS
TICKS_NS = 40 * MS


def states(world: World, broker: int) -> list[BrokerState]:
    return [note[2] for note in world.noted("broker-state", node=broker)]


def cut_off(world: World, broker: int) -> None:
    """The controllers do not hear of this broker any more, nor it of them."""
    world.cut([broker], world.voters)


def test_k07_a_broker_registers_is_fenced_and_runs() -> None:
    world = ready()
    assert states(world, 1) == [
        BrokerState.REGISTERING,
        BrokerState.FENCED,
        BrokerState.RUNNING,
    ]


def test_k07_a_broker_that_crashed_recovers_first() -> None:
    world = ready()
    world.create("t", (1, 2, 3))
    world.kill(1)
    world.start(1)
    before = len(states(world, 1))
    world.until(lambda: world.is_ready(1))
    assert states(world, 1)[before:][:2] == [
        BrokerState.RECOVERING_FROM_UNCLEAN_SHUTDOWN,
        BrokerState.REGISTERING,
    ]


def recovering(*off: str) -> tuple[World, tuple[int, int]]:
    """Broker 1 has crashed with a record in a log that it led, and recovers."""
    world = ready(rules=without(*off))
    keys = [(world.create(name, (1, 2, 3)), 0) for name in "tuvwx"]
    key = keys[0]
    assert world.produce(key, batch("a")) == (0, 0)
    world.until(lambda: dict(world.disk(1).files.get(HIGH_WATERMARKS, ())).get(key) == 1)
    world.kill(1)
    world.start(1)
    world.until(lambda: states(world, 1)[-1] == BrokerState.RECOVERING_FROM_UNCLEAN_SHUTDOWN)
    return world, key


def test_k07_recovery_takes_a_time_by_the_logs() -> None:
    world, key = recovering()
    begun = world.now
    world.until(lambda: states(world, 1)[-1] == BrokerState.REGISTERING)
    assert world.now - begun == world.disk(1).recovery_ns > 25 * MS
    world.until(lambda: world.is_ready(1))
    assert world.nodes[1].replicas.hosted[key].log.end == 1


@pytest.mark.parametrize("off", [(), ("role_after_registration",)], ids=["", "roles-at-once"])
def test_k07_a_broker_that_recovers_takes_no_role_and_changes_no_log(off: tuple[str, ...]) -> None:
    world, key = recovering(*off)
    before = world.disk(1).batches(key)
    new = NewTopic("new", -1, -1, ((1, 2, 3),))
    world.send(2, CreateTopicsRequest(1, (new,), 1_000 * MS))
    world.until(lambda: "new" in world.nodes[1].image.topics)
    assert states(world, 1)[-1] == BrokerState.RECOVERING_FROM_UNCLEAN_SHUTDOWN
    assert world.nodes[1].replicas.hosted == {}
    assert world.disk(1).batches(key) is before
    world.until(lambda: world.is_ready(1))


def test_k07_a_broker_that_is_stopped_while_it_recovers_ends_and_recovers_again() -> None:
    world, key = recovering()
    world.stop(1)
    world.until(lambda: 1 in world.exits, limit_ns=5 * MS)
    assert world.exits[1] == ""
    assert states(world, 1)[-1] == BrokerState.NOT_RUNNING
    assert world.disk(1).files[CLEAN_STOP] is False
    assert dict(world.disk(1).files[HIGH_WATERMARKS])[key] == 1
    world.start(1)
    before = len(states(world, 1))
    world.until(lambda: world.is_ready(1))
    assert states(world, 1)[before] == BrokerState.RECOVERING_FROM_UNCLEAN_SHUTDOWN


def test_k07_there_are_no_other_transitions_than_the_documents() -> None:
    found = {(old, new) for (old, _), new in TRANSITIONS.items()}
    down, registering, recovering = BrokerState(0), BrokerState(1), BrokerState(2)
    running, fenced, leaving = BrokerState(3), BrokerState(4), BrokerState(6)
    assert found == {
        (down, recovering),
        (down, registering),
        (recovering, registering),
        (recovering, down),
        (registering, fenced),
        (registering, down),
        (fenced, running),
        (fenced, down),
        (running, fenced),
        (running, leaving),
        (leaving, down),
    }


@pytest.mark.parametrize("state", sorted({old for old, _ in TRANSITIONS} - {0}))
def test_k07_every_state_has_a_way_out_on_control_c(state: BrokerState) -> None:
    expected = {BrokerState.RUNNING: BrokerState.PENDING_CONTROLLED_SHUTDOWN}
    if state == BrokerState.PENDING_CONTROLLED_SHUTDOWN:
        assert (state, Trigger.STOPPED) not in TRANSITIONS
    else:
        assert TRANSITIONS[state, Trigger.STOPPED] == expected.get(state, BrokerState.NOT_RUNNING)


def test_k01_a_registration_carries_what_the_document_says() -> None:
    world = ready()
    request = next(m for s, _, m in world.sent if s == 2 and m.kind == 20)
    assert isinstance(request, BrokerRegistrationRequest)
    assert (request.broker_id, request.broker_epoch) == (2, -1)
    assert request.incarnation_id == world.nodes[2].situation.incarnation_id
    assert request.listeners == (("CLIENT", "broker-2", 9092, 0),)
    assert request.features == (("metadata.version", 1, 3),)


@pytest.mark.parametrize("rule_on", [True, False])
def test_k11_a_broker_starts_on_no_disk_that_was_not_formatted_for_it(*, rule_on: bool) -> None:
    world = ready(brokers=2, rules={2: without(*() if rule_on else ("format_required",))[0]})
    world.kill(2)
    world.disk(2).format({})
    world.start(2)
    if rule_on:
        world.until(lambda: 2 in world.exits)
        assert "meta.properties" in world.exits[2]
    else:
        world.until(lambda: world.is_ready(2))


def test_k11_a_broker_starts_on_no_other_brokers_disk() -> None:
    world = ready(brokers=2)
    world.kill(2)
    world.disk(2).format(formatted_disk(1))
    world.start(2)
    world.until(lambda: 2 in world.exits)
    assert "expected node 2, found 1" in world.exits[2]


@pytest.mark.parametrize("rule_on", [True, False])
def test_k04_a_broker_without_an_answer_for_its_lease_fences_itself(*, rule_on: bool) -> None:
    world = ready(rules=without(*() if rule_on else ("broker_ends_lease",)), settings={"level": 2})
    cut_off(world, 1)
    world.run(LEASE_NS + TICKS_NS)
    answer = world.ask(1, ApiVersionsRequest(1))
    if rule_on:
        assert states(world, 1)[-1] == BrokerState.FENCED
        assert answer == CLOSED
    else:
        assert states(world, 1)[-1] == BrokerState.RUNNING
        assert answer != CLOSED


def test_k04_the_lease_runs_from_when_the_heartbeat_was_sent() -> None:
    world = ready()
    world.catches = lambda _s, t, m: t == 1 and isinstance(m, BrokerHeartbeatResponse)
    world.until(lambda: world.held)
    sent_ns = world.now - 2 * MS
    world.run(500 * MS)
    cut_off(world, 1)
    del world.held[1:]
    world.release()
    world.run(sent_ns + LEASE_NS - TICKS_NS - world.now)
    assert states(world, 1)[-1] == BrokerState.RUNNING
    world.run(2 * TICKS_NS)
    assert states(world, 1)[-1] == BrokerState.FENCED


def test_k04_a_broker_that_was_paused_beyond_its_lease_answers_nobody_who_waited() -> None:
    world = ready(settings={"level": 2})
    topic = world.create("t", (1, 2))
    leader, key = world.nodes[1], (topic, 0)
    waiting = FetchRequest(5, -1, -1, 15, ((key, 0, -1, -1),), 60_000 * MS)
    world.feed(1, -7, FetchRequest.kind, waiting)
    effects: list[tuple[Any, ...]] = []
    # Of all that its host kept for it meanwhile, the first is neither a tick nor the client's.
    late = FetchRequest(9, 2, world.nodes[2].situation.broker_epoch, 15, (), 0)
    leader.handle(world.now + 2 * LEASE_NS, 2, FetchRequest.kind, late, effects)
    assert (CLOSE, -7) in effects
    assert not any(effect[0] == SEND and effect[1] == -7 for effect in effects)


def test_k04_a_broker_whose_lease_was_over_registers_anew() -> None:
    world = ready()
    before = world.nodes[1].situation.broker_epoch
    cut_off(world, 1)
    world.until(lambda: states(world, 1)[-1] == BrokerState.FENCED)
    world.blocked.clear()
    world.until(lambda: world.is_ready(1))
    assert world.nodes[1].situation.broker_epoch > before


@pytest.mark.parametrize("rule_on", [True, False])
def test_k06_a_fenced_broker_answers_no_client(*, rule_on: bool) -> None:
    world = ready(
        rules=without(*() if rule_on else ("fenced_serves_nobody",)), settings={"level": 2}
    )
    topic = world.create("t", (1, 2, 3))
    cut_off(world, 1)
    world.until(lambda: states(world, 1)[-1] == BrokerState.FENCED)
    asked = [
        world.ask(1, MetadataRequest(1, None)),
        world.ask(1, ApiVersionsRequest(2)),
        world.consume((topic, 0), 0, broker=1),
    ]
    assert all((one == CLOSED) is rule_on for one in asked)


def test_k06_who_waits_for_a_broker_that_is_fenced_hears_nothing_from_it() -> None:
    world = ready()
    topic = world.create("t", (1, 2, 3))
    waiting = world.send(1, FetchRequest(5, -1, -1, 15, (((topic, 0), 0, -1, -1),), 60_000 * MS))
    world.run(50 * MS)
    cut_off(world, 1)
    world.until(lambda: states(world, 1)[-1] == BrokerState.FENCED)
    assert world.until(lambda: world.answers.get(waiting), limit_ns=10 * MS) == CLOSED


def test_a_fenced_broker_still_serves_the_followers_of_what_it_leads() -> None:
    world = ready()
    topic = world.create("t", (1, 2, 3))
    world.cut([1], world.voters)
    world.cut([2, 3], world.voters)
    world.until(lambda: states(world, 1)[-1] == BrokerState.FENCED)
    before = len(world.sent)
    world.run(1_000 * MS)
    fetched = [m for s, t, m in world.sent[before:] if (s, t) == (1, 2) and m.kind == 51]
    assert fetched
    assert all(part.error == 0 for one in fetched for part in one.partitions)
    assert world.leader((topic, 0)) == 1


def test_k03_a_second_process_with_a_live_id_ends() -> None:
    world = ready(brokers=2)
    first = world.nodes[2]
    # The second process stands at the same place in the network: the first one's requests are fed
    # by hand, so that its lease goes on.
    world.kill(2)
    world.wipe(2)
    world.start(2)
    while 2 not in world.exits:
        world.run(100 * MS)
        heartbeat = BrokerHeartbeatRequest(
            1_000_000 + world.now, 2, first.situation.broker_epoch, 10_000, 3, 3
        )
        world.feed(1000, -1, heartbeat.kind, heartbeat)
    assert world.exits[2] == "registration refused: DUPLICATE_BROKER_REGISTRATION"
    refused = [m for _, t, m in world.sent if t == 2 and m.kind == 21 and m.error == 101]
    assert len(refused) == 1


def test_k03_a_broker_that_does_not_support_the_level_ends() -> None:
    world = World(broker_settings={3: {"level_max": 2}})
    world.until(lambda: 3 in world.exits)
    assert world.exits[3] == "registration refused: UNSUPPORTED_VERSION"


def test_a_broker_that_nobody_registers_ends() -> None:
    world = World(brokers=1)
    world.kill(1000)
    world.until(lambda: 1 in world.exits)
    assert "no controller registered it in time" in world.exits[1]


def test_a_restarted_broker_waits_for_the_end_of_its_old_session() -> None:
    world = ready()
    old = world.nodes[1].situation.broker_epoch
    world.kill(1)
    world.start(1)
    world.until(lambda: world.is_ready(1))
    assert world.nodes[1].situation.broker_epoch > old


def test_k05_a_broker_whose_epoch_is_refused_fences_itself_and_registers_anew() -> None:
    world = ready()
    world.catches = lambda _s, t, m: t == 1 and isinstance(m, BrokerHeartbeatResponse)
    world.until(lambda: world.held)
    (source, _, answer), *_ = world.held
    world.held.clear()
    world.catches = None
    refused = copied(answer, error=77)
    world.feed(1, source, refused.kind, refused)
    assert states(world, 1)[-1] == BrokerState.FENCED
    world.until(lambda: world.is_ready(1))


def test_k09_a_broker_leaves_once_it_leads_nothing_and_ends_cleanly() -> None:
    world = ready()
    topic = world.create("t", (1, 2, 3))
    key = (topic, 0)
    assert world.produce(key, batch("a")) == (0, 0)
    world.stop(1)
    world.until(lambda: 1 in world.exits)
    assert world.exits[1] == ""
    assert states(world, 1)[-2:] == [
        BrokerState.PENDING_CONTROLLED_SHUTDOWN,
        BrokerState.NOT_RUNNING,
    ]
    assert world.leader(key) != 1
    assert world.disk(1).files[CLEAN_STOP] is True
    assert dict(world.disk(1).files[HIGH_WATERMARKS])[key] == 1


def test_k09_after_a_clean_stop_nothing_is_recovered() -> None:
    world = ready()
    world.create("t", (1, 2, 3))
    world.stop(1)
    world.until(lambda: 1 in world.exits)
    world.start(1)
    before = len(states(world, 1))
    world.until(lambda: world.is_ready(1))
    assert BrokerState.RECOVERING_FROM_UNCLEAN_SHUTDOWN not in states(world, 1)[before:]
    assert world.disk(1).files[CLEAN_STOP] is False


@pytest.mark.parametrize("was_registered", [True, False])
def test_k07_a_broker_that_is_not_running_ends_at_once(*, was_registered: bool) -> None:
    world = ready() if was_registered else World()
    if was_registered:
        cut_off(world, 1)
        world.until(lambda: states(world, 1)[-1] == BrokerState.FENCED)
    else:
        cut_off(world, 1)
        world.run(100 * MS)
        assert states(world, 1)[-1] == BrokerState.REGISTERING
    world.stop(1)
    world.until(lambda: 1 in world.exits, limit_ns=100 * MS)
    assert world.exits[1] == ""
    assert world.disk(1).files[CLEAN_STOP] is True


def test_k09_a_leaving_broker_that_loses_the_controller_ends_with_its_lease() -> None:
    world = ready()
    world.create("t", (1, 2, 3))
    cut_off(world, 1)
    world.stop(1)
    world.until(lambda: 1 in world.exits, limit_ns=LEASE_NS + TICKS_NS)
    assert world.exits[1] == ""


def test_a_change_of_controllers_costs_no_broker_its_registration() -> None:
    world = ready(controllers=3)
    epochs = [world.nodes[one].situation.broker_epoch for one in (1, 2, 3)]
    before = len(world.noted("broker-state"))
    world.kill(world.nodes[1].situation.controller_id)
    world.run(4_000 * MS)
    assert world.noted("broker-state")[before:] == []
    assert [world.nodes[one].situation.broker_epoch for one in (1, 2, 3)] == epochs
