"""What brokers show of the metadata: the lowest acknowledged offset, and when a read waits."""

from typing import Any

import pytest
from broker_world import World, copied, ready, without
from stage import CLOSED

from fencepost.clusters.node_port.storage import MetadataBatch
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.client import (
    ApiVersionsRequest,
    DescribeConfigsRequest,
    FindCoordinatorRequest,
    ListGroupsRequest,
    MetadataRequest,
)
from fencepost.clusters.reference.nodes.messages.control import (
    AlterConfigsRequest,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    ListReassignmentsRequest,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from fencepost.clusters.reference.nodes.messages.data import FetchRequest
from fencepost.clusters.reference.nodes.records import ConfigRecord

SETTING = DescribeConfigsRequest(1, ((2, "t", ("retention.ms",)),))


def retention(world: World, broker: int) -> str:
    """What a broker says that the topic has."""
    return str(world.ask(broker, SETTING).resources[0][3][0][1])


def altered(value: str) -> AlterConfigsRequest:
    return AlterConfigsRequest(1, ((2, "t", "retention.ms", value),))


def metadata_to(broker: int) -> Any:
    """Catches what this broker fetches of the metadata."""
    return lambda _s, t, m: t == broker and m.kind == 17


def lagging(rules: tuple[str, ...] = (), **settings: Any) -> World:
    """Brokers 1 and 2 have applied a change of the topic, broker 3 has not; nobody was told yet."""
    world = ready(settings={"noop_interval_ns": 0, **settings}, rules=without(*rules))
    world.create("t", (1, 2, 3))
    world.run(500 * MS)
    world.catches = metadata_to(3)
    world.run(200 * MS)
    world.send(1, altered("7"))
    world.until(lambda: all(applied(world, one) == "7" for one in (1, 2)))
    return world


def applied(world: World, broker: int) -> str | None:
    found = world.nodes[broker].image.setting("t", "retention.ms")
    return None if found is None else str(found)


@pytest.mark.parametrize("rule_on", [True, False])
def test_v02_a_broker_hides_what_another_one_does_not_know(*, rule_on: bool) -> None:
    names = () if rule_on else ("hidden_above_lowest",)
    world = lagging((*names, "read_waits"))
    assert retention(world, 1) == ("604800000" if rule_on else "7")
    world.release()
    world.run(300 * MS)
    assert [retention(world, one) for one in (1, 2, 3)] == ["7"] * 3


def test_v02_below_level_3_nothing_is_hidden() -> None:
    world = lagging(level=2)
    assert retention(world, 1) == "7"


@pytest.mark.parametrize("rule_on", [True, False])
def test_v03_a_read_waits_for_what_its_broker_had_applied(*, rule_on: bool) -> None:
    """Broker 1 hears of the lowest offset and shows it; broker 2 has not heard yet."""
    world = lagging(() if rule_on else ("read_waits",))
    world.catches = lambda _s, t, m: t == 2 and isinstance(m, BrokerHeartbeatResponse)
    for source, target, message in world.held:
        world.feed(target, source, message.kind, message)
    world.held.clear()
    world.until(lambda: world.nodes[1].visible.setting("t", "retention.ms") == "7")
    assert retention(world, 1) == "7"
    reading = world.send(2, SETTING)
    world.run(100 * MS)
    if rule_on:
        assert reading not in world.answers
        world.release()
        world.until(lambda: reading in world.answers)
        assert world.answers[reading].resources[0][3][0][1] == "7"
    else:
        assert world.answers[reading].resources[0][3][0][1] == "604800000"


def test_v03_a_list_of_groups_waits_as_other_reads_do() -> None:
    """Its broker may have applied that it coordinates no groups any more, and another not yet."""
    world = lagging()
    listing = world.send(1, ListGroupsRequest(1))
    world.run(100 * MS)
    assert listing not in world.answers
    world.release()
    world.until(lambda: listing in world.answers)
    assert world.answers[listing].error == Error.NONE


def test_v03_a_coordinator_is_named_as_other_brokers_may_name_it() -> None:
    world = lagging()
    finding = world.send(1, FindCoordinatorRequest(1, ("g",)))
    world.run(100 * MS)
    assert finding not in world.answers
    world.release()
    world.until(lambda: finding in world.answers)
    (named,) = {world.ask(one, FindCoordinatorRequest(1, ("g",))).groups for one in (1, 2, 3)}
    assert named[0][1] == Error.NONE


@pytest.mark.parametrize("rule_on", [True, False])
def test_v03_a_move_is_listed_once_every_broker_knows_of_it(*, rule_on: bool) -> None:
    world = lagging(() if rule_on else ("write_waits",))
    listing = world.send(1, ListReassignmentsRequest(1, None))
    world.run(100 * MS)
    assert (listing in world.answers) is not rule_on
    world.release()
    world.until(lambda: listing in world.answers)
    assert world.answers[listing].error == Error.NONE


def test_v03_an_acknowledged_write_is_in_every_later_read() -> None:
    world = ready()
    world.create("t", (1, 2, 3))
    for value in ("5", "6"):
        answer = world.ask(2, altered(value))
        assert answer.resources[0][2] == 0
        assert [retention(world, one) for one in (1, 2, 3)] == [value] * 3


def test_v03_a_read_that_waits_for_too_long_is_not_answered() -> None:
    world = lagging(request_timeout_ns=500 * MS)
    assert world.ask(1, SETTING) == CLOSED


def test_v03_a_dead_broker_holds_up_no_read_while_nothing_is_said() -> None:
    """What an idle controller writes is hidden until that broker is fenced; reads go on."""
    world = ready(settings={"noop_interval_ns": 100 * MS})
    world.create("t", (1, 2, 3))
    world.run(500 * MS)
    world.kill(3)
    world.run(500 * MS)
    assert not world.nodes[1].image.brokers[3].fenced
    assert world.nodes[1].visible.offset < world.nodes[1].image.offset
    began = world.now
    assert retention(world, 1) == "604800000"
    assert world.now - began < 20 * MS


def test_reads_wait_milliseconds_and_not_heartbeats() -> None:
    world = ready(settings={"heartbeat_interval_ns": 1_000 * MS})
    world.create("t", (1, 2, 3))
    began = world.now
    world.ask(1, altered("5"))
    assert retention(world, 2) == "5"
    assert world.now - began < 200 * MS


def test_v01_a_broker_acknowledges_at_once_what_it_has_applied() -> None:
    world = ready(settings={"heartbeat_interval_ns": 1_000 * MS, "noop_interval_ns": 0})
    world.create("t", (1, 2, 3))
    world.run(2_000 * MS)
    before = len(world.sent)

    def told() -> list[tuple[int, int]]:
        heartbeats = [
            one for one in world.sent[before:] if isinstance(one[2], BrokerHeartbeatRequest)
        ]
        return sorted((source, one.current_metadata_offset) for source, _, one in heartbeats)

    world.send(1, altered("5"))
    world.run(30 * MS)
    end = world.nodes[1].image.offset
    assert told() == [(1, end), (2, end), (3, end)]
    # Having nothing more to say, they go back to their interval.
    world.run(200 * MS)
    assert len(told()) <= 2 * 3


def last_heartbeat(world: World, broker: int) -> BrokerHeartbeatRequest:
    sent = [m for s, _, m in world.sent if s == broker and isinstance(m, BrokerHeartbeatRequest)]
    return sent[-1]


def heartbeat(world: World, broker: int, lowest: int) -> None:
    """The controller tells a broker the lowest acknowledged offset."""
    response = BrokerHeartbeatResponse(
        last_heartbeat(world, broker).correlation,
        error=0,
        active_controller_id=1000,
        next_state=3,
        is_caught_up=True,
        lease_duration_ms=60_000,
        lowest_acknowledged_offset=lowest,
    )
    world.feed(broker, 1000, response.kind, response)


def commit(world: World, broker: int, *values: str) -> None:
    """More of the metadata log is committed, as this broker knows."""
    found: list[tuple[Any, ...]] = []
    node = world.nodes[broker]
    log = node.registrar.observer.log
    for value in values:
        record = ConfigRecord(2, "t", "retention.ms", value)
        log.append(MetadataBatch(log.end, log.last_epoch, (record,)), found)
    log.commit(log.end, found)
    node.registrar.moved(world.now, found)
    world.perform(broker, found)


def test_v06_the_documents_trace_of_two_heartbeats() -> None:
    """A has 10 and is told 8, B has 8 and is told 10: no read of one after the other goes back."""
    world = ready(brokers=2, settings={"noop_interval_ns": 0})
    world.create("t", (1, 2))
    world.run(500 * MS)
    start = world.nodes[1].image.offset
    world.cut(world.voters, [1, 2])
    commit(world, 1, *"0123456789")
    commit(world, 2, *"01234567")
    heartbeat(world, 1, start + 8)
    answered = last_heartbeat(world, 1).correlation
    reading = world.send(1, SETTING)
    world.run(20 * MS)
    assert world.nodes[1].visible.offset == start + 8
    assert reading not in world.answers
    commit(world, 2, *"89")
    world.run(20 * MS)
    heartbeat(world, 2, start + 10)
    assert retention(world, 2) == "9"
    world.until(lambda: last_heartbeat(world, 1).correlation > answered)
    heartbeat(world, 1, start + 10)
    world.until(lambda: reading in world.answers)
    assert world.answers[reading].resources[0][3][0][1] == "9"


def test_what_is_shown_never_goes_back_for_an_older_answer() -> None:
    world = ready(settings={"noop_interval_ns": 0})
    world.create("t", (1, 2, 3))
    world.run(500 * MS)
    before = world.nodes[1].visible.offset
    assert before == world.nodes[1].image.offset
    world.nodes[1].registrar.told_lowest(before - 2, [])
    assert world.nodes[1].visible.offset == before


def levels(world: World, *brokers: int) -> list[int]:
    return [world.ask(one, ApiVersionsRequest(1)).level for one in brokers]


@pytest.mark.parametrize("rule_on", [True, False])
def test_v05_the_apis_of_a_new_level_are_offered_once_all_have_applied_it(*, rule_on: bool) -> None:
    names = () if rule_on else ("renegotiates_late",)
    world = ready(settings={"level": 2, "noop_interval_ns": 0}, rules=without(*names, "read_waits"))
    world.run(300 * MS)
    client = world.send(1, MetadataRequest(1, None))
    world.until(lambda: client in world.answers)
    del world.answers[client]
    world.catches = metadata_to(3)
    world.run(200 * MS)
    world.send(2, UpdateFeaturesRequest(1, (("metadata.version", 3),)))
    world.until(lambda: world.nodes[1].situation.level == 3)
    world.run(50 * MS)
    assert (world.answers.get(client) == CLOSED) is not rule_on
    assert levels(world, 1) == [2 if rule_on else 3]
    world.release()
    world.run(300 * MS)
    assert world.answers[client] == CLOSED
    assert levels(world, 1, 2, 3) == [3, 3, 3]


def test_v05_who_raised_the_level_is_told_before_its_connection_is_closed() -> None:
    for level in (2, 3):
        world = ready(settings={"level": level - 1})
        world.catches = lambda _s, t, m: t == 2 and isinstance(m, UpdateFeaturesResponse)
        asking = world.send(2, UpdateFeaturesRequest(5, (("metadata.version", level),)))
        world.until(lambda world=world, level=level: levels(world, 2) == [level])
        world.until(lambda world=world: world.held)
        world.release()
        world.until(lambda world=world, asking=asking: asking in world.answers)
        assert world.answers[asking] != CLOSED
        assert (world.answers[asking].correlation, world.answers[asking].error) == (5, 0)


def test_v05_alone_a_level_that_is_offered_early_reaches_no_client() -> None:
    """Who asks for APIs waits as any reader does: until all have applied what its broker has."""
    world = ready(settings={"level": 2, "noop_interval_ns": 0}, rules=without("renegotiates_late"))
    world.run(300 * MS)
    world.catches = metadata_to(3)
    world.run(200 * MS)
    world.send(2, UpdateFeaturesRequest(1, (("metadata.version", 3),)))
    world.until(lambda: world.nodes[1].situation.level == 3)
    asked = world.send(1, ApiVersionsRequest(1))
    world.run(200 * MS)
    assert asked not in world.answers
    world.release()
    world.until(lambda: asked in world.answers)
    assert world.nodes[3].situation.level == 3


def raised(world: World) -> int:
    """Of level 3 broker 1 knows, and not yet that all have applied it; a broker that asked it."""
    world.run(300 * MS)
    asking = world.send(1, ApiVersionsRequest(1, by_node=True))
    world.until(lambda: asking in world.answers)
    assert world.answers[asking].level == 1
    world.catches = metadata_to(3)
    world.run(200 * MS)
    world.send(2, UpdateFeaturesRequest(1, (("metadata.version", 3),)))
    world.until(lambda: world.nodes[1].situation.level == 3)
    del world.answers[asking]
    world.run(700 * MS)  # longer than a fetch is parked
    return asking


def test_v05_a_broker_reconnects_to_another_one_once_all_have_applied_the_level() -> None:
    world = ready(settings={"level": 1, "noop_interval_ns": 0})
    asking = raised(world)
    assert asking not in world.answers
    again = world.send(1, ApiVersionsRequest(2, by_node=True))
    # Other brokers are no readers: they are told at once, and as much as clients may use.
    assert world.until(lambda: world.answers.get(again), limit_ns=10 * MS).level == 1
    world.release()
    world.until(lambda: world.answers.get(asking) == CLOSED)
    assert world.ask(1, ApiVersionsRequest(3, by_node=True)).level == 3


@pytest.mark.parametrize("rule_on", [True, False])
def test_v05_a_follower_names_its_epoch_once_all_have_applied_the_level(*, rule_on: bool) -> None:
    rules = without(*() if rule_on else ("renegotiates_late",))
    world = ready(settings={"level": 1, "noop_interval_ns": 0}, rules=rules)
    world.create("t", (2, 1, 3))
    raised(world)
    assert last_fetch(world, 1).version == (14 if rule_on else 15)
    world.release()
    world.until(lambda: last_fetch(world, 1).version == 15)
    assert last_fetch(world, 1).replica_epoch == world.nodes[1].situation.broker_epoch


def last_fetch(world: World, follower: int) -> FetchRequest:
    sent = (m for source, _, m in reversed(world.sent) if source == follower)
    found = (m for m in sent if isinstance(m, FetchRequest))
    return next(found)


def test_a_fenced_broker_tells_other_brokers_what_it_offers() -> None:
    world = ready()
    world.cut(world.voters, [1])
    world.until(lambda: world.ask(1, ApiVersionsRequest(1)) == CLOSED)
    assert world.ask(1, ApiVersionsRequest(2, by_node=True)).level == 3


@pytest.mark.parametrize("level", [2, 3])
def test_a_broker_that_takes_its_leave_shows_no_metadata_any_more(level: int) -> None:
    """It may have been let go, and the level raised to 3 since, without its hearing of either."""
    world = ready(settings={"level": level, "noop_interval_ns": 0})
    world.run(300 * MS)
    world.cut(world.voters, [1])
    world.stop(1)
    world.run(50 * MS)
    assert world.ask(1, MetadataRequest(1, None)) == CLOSED
    assert world.ask(1, ApiVersionsRequest(1)) == CLOSED


def test_a_snapshot_is_shown_once_its_end_is_acknowledged_by_all() -> None:
    world = ready(settings={"metadata_snapshot_records": 20, "noop_interval_ns": 0})
    world.create("t", (1, 2, 3))
    for value in range(30):
        world.ask(1, altered(str(value)))
    world.kill(3)
    world.wipe(3)
    world.start(3)
    world.until(world.is_ready)
    world.run(300 * MS)
    assert world.nodes[3].registrar.observer.log.start > 0
    assert retention(world, 3) == "29"
    assert copied(world.nodes[3].visible, epoch=0) == copied(world.nodes[1].visible, epoch=0)
