"""The wire of a simulated cluster does with messages what the proxy does with frames."""

import pytest
from simulated_stage import Stage

from fencepost.clusters.port import CLIENTS, NodeName
from fencepost.history.failure import HarnessError, UsageError
from fencepost.nemesis.wire.rules import (
    Action,
    Answer,
    Clause,
    Cut,
    Delay,
    Direction,
    Drop,
    Duplicate,
    Hold,
    LowerVersion,
    Match,
    Operator,
    Reorder,
    Rule,
    Watch,
)

B1, B2, C1 = NodeName("broker-1"), NodeName("broker-2"), NodeName("controller-1")


def _rule(action: Action, **match: object) -> Rule:
    return Rule(name="r", action=action, match=Match(**{"api": "AlterPartition", **match}))


def _actions(stage: Stage) -> list[str]:
    return [str(row["action"]) for row in stage.tape.rows]


def test_a_hold_keeps_the_very_frame_that_it_concerns_first() -> None:
    stage = Stage()
    stage.wire.add(_rule(Hold()))
    stage.alter(1)
    status = stage.wire.status().rules["r"]
    assert (status.matched_count, status.held_now) == (1, 1)
    assert status.first == "AlterPartition v3 broker-1 → controller-1, t-0 isr [1, 2]"
    stage.run(100)
    assert stage.got("controller-1") == []


def test_what_is_held_outlives_its_sender_and_is_delivered_in_order() -> None:
    stage = Stage()
    stage.wire.add(_rule(Hold()))
    stage.alter(1)
    stage.alter(2)
    stage.world.kill(stage.hosts["broker-1"])
    delivery = stage.wire.release("r")
    assert (delivery.delivered, delivery.undeliverable) == (2, 0)
    stage.run(10)
    assert stage.got("controller-1") == [1, 2]
    assert _actions(stage)[:2] == ["released", "released"]


def test_what_is_held_for_an_incarnation_that_ended_is_undeliverable() -> None:
    stage = Stage()
    stage.wire.add(_rule(Hold()))
    stage.alter(1)
    stage.restart("controller-1")
    assert stage.wire.release("r").undeliverable == 1
    stage.run(10)
    assert stage.got("controller-1") == []
    assert _actions(stage) == ["undeliverable"]


def test_what_is_discarded_never_arrives_and_its_sender_hears_of_it() -> None:
    stage = Stage()
    stage.wire.add(_rule(Hold()))
    stage.alter(1)
    assert stage.wire.discard("r") == 1
    stage.run(10)
    assert stage.got("controller-1") == []
    assert [one.correlation for one in stage.nodes["broker-1"].refused] == [1]


@pytest.mark.parametrize(
    ("clause", "held"),
    [
        (Clause(field="isr", operator=Operator.INCLUDES, value=2), 1),
        (Clause(field="isr", operator=Operator.EXCLUDES, value=2), 0),
        (Clause(field="key", operator=Operator.IS, value="t-0"), 1),
        (Clause(field="key", operator=Operator.IS, value="t-1"), 0),
        (Clause(field="broker_epoch", operator=Operator.IS, value=4), 1),
    ],
    ids=["isr-includes", "isr-excludes", "key", "other-key", "broker-epoch"],
)
def test_a_clause_asks_for_what_the_message_says(clause: Clause, held: int) -> None:
    stage = Stage()
    stage.wire.add(_rule(Hold(), where=(clause,)))
    stage.alter(1)
    assert stage.wire.status().rules["r"].held_now == held


def test_a_rule_may_concern_answers_and_be_spent_after_some() -> None:
    stage = Stage()
    stage.wire.add(_rule(Hold(), direction=Direction.RESPONSE, skip=1, times=1))
    for correlation in (1, 2, 3):
        stage.alter(correlation)
        stage.run(5)
    assert stage.got("controller-1") == [1, 2, 3]
    assert stage.got("broker-1") == [1, 3]
    stage.wire.release("r")
    stage.run(5)
    assert stage.got("broker-1") == [1, 3, 2]


def test_a_dropped_frame_is_gone_with_its_connection() -> None:
    stage = Stage()
    stage.wire.add(_rule(Drop(), direction=Direction.RESPONSE))
    stage.alter(1)
    stage.run(10)
    assert stage.got("controller-1") == [1]
    assert stage.got("broker-1") == []
    assert [one.correlation for one in stage.nodes["broker-1"].refused] == [1]


def test_a_delayed_frame_comes_later_and_its_successors_behind_it() -> None:
    stage = Stage()
    stage.wire.add(_rule(Delay(min_ms=50, max_ms=90, seed=3)))
    stage.alter(1)
    stage.alter(2)
    stage.run(45)
    assert stage.got("controller-1") == []
    stage.run(60)
    assert stage.got("controller-1") == [1, 2]
    assert set(_actions(stage)) <= {"delayed", "forwarded"}


def test_a_duplicated_request_arrives_twice_and_is_answered_once() -> None:
    stage = Stage()
    stage.wire.add(_rule(Duplicate()))
    stage.alter(1)
    stage.run(10)
    assert stage.got("controller-1") == [1, 1]
    assert stage.got("broker-1") == [1]


def test_a_reordered_request_is_overtaken_by_the_next() -> None:
    stage = Stage()
    stage.wire.add(_rule(Reorder()))
    stage.alter(1)
    stage.run(10)
    assert stage.got("controller-1") == []
    stage.alter(2)
    stage.run(10)
    assert stage.got("controller-1") == [2, 1]


def test_a_request_is_answered_in_the_place_of_its_target() -> None:
    stage = Stage()
    stage.wire.add(_rule(Answer(error="NOT_CONTROLLER")))
    stage.alter(1)
    stage.run(10)
    assert stage.got("controller-1") == []
    (answer,) = stage.nodes["broker-1"].got
    assert answer.error == 41


def test_what_is_held_holds_all_that_follows_on_its_connection_and_nothing_else() -> None:
    stage = Stage()
    stage.wire.add(_rule(Hold(), api="BrokerRegistration"))
    stage.register(1)
    stage.beat(2)
    stage.alter(3)
    stage.run(10)
    assert stage.got("controller-1") == [3], "AlterPartition has a connection of its own"
    stage.wire.release("r")
    stage.run(10)
    assert stage.got("controller-1") == [3, 1, 2]


def test_a_request_that_is_asked_again_goes_over_a_new_connection() -> None:
    stage = Stage()
    stage.wire.add(_rule(Hold(), api="BrokerHeartbeat", times=1))
    stage.beat(1)
    stage.beat(2)
    stage.register(3)
    stage.run(10)
    assert stage.got("controller-1") == [2, 3], "the first connection was given up"
    stage.wire.release("r")
    stage.run(10)
    assert stage.got("controller-1") == [2, 3, 1]


def test_answers_wait_behind_a_held_one_but_not_those_of_a_later_connection() -> None:
    stage = Stage()
    stage.wire.add(_rule(Hold(), api="BrokerRegistration", direction=Direction.RESPONSE))
    stage.register(1)
    stage.beat(2)
    stage.run(10)
    assert stage.got("broker-1") == []
    stage.beat(3)
    stage.run(10)
    assert stage.got("broker-1") == [3]
    stage.wire.release("r")
    stage.run(10)
    assert stage.got("broker-1") == [3, 1, 2]


def test_a_connection_that_was_cut_is_followed_by_another() -> None:
    stage = Stage()
    stage.wire.add(_rule(Hold(), api="BrokerHeartbeat", times=1))
    stage.beat(1)
    stage.wire.add(Rule(name="cut", action=Drop(), match=Match(api="BrokerRegistration")))
    stage.register(2)
    stage.run(10)
    assert stage.nodes["broker-1"].heard == [], "it waits behind the heartbeat"
    stage.wire.release("r")
    stage.run(10)
    assert stage.got("controller-1") == [1]
    assert stage.nodes["broker-1"].heard == [("lost", 1), ("lost", 2)]
    stage.beat(3)
    stage.run(10)
    assert stage.got("controller-1") == [1, 3]


def test_no_rule_waits_for_a_node_that_is_down() -> None:
    stage = Stage()
    stage.world.kill(stage.hosts["controller-1"])
    stage.wire.add(_rule(Hold()))
    stage.alter(1)
    stage.run(10)
    assert stage.wire.status().rules["r"].held_now == 0
    assert stage.nodes["broker-1"].heard == [("lost", 1)]


@pytest.mark.parametrize("passed_on", [True, False])
def test_a_cut_ends_the_connection(*, passed_on: bool) -> None:
    stage = Stage()
    stage.wire.add(_rule(Cut(passed_on=passed_on)))
    stage.alter(1)
    stage.run(10)
    assert stage.got("controller-1") == ([1] if passed_on else [])
    assert [one.correlation for one in stage.nodes["broker-1"].refused] == [1]


def test_a_watch_counts_and_does_nothing() -> None:
    stage = Stage()
    stage.wire.add(_rule(Watch()))
    stage.alter(1)
    stage.run(10)
    assert stage.got("broker-1") == [1]
    assert stage.wire.status().rules["r"].matched_count == 1


def test_the_tape_has_a_followers_fetches_of_another_epoch_or_partition_and_no_other() -> None:
    stage = Stage()
    stage.fetch(1)
    stage.fetch(2)
    stage.fetch(3, partition=1)
    stage.fetch(4)
    stage.fetch(5, epoch=12)
    stage.fetch(6, partition=1, epoch=12)
    stage.fetch(7, partition=1, epoch=12)
    asked = [row for row in stage.tape.rows if row["direction"] == "request"]
    assert [row["correlation_id"] for row in asked] == [1, 3, 5, 6]
    assert {row["session_epoch"] for row in asked} == {-1}


def test_a_fetch_that_a_rule_keeps_back_has_told_nobody_anything() -> None:
    stage = Stage()
    stage.wire.add(_rule(Hold(), api="Fetch", times=1))
    for correlation in (1, 2, 3):
        stage.fetch(correlation)
    rows = [(row["correlation_id"], str(row["action"])) for row in stage.tape.rows]
    assert rows == [(1, "held"), (2, "forwarded")]


def test_the_tape_has_the_control_plane_and_the_first_fetch_of_each_connection() -> None:
    stage = Stage()
    stage.alter(1)
    stage.fetch(1)
    stage.fetch(2)
    stage.run(10)
    stage.restart("broker-2")
    stage.run(10)
    stage.fetch(3)
    rows = [(row["api"], row["direction"], row["correlation_id"]) for row in stage.tape.rows]
    assert rows == [
        ("AlterPartition", "request", 1),
        ("Fetch", "request", 1),
        ("AlterPartition", "response", 1),
        ("Fetch", "request", 3),
    ]
    assert stage.tape.rows[0]["items"][0]["isr_epochs"] == [4, 4]
    assert stage.tape.rows[1]["broker_epoch"] == 9


def test_a_blocked_flow_is_seen_by_probes_and_waits_until_it_is_free() -> None:
    stage = Stage()
    stage.wire.block([(B1, C1)])
    assert not stage.wire.probe(B1, C1, timeout_s=1.0)
    assert stage.wire.probe(B2, C1, timeout_s=1.0)
    assert stage.wire.probe_directly(C1, timeout_s=1.0)
    stage.alter(1)
    stage.run(50)
    assert stage.got("controller-1") == []
    assert stage.tape.rows == []
    stage.wire.unblock([(B1, C1)])
    stage.run(10)
    assert stage.got("controller-1") == [1]
    assert stage.wire.probe(B1, C1, timeout_s=1.0)


def test_clients_are_one_party_and_on_the_wire_only_where_asked() -> None:
    stage = Stage()
    stage.wire.block([(CLIENTS, B1)])
    stage.fetch(1, source="client")
    stage.run(10)
    assert stage.got("broker-1") == []
    stage.wire.unblock()
    stage.run(10)
    assert stage.got("broker-1") == [1]
    rule = _rule(Hold(), api="Fetch", sources=(CLIENTS,))
    stage.wire.add(rule)
    stage.fetch(2, source="client")
    stage.run(10)
    assert stage.got("broker-1") == [1, 2]
    wired = Stage(clients=True)
    wired.wire.add(rule)
    wired.fetch(1, source="client")
    wired.run(10)
    assert wired.got("broker-1") == []


@pytest.mark.parametrize("how", ["clients", "overhears"])
def test_the_tape_has_an_exchange_of_a_client_every_half_second(how: str) -> None:
    stage = Stage(**{how: True})
    for correlation, wait_ms in enumerate((10, 489, 1, 10, 700)):
        stage.fetch(correlation, source="client")
        stage.run(wait_ms)
    stage.fetch(5, source="client")
    stage.run(10)
    rows = [(str(row["direction"]), row["correlation_id"]) for row in stage.tape.rows]
    assert rows == [(way, number) for number in (0, 3, 5) for way in ("request", "response")]
    assert {(row["source"], row["target"]) for row in stage.tape.rows} == {(CLIENTS, B1)}
    assert stage.got("broker-1") == list(range(6))


def test_what_has_no_meaning_between_messages_is_refused() -> None:
    stage = Stage()
    with pytest.raises(UsageError, match="negotiates no versions"):
        stage.wire.add(_rule(LowerVersion(api="Fetch", max_version=4)))
    with pytest.raises(UsageError, match="cut servers off, pause, kill or wipe them"):
        stage.wire.add(_rule(Hold(), api="COMMIT", direction=Direction.RESPONSE))
    with pytest.raises(UsageError, match="no field for an error in the answer to AlterReplicaLog"):
        stage.wire.add(_rule(Answer(error="NONE"), api="AlterReplicaLogDirs"))
    with pytest.raises(HarnessError, match="no rule"):
        stage.wire.release("nobody")
