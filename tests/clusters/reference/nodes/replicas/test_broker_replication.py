"""Records on their way: produced, followed, committed, read, and what each rule is good for."""

import pytest
from broker_world import World, batch, ready, without
from stage import CLOSED

from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.client import MetadataRequest
from fencepost.clusters.reference.nodes.messages.control import (
    AllocateProducerIdsRequest,
    DeleteTopicsRequest,
)
from fencepost.clusters.reference.nodes.messages.data import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    OffsetsForLeaderEpochRequest,
    ProduceRequest,
)
from fencepost.clusters.reference.nodes.rules import Rules

NONE = (0, 0)


def with_topic(*replicas: int, **arguments: object) -> tuple[World, PartitionKey]:
    world = ready(**arguments)
    return world, (world.create("t", replicas or (1, 2, 3)), 0)


def fetches_from(*followers: int) -> object:
    """Catches the fetches of these followers."""
    return lambda s, _t, m: s in followers and isinstance(m, FetchRequest)


def test_an_acknowledged_record_is_on_every_member_of_the_isr() -> None:
    world, key = with_topic()
    assert world.produce(key, batch("a", "b")) == (0, 0)
    assert world.produce(key, batch("c")) == (0, 2)
    assert [world.values(broker, key) for broker in (1, 2, 3)] == [["a", "b", "c"]] * 3


@pytest.mark.parametrize("rule_on", [True, False])
def test_acks_all_waits_for_the_high_watermark(*, rule_on: bool) -> None:
    world, key = with_topic(rules=without(*() if rule_on else ("acks_all_waits",)))
    world.catches = fetches_from(3)
    world.run(600 * MS)
    client = world.send(1, ProduceRequest(1, -1, 60_000 * MS, ((key, batch("a")),)))
    world.run(100 * MS)
    assert (client in world.answers) is not rule_on


def test_acks_one_is_answered_by_the_leader_alone_and_acks_zero_not_at_all() -> None:
    world, key = with_topic()
    world.catches = fetches_from(2, 3)
    world.run(600 * MS)
    assert world.produce(key, batch("a"), acks=1) == (0, 0)
    silent = world.send(1, ProduceRequest(1, 0, 1_000 * MS, ((key, batch("b")),)))
    world.run(100 * MS)
    assert silent not in world.answers
    assert world.values(1, key) == ["a", "b"]


def test_a_produce_that_waits_for_too_long_is_told_so() -> None:
    world, key = with_topic(settings={"replica_lag_max_ns": 10_000 * MS})
    world.catches = fetches_from(2)
    world.run(600 * MS)
    assert world.produce(key, batch("a"))[0] == Error.REQUEST_TIMED_OUT


@pytest.mark.parametrize("rule_on", [True, False])
def test_an_isr_below_min_insync_replicas_takes_no_record(*, rule_on: bool) -> None:
    world = ready(rules=without(*() if rule_on else ("min_isr_kept",)))
    key = (world.create("t", (1, 2, 3), **{"min.insync.replicas": "2"}), 0)
    assert world.produce(key, batch("a")) == (0, 0)
    world.kill(2)
    world.kill(3)
    world.until(lambda: world.partition(key).isr == (1,))
    expected = Error.NOT_ENOUGH_REPLICAS if rule_on else Error.NONE
    assert world.produce(key, batch("b"))[0] == expected
    assert world.produce(key, batch("c"), acks=1)[0] == Error.NONE


@pytest.mark.parametrize("rule_on", [True, False])
def test_a_retried_record_is_there_once(*, rule_on: bool) -> None:
    world, key = with_topic(rules=without(*() if rule_on else ("sequence_checked",)))
    first = batch("a", producer=(7, 0, 0))
    assert world.produce(key, first) == (0, 0)
    assert world.produce(key, batch("b", producer=(7, 0, 1))) == (0, 1)
    assert world.produce(key, first) == (0, 0 if rule_on else 2)
    assert world.values(1, key) == (["a", "b"] if rule_on else ["a", "b", "a"])
    out_of_order = world.produce(key, batch("d", producer=(7, 0, 3)))[0]
    assert out_of_order == (Error.OUT_OF_ORDER_SEQUENCE_NUMBER if rule_on else Error.NONE)


def test_a_retry_is_known_to_the_next_leader_too_and_waits_like_the_first_try() -> None:
    world, key = with_topic()
    first = batch("a", producer=(7, 0, 0))
    assert world.produce(key, first) == (0, 0)
    world.kill(1)
    world.until(lambda: world.leader(key) not in (-1, 1))
    assert world.produce(key, first) == (0, 0)
    assert world.values(world.leader(key), key) == ["a"]


@pytest.mark.parametrize("rule_on", [True, False])
def test_consumers_read_below_the_high_watermark(*, rule_on: bool) -> None:
    rules = without(*() if rule_on else ("consumer_below_high_watermark",))
    world, key = with_topic(rules=rules)
    assert world.produce(key, batch("a")) == (0, 0)
    world.catches = fetches_from(2, 3)
    world.run(600 * MS)
    assert world.produce(key, batch("b"), acks=1) == (0, 1)
    seen = [value for one in world.consume(key, 0).batches for value in one.payload]
    assert seen == (["a"] if rule_on else ["a", "b"])
    listed = world.ask(1, ListOffsetsRequest(1, -1, ((key, -1, -1),)))
    assert listed.partitions[0][2] == (1 if rule_on else 2)
    followers_view = world.ask(1, ListOffsetsRequest(1, 2, ((key, -1, -1),)))
    assert followers_view.partitions[0][2] == 2


def test_a_parked_consumer_is_answered_by_what_is_committed() -> None:
    world, key = with_topic()
    waiting = world.send(1, FetchRequest(5, -1, -1, 15, ((key, 0, -1, -1),), 60_000 * MS))
    world.run(200 * MS)
    assert waiting not in world.answers
    assert world.produce(key, batch("a")) == (0, 0)
    world.until(lambda: waiting in world.answers, limit_ns=10 * MS)
    assert [one.payload for one in world.answers[waiting].partitions[0].batches] == [("a",)]


def test_a_fetch_waits_no_longer_than_it_wants_to() -> None:
    world, key = with_topic()
    waiting = world.send(1, FetchRequest(5, -1, -1, 15, ((key, 0, -1, -1),), 200 * MS))
    world.run(150 * MS)
    assert waiting not in world.answers
    world.run(100 * MS)
    assert world.answers[waiting].partitions[0].batches == ()


@pytest.mark.parametrize(
    ("offset", "epoch", "error"),
    [
        (2, -1, Error.OFFSET_OUT_OF_RANGE),
        (-1, -1, Error.OFFSET_OUT_OF_RANGE),
        (0, 7, Error.UNKNOWN_LEADER_EPOCH),
        (1, 0, Error.NONE),
    ],
    ids=["beyond the end", "before the start", "of an unknown epoch", "at the end"],
)
def test_a_consumers_fetch_has_to_fit_the_log(offset: int, epoch: int, error: Error) -> None:
    world, key = with_topic()
    world.produce(key, batch("a"))
    answer = world.ask(1, FetchRequest(1, -1, -1, 15, ((key, offset, epoch, -1),), 0))
    assert answer.partitions[0].error == error


def test_who_does_not_lead_says_so_and_who_never_heard_of_it_too() -> None:
    world, key = with_topic()
    assert world.produce(key, batch("a"), broker=2)[0] == Error.NOT_LEADER_OR_FOLLOWER
    unknown = (key[0] + 1, 0)
    assert world.produce(unknown, batch("a"), broker=1)[0] == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert world.consume(key, 0, broker=2).error == Error.NOT_LEADER_OR_FOLLOWER


def test_one_request_may_have_many_partitions() -> None:
    world = ready()
    topic = world.create("t", (1, 2), (1, 3), (2, 3))
    keys = [(topic, number) for number in range(3)]
    request = ProduceRequest(1, -1, 1_000 * MS, tuple((key, batch(key[1])) for key in keys))
    assert world.ask(1, request).partitions == (
        (keys[0], 0, 0),
        (keys[1], 0, 0),
        (keys[2], Error.NOT_LEADER_OR_FOLLOWER, -1),
    )


def test_who_waits_for_a_leader_that_leads_no_more_is_told_so() -> None:
    world, key = with_topic()
    consumer = world.send(1, FetchRequest(5, -1, -1, 15, ((key, 0, -1, -1),), 60_000 * MS))
    world.catches = fetches_from(2)
    world.run(600 * MS)
    producer = world.send(1, ProduceRequest(1, -1, 60_000 * MS, ((key, batch("a")),)))
    world.run(50 * MS)
    world.stop(1)
    world.until(lambda: producer in world.answers and consumer in world.answers)
    assert world.answers[producer].partitions[0][1] == Error.NOT_LEADER_OR_FOLLOWER
    assert world.answers[consumer].partitions[0].error == Error.NOT_LEADER_OR_FOLLOWER


def test_committed_records_survive_their_leader() -> None:
    world, key = with_topic()
    for value in "abc":
        assert world.produce(key, batch(value))[0] == 0
    world.kill(1)
    world.until(lambda: world.leader(key) not in (-1, 1))
    assert world.produce(key, batch("d")) == (0, 3)
    world.start(1)
    world.until(lambda: world.is_ready() and len(world.partition(key).isr) == 3)
    assert [world.values(broker, key) for broker in (1, 2, 3)] == [["a", "b", "c", "d"]] * 3


def diverged(rules: dict[int, Rules]) -> tuple[World, PartitionKey, int]:
    """Broker 1 led and has a record that nobody else has; it comes back, and another leads."""
    world, key = with_topic(rules=rules)
    assert world.produce(key, batch("a")) == (0, 0)
    world.run(600 * MS)
    world.cut([1], [2, 3])
    assert world.produce(key, batch("lost"), acks=1) == (0, 1)
    world.kill(1)
    world.until(lambda: world.leader(key) not in (-1, 1))
    world.blocked.clear()
    assert world.produce(key, batch("kept")) == (0, 1)
    world.start(1)
    world.until(lambda: world.is_ready() and len(world.partition(key).isr) == 3)
    assert world.produce(key, batch("z")) == (0, 2)
    return world, key, world.leader(key)


def test_a_follower_cuts_its_log_where_its_epochs_leave_the_leaders() -> None:
    world, key, _ = diverged({})
    assert [world.values(broker, key) for broker in (1, 2, 3)] == [["a", "kept", "z"]] * 3
    assert world.noted("truncated", node=1) == [(1, "truncated", key, 1, 2)]


@pytest.mark.rule("truncate_by_epoch")
@pytest.mark.parametrize("off", [(), ("truncate_by_epoch",)])
def test_without_epochs_alone_a_follower_cuts_to_its_high_watermark_and_logs_part(
    off: tuple[str, ...],
) -> None:
    """KIP-101's first case: a follower that led and restarts without its high watermark."""
    world, key = with_topic(rules=without(*off))
    world.produce(key, batch("a"))
    world.run(600 * MS)
    world.catches = fetches_from(2, 3)
    world.run(600 * MS)
    world.produce(key, batch("mine"), acks=1)
    mark = world.log(1, key).high_watermark
    world.kill(1)
    world.until(lambda: world.leader(key) not in (-1, 1))
    world.held.clear()
    world.release()
    # Its checkpoint names a high watermark that the old leader never had committed with the rest.
    world.disk(1).write("replication-offset-checkpoint", ((key, mark + 1),))
    world.produce(key, batch("theirs"))
    world.start(1)
    world.until(lambda: world.is_ready() and len(world.partition(key).isr) == 3)
    assert world.values(1, key) == ["a", "mine" if off else "theirs"]
    assert world.values(2, key) == ["a", "theirs"]


@pytest.mark.parametrize("rule_on", [True, False])
def test_a_leader_refuses_a_fetch_of_another_leader_epoch(*, rule_on: bool) -> None:
    world, key = with_topic(rules=without(*() if rule_on else ("fetch_epoch_checked",)))
    world.produce(key, batch("a"))
    world.run(600 * MS)
    follower = world.nodes[1].replicas.leaders[key].remotes[2]
    before = follower.fetched_ns
    late = FetchRequest(10_000, 2, follower.broker_epoch, 15, ((key, 1, 7, 0),), 0)
    world.run(1 * MS)
    world.feed(1, 2, late.kind, late)
    answer = world.sent[-1][2]
    assert isinstance(answer, FetchResponse)
    assert (follower.fetched_ns > before) is not rule_on
    if rule_on:
        assert answer.partitions[0].error == Error.UNKNOWN_LEADER_EPOCH


@pytest.mark.parametrize("rule_on", [True, False])
def test_a_follower_drops_an_answer_of_an_earlier_leader_epoch(*, rule_on: bool) -> None:
    rules = without(*() if rule_on else ("answer_epoch_checked",))
    world, key = with_topic(rules=rules, settings={"request_timeout_ns": 30_000 * MS})
    world.produce(key, batch("a"))
    world.run(600 * MS)
    world.catches = lambda s, t, m: (s, t) == (1, 3) and isinstance(m, FetchResponse)
    world.cut([1], [2])
    world.produce(key, batch("deposed"), acks=1)
    world.until(lambda: world.held)
    world.kill(1)
    world.until(lambda: world.leader(key) == 2)
    world.until(lambda: world.nodes[3].replicas.hosted[key].role == (2, 1))
    world.release()
    world.run(1 * MS)
    seen = [value for one in world.log(3, key).batches for value in one.payload]
    assert seen == (["a"] if rule_on else ["a", "deposed"])


def test_the_latest_offset_is_not_known_before_a_new_leader_has_heard_its_followers() -> None:
    world, key = with_topic()
    world.produce(key, batch("a", "b"))
    world.kill(1)
    world.catches = fetches_from(2, 3)
    world.until(lambda: world.leader(key) not in (-1, 1))
    leader = world.leader(key)
    request = ListOffsetsRequest(1, -1, ((key, -1, -1),))
    if world.log(leader, key).high_watermark < 2:
        answer = world.ask(leader, request).partitions[0]
        assert answer[1] == Error.OFFSET_NOT_AVAILABLE
    world.release()
    world.until(lambda: world.log(leader, key).high_watermark == 2)
    assert world.ask(leader, request).partitions[0][1:] == (0, 2, 1)


def test_the_earliest_offset_is_zero_and_times_are_not_looked_for() -> None:
    world, key = with_topic()
    world.produce(key, batch("a"))
    asked = ListOffsetsRequest(1, -1, ((key, -1, -2), (key, -1, -3), (key, -1, 1_234)))
    found = world.ask(1, asked).partitions
    assert [one[1:3] for one in found] == [(0, 0), (0, 0), (Error.INVALID_REQUEST, -1)]


def test_the_end_of_a_leader_epoch_is_where_the_next_began() -> None:
    world, key = with_topic()
    world.produce(key, batch("a", "b"))
    world.kill(1)
    world.until(lambda: world.leader(key) not in (-1, 1))
    world.produce(key, batch("c"))
    leader = world.leader(key)
    answer = world.ask(leader, OffsetsForLeaderEpochRequest(1, -1, ((key, -1, 0), (key, 9, 0))))
    assert answer.partitions == ((key, 0, 0, 2), (key, Error.UNKNOWN_LEADER_EPOCH, -1, -1))


def test_records_are_made_durable_as_often_as_configured() -> None:
    world = ready(settings={"flush_records": 2})
    key = (world.create("t", (1, 2, 3)), 0)
    for value in "abcd":
        world.produce(key, batch(value))
    synced = [(broker, names) for broker, names, token in world.synced if token[0] == "replicas"]
    assert sorted(synced) == [(broker, (key,)) for broker in (1, 1, 2, 2, 3, 3)]


def test_a_deleted_topic_takes_its_directories_and_waiting_clients_with_it() -> None:
    world, key = with_topic()
    world.produce(key, batch("a"))
    waiting = world.send(1, FetchRequest(5, -1, -1, 15, ((key, 1, -1, -1),), 60_000 * MS))
    world.run(20 * MS)
    world.ask(2, DeleteTopicsRequest(1, (("t", -1),), 1_000 * MS))
    world.until(lambda: all(key not in world.disk(one).topics for one in (1, 2, 3)))
    assert world.answers[waiting].partitions[0].error == Error.NOT_LEADER_OR_FOLLOWER


def test_k10_a_broker_that_was_away_removes_the_directories_of_what_it_no_longer_holds() -> None:
    world, key = with_topic()
    world.create("kept", (1, 2, 3))
    world.kill(3)
    world.ask(1, DeleteTopicsRequest(1, (("t", -1),), 1_000 * MS))
    assert key in world.disk(3).topics
    world.start(3)
    world.until(lambda: world.is_ready(3))
    assert key not in world.disk(3).topics
    assert "kept" in world.disk(3).topics.values()


@pytest.mark.parametrize("rule_on", [True, False])
def test_a_wiped_leader_takes_no_role_before_its_own_registration(*, rule_on: bool) -> None:
    world, key = with_topic(rules=without(*() if rule_on else ("role_after_registration",)))
    for value in "abc":
        world.produce(key, batch(value))
    world.run(600 * MS)
    world.kill(1)
    world.wipe(1)
    world.start(1)
    world.until(lambda: world.is_ready() and len(world.partition(key).isr) == 3)
    kept = world.values(world.leader(key), key)
    assert kept == (["a", "b", "c"] if rule_on else [])


def test_high_watermarks_are_written_down_and_found_again() -> None:
    world, key = with_topic()
    world.produce(key, batch("a", "b"))
    world.run(1_200 * MS)
    assert dict(world.disk(3).files["replication-offset-checkpoint"])[key] == 2
    world.kill(3)
    world.start(3)
    world.until(lambda: key in world.nodes[3].replicas.hosted)
    assert world.log(3, key).high_watermark == 2


def test_nothing_is_answered_to_what_a_broker_does_not_know() -> None:
    world = ready(brokers=1)
    assert world.ask(1, AllocateProducerIdsRequest(1, 1, 1)) == CLOSED
    assert world.ask(1, MetadataRequest(1, None)) != CLOSED
