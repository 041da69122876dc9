"""Who is in sync: shrinking, growing, proposals and their answers (KIP-497, KIP-841, KIP-903)."""

from typing import Any

import pytest
from broker_world import World, batch, copied, ready, without

from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.control import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterReassignmentsRequest,
)
from fencepost.clusters.reference.nodes.messages.data import FetchRequest


def alters(_source: int, _target: int, message: Any) -> bool:
    return isinstance(message, AlterPartitionRequest)


def alone(**arguments: Any) -> tuple[World, PartitionKey]:
    """Brokers 1, 2 and 3 have the partition; only its leader 1 is in the ISR, 2 and 3 are down."""
    world = ready(**arguments)
    key = (world.create("t", (1, 2, 3)), 0)
    assert world.produce(key, batch("a")) == (0, 0)
    world.kill(2)
    world.kill(3)
    world.until(lambda: world.partition(key).isr == (1,))
    return world, key


def with_proposal(**arguments: Any) -> tuple[World, PartitionKey, AlterPartitionRequest]:
    """Broker 2 is back, and the proposal to take it in is held back."""
    world, key = alone(**arguments)
    world.catches = alters
    world.start(2)
    world.until(lambda: world.held)
    return world, key, world.held[0][2]


def answer(request: AlterPartitionRequest, error: Error) -> AlterPartitionResponse:
    items = tuple(
        AlterPartitionItem(one.key, -1, -1, (), (), int(error), -1) for one in request.items
    )
    return AlterPartitionResponse(request.correlation, 0, items)


def test_a_follower_that_lags_leaves_the_isr_and_comes_back() -> None:
    world = ready(settings={"lease_timeout_ns": 60_000 * MS})
    key = (world.create("t", (1, 2, 3)), 0)
    world.catches = lambda s, _t, m: s == 3 and isinstance(m, FetchRequest)
    world.run(600 * MS)
    assert world.produce(key, batch("a"), acks=1) == (0, 0)
    world.until(lambda: world.partition(key).isr == (1, 2), limit_ns=2_000 * MS)
    assert world.log(1, key).high_watermark == 1
    world.release()
    world.until(lambda: world.partition(key).isr == (1, 2, 3))


def test_a_follower_that_has_everything_stays_in_the_isr_however_long_it_is_idle() -> None:
    world = ready(settings={"lease_timeout_ns": 60_000 * MS})
    key = (world.create("t", (1, 2, 3)), 0)
    world.produce(key, batch("a"))
    world.run(600 * MS)
    world.catches = lambda s, _t, m: s == 3 and isinstance(m, FetchRequest)
    world.run(5_000 * MS)
    assert world.partition(key).isr == (1, 2, 3)


@pytest.mark.parametrize("rule_on", [True, False])
def test_the_high_watermark_waits_for_proposed_members_too(*, rule_on: bool) -> None:
    rules = without(*() if rule_on else ("high_watermark_of_maximal_isr",))
    world, key, _ = with_proposal(rules=rules)
    world.kill(2)
    assert world.produce(key, batch("b"), acks=1) == (0, 1)
    assert world.log(1, key).high_watermark == (1 if rule_on else 2)


@pytest.mark.parametrize("rule_on", [True, False])
def test_a_follower_joins_once_it_has_reached_the_high_watermark(*, rule_on: bool) -> None:
    world, key = alone(rules=without(*() if rule_on else ("growth_needs_high_watermark",)))
    for value in "bcde":
        world.produce(key, batch(value))
    proposed_at: list[int] = []
    leader = world.nodes[1].replicas.leaders[key]

    def seen(_source: int, _target: int, message: Any) -> bool:
        if isinstance(message, AlterPartitionRequest):
            proposed_at.append(leader.remotes[2].offset)
        return False

    world.catches = seen
    world.start(2)
    world.until(lambda: proposed_at)
    assert proposed_at == [5]
    leader.remotes[2].offset, leader.proposed, leader.remotes[2].is_member = 4, None, False
    assert (leader.wanted_isr(leader.remotes[2]) is None) is rule_on


@pytest.mark.parametrize("rule_on", [True, False])
def test_a_follower_joins_once_it_has_reached_the_start_of_the_leader_epoch(
    *, rule_on: bool
) -> None:
    """KAFKA-7128: the high watermark of a new leader may still be behind."""
    rules = without(*() if rule_on else ("growth_needs_epoch_start",))
    world = ready(rules=rules, settings={"fetch_records_max": 1})
    key = (world.create("t", (1, 2, 3)), 0)
    for value in "abc":
        world.produce(key, batch(value))
    leader = world.nodes[1].replicas.leaders[key]
    log, remote = leader.log, leader.remotes[2]
    # A leader elected a moment ago: nobody has told it how far its log is committed.
    leader.committed((1,), leader.partition_epoch)
    log.high_watermark, leader.epoch_start = 0, 3
    remote.offset = 1
    assert (leader.wanted_isr(remote) is None) is rule_on
    remote.offset = 3
    assert leader.wanted_isr(remote) == (1, 2)


@pytest.mark.parametrize("change", ["fenced", "in_controlled_shutdown", "gone"])
def test_who_is_fenced_or_leaving_or_gone_is_not_proposed(change: str) -> None:
    world, key = alone()
    node = world.nodes[1]
    leader = node.replicas.leaders[key]
    remote = leader.remotes[2]
    remote.offset = leader.log.end
    known = copied(node.image.brokers[2], fenced=False, in_controlled_shutdown=False)
    remote.broker_epoch = known.broker_epoch
    node.image.brokers[2] = known
    assert leader.wanted_isr(remote) == (1, 2)
    if change == "gone":
        del node.image.brokers[2]
    else:
        node.image.brokers[2] = copied(known, **{change: True})
    assert leader.wanted_isr(remote) is None


@pytest.mark.parametrize(("level", "version"), [(1, 14), (2, 15), (3, 15)])
def test_e02_followers_send_their_broker_epoch_from_level_2_on(level: int, version: int) -> None:
    world = ready(settings={"level": level})
    key = (world.create("t", (1, 2, 3)), 0)
    world.run(600 * MS)
    epoch = world.nodes[2].situation.broker_epoch
    last = [m for s, _, m in world.sent if s == 2 and isinstance(m, FetchRequest)][-1]
    assert (last.version, last.replica_epoch) == (version, epoch if level > 1 else -1)
    assert world.nodes[1].replicas.leaders[key].fetched_epoch(2) == last.replica_epoch


@pytest.mark.rule("epoch_from_fetch")
@pytest.mark.parametrize("rule_on", [True, False])
def test_e03_a_follower_is_proposed_only_under_the_epoch_of_its_fetches(*, rule_on: bool) -> None:
    world, key = alone(rules=without(*() if rule_on else ("epoch_from_fetch",)))
    node = world.nodes[1]
    leader = node.replicas.leaders[key]
    remote = leader.remotes[2]
    remote.offset = leader.log.end
    known = copied(node.image.brokers[2], fenced=False)
    node.image.brokers[2] = known
    # It fetched before its restart; the metadata knows of its registration after it.
    remote.broker_epoch = known.broker_epoch - 1
    if rule_on:
        assert leader.wanted_isr(remote) is None
    else:
        assert leader.wanted_isr(remote) == (1, 2)
        assert leader.epochs_of((1, 2))[1] == known.broker_epoch


def test_e03_a_follower_whose_fetches_name_no_epoch_is_not_proposed() -> None:
    world, key = alone()
    node = world.nodes[1]
    leader = node.replicas.leaders[key]
    remote = leader.remotes[2]
    remote.offset, remote.broker_epoch = leader.log.end, -1
    node.image.brokers[2] = copied(node.image.brokers[2], fenced=False)
    assert leader.wanted_isr(remote) is None


def test_a_late_fetch_from_before_a_restart_counts_for_nothing() -> None:
    """KAFKA-15221."""
    world = ready()
    key = (world.create("t", (1, 2, 3)), 0)
    world.produce(key, batch("a"))
    world.run(600 * MS)
    remote = world.nodes[1].replicas.leaders[key].remotes[2]
    late = FetchRequest(99, 2, remote.broker_epoch, 15, ((key, 1, 0, 0),), 0)
    remote.broker_epoch, remote.offset = remote.broker_epoch + 5, 0
    world.feed(1, 2, late.kind, late)
    assert remote.offset == 0
    assert world.sent[-1][2].partitions[0].error == Error.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(("level", "version"), [(1, 2), (2, 3)])
def test_e03_proposals_name_the_epochs_of_their_members(level: int, version: int) -> None:
    world, _, request = with_proposal(settings={"level": level})
    epochs = tuple(world.nodes[one].situation.broker_epoch for one in (1, 2))
    assert request.version == version
    assert request.items[0].isr == (1, 2)
    assert request.items[0].isr_epochs == (epochs if level > 1 else ())


@pytest.mark.parametrize("rule_on", [True, False])
def test_e05_a_proposal_of_an_ineligible_replica_is_dropped(*, rule_on: bool) -> None:
    rules = without(*() if rule_on else ("refused_proposal_dropped",))
    world, key, request = with_proposal(rules=rules)
    world.kill(2)
    leader = world.nodes[1].replicas.leaders[key]
    refused = answer(request, Error.INELIGIBLE_REPLICA)
    world.feed(1, 1000, refused.kind, refused)
    assert (leader.proposed is None) is rule_on
    assert leader.isr == (1,)


@pytest.mark.parametrize(
    "error",
    [
        Error.INVALID_UPDATE_VERSION,
        Error.FENCED_LEADER_EPOCH,
        Error.UNKNOWN_TOPIC_ID,
        Error.INVALID_REQUEST,
        Error.NEW_LEADER_ELECTED,
    ],
)
def test_after_other_refusals_a_leader_waits_for_newer_metadata(error: Error) -> None:
    world, key, request = with_proposal()
    leader = world.nodes[1].replicas.leaders[key]
    refused = answer(request, error)
    world.feed(1, 1000, refused.kind, refused)
    world.run(200 * MS)
    assert leader.proposed == (1, 2)
    assert [m for _, _, m in world.held if m.correlation != request.correlation] == []


def test_an_accepted_proposal_is_committed_and_an_older_answer_is_not() -> None:
    world, key, request = with_proposal()
    leader = world.nodes[1].replicas.leaders[key]
    epoch = leader.partition_epoch
    item = request.items[0]
    good = copied(item, partition_epoch=epoch + 1, leader_id=1)
    old = copied(answer(request, Error.NONE), items=(copied(good, leader_epoch=-1),))
    world.feed(1, 1000, old.kind, old)
    assert (leader.isr, leader.partition_epoch) == ((1,), epoch)
    leader.propose(None)
    world.run(1_500 * MS)
    again = [m for _, _, m in world.held][-1]
    assert again.correlation > request.correlation
    taken = AlterPartitionResponse(again.correlation, 0, (good,))
    world.feed(1, 1000, taken.kind, taken)
    assert (leader.isr, leader.partition_epoch, leader.proposed) == ((1, 2), epoch + 1, None)


def test_a_proposal_without_an_answer_is_sent_again_word_for_word() -> None:
    world, _, request = with_proposal()
    world.kill(2)
    world.until(lambda: len(world.held) > 1)
    again = world.held[1][2]
    assert again == copied(request, correlation=again.correlation)
    assert again.correlation != request.correlation


@pytest.mark.parametrize("how", ["not the controller", "unreachable"])
def test_a_proposal_that_met_no_controller_is_sent_again_soon(how: str) -> None:
    world, _, request = with_proposal()
    if how == "unreachable":
        world.feed(1, 1000, 3, request)
    else:
        amiss = AlterPartitionResponse(request.correlation, int(Error.NOT_CONTROLLER), ())
        world.feed(1, 1000, amiss.kind, amiss)
    world.run(50 * MS)
    assert world.held[1][2].items == request.items


def test_a_proposal_under_an_old_broker_epoch_is_made_anew() -> None:
    world, key, request = with_proposal()
    stale = AlterPartitionResponse(request.correlation, int(Error.STALE_BROKER_EPOCH), ())
    world.catches = lambda s, _t, m: s == 1 and m.kind in {22, 24}
    world.nodes[1].situation.broker_epoch += 1
    world.feed(1, 1000, stale.kind, stale)
    world.run(50 * MS)
    again = next(m for _, _, m in world.held[1:] if m.kind == request.kind)
    assert again.broker_epoch == request.broker_epoch + 1
    assert [one.key for one in again.items] == [key]


def test_one_request_is_under_way_and_the_next_has_all_that_waits() -> None:
    world = ready()
    topic = world.create("t", (1, 2, 3), (1, 2, 3), (1, 2, 3))
    keys = [(topic, number) for number in range(3)]
    for key in keys:
        world.produce(key, batch("a"))
    world.run(600 * MS)
    world.kill(2)
    world.until(lambda: all(2 not in world.partition(key).isr for key in keys))
    world.catches = alters
    world.start(2)
    world.until(lambda: world.held)
    world.run(300 * MS)
    assert len(world.held) == 1
    world.release()
    world.until(lambda: all(2 in world.partition(key).isr for key in keys))
    requests = {m.correlation: m for s, _, m in world.sent if alters(s, 0, m) and s == 1}
    assert sum(len(one.items) for one in list(requests.values())[-2:]) == 3


def stale_epoch_race(level: int) -> tuple[World, PartitionKey]:
    """KIP-903's six steps: the proposal to take broker 2 in arrives after its disk was replaced."""
    settings = {"level": level, "request_timeout_ns": 60_000 * MS}
    world, key, _ = with_proposal(controllers=3, settings=settings)
    world.kill(2)
    world.until(lambda: world.partition(key).isr == (1,) and world.nodes[1].image.brokers[2].fenced)
    world.wipe(2)
    world.cut([2], [1])
    world.start(2)
    world.until(lambda: world.is_ready(2))
    world.release()
    world.run(200 * MS)
    return world, key


@pytest.mark.parametrize(("level", "joins"), [(1, True), (2, False), (3, False)])
def test_e08_the_documents_race_is_open_below_level_2_only(level: int, *, joins: bool) -> None:
    world, key = stale_epoch_race(level)
    assert (world.partition(key).isr == (1, 2)) is joins
    world.kill(1)
    world.blocked.clear()
    if joins:
        world.until(lambda: world.leader(key) == 2)
        assert world.log(2, key).end == 0
    else:
        world.run(5_000 * MS)
        assert world.leader(key) == -1


def test_a_leader_is_replaced_when_a_partition_moves_to_other_brokers() -> None:
    world = ready(brokers=4)
    key = (world.create("t", (1, 2)), 0)
    for value in "abc":
        world.produce(key, batch(value))
    moved = world.ask(1, AlterReassignmentsRequest(1, (("t", 0, (3, 4)),)))
    assert moved.error == 0
    world.until(lambda: world.partition(key).replicas == (3, 4))
    world.until(lambda: all(key not in world.disk(one).topics for one in (1, 2)))
    assert world.values(3, key) == world.values(4, key) == ["a", "b", "c"]
    assert world.produce(key, batch("d")) == (0, 3)
