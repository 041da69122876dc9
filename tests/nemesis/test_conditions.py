from dataclasses import replace

import pytest

from fencepost.clusters.kafka_conditions import (
    ControlledBy,
    Fenced,
    Isr,
    IsrMember,
    LedBy,
    LogEnd,
    Registered,
    TopicDeleted,
)
from fencepost.clusters.kafka_port import ClusterView, PartitionView
from fencepost.clusters.observation import (
    Acknowledged,
    AllRecovered,
    Changed,
    Condition,
    Down,
    Held,
    Observation,
    Seen,
)
from fencepost.clusters.port import NodeName, NodeState
from fencepost.clusters.stage import Stage
from fencepost.history.failure import SpecError
from fencepost.nemesis.verbs.await_condition import parse_condition
from fencepost.nemesis.wire.status import RuleStatus

B1, B2 = NodeName("broker-1"), NodeName("broker-2")
C1 = NodeName("controller-1")
STAGE = Stage(nodes=(C1, B1, B2), keys=("t-0",), broker_ids=(1, 2))


def seen(
    *,
    leader: int | None = 1,
    isr: tuple[int, ...] = (1, 2),
    brokers: tuple[int, ...] = (1, 2),
    serving: tuple[int, ...] | None = None,
    b2: NodeState = NodeState.RUNNING,
    acknowledged: int = 0,
    answered: bool = True,
) -> Observation:
    partition = PartitionView(leader=leader, isr=isr, replicas=(1, 2))
    view = ClusterView(
        time_ns=0,
        brokers=frozenset(brokers),
        serving=frozenset(brokers if serving is None else serving),
        partitions={"t-0": partition},
    )
    return Observation(
        view=view if answered else None,
        active_controller=C1,
        states={C1: NodeState.RUNNING, B1: NodeState.RUNNING, B2: b2},
        broker_ids={B1: 1, B2: 2},
        acknowledged_count=acknowledged,
    )


def rule(*, matched: int, held: int = 0) -> RuleStatus:
    return RuleStatus(
        matched_count=matched,
        held_count=held,
        held_now=0,
        delivered_count=held,
        undeliverable_count=0,
        first=None,
        first_ns=None,
    )


def test_isr_and_leader_are_compared_exactly() -> None:
    assert Isr(members={"t-0": frozenset({1, 2})}).holds(seen())
    assert not Isr(members={"t-0": frozenset({1})}).holds(seen())
    assert LedBy(leaders={"t-0": None}).holds(seen(leader=None))
    assert not LedBy(leaders={"t-0": 2}).holds(seen())


def test_a_broker_missing_from_metadata_is_fenced() -> None:
    assert Fenced(node=B2, fenced=True).holds(seen(brokers=(1,)))
    assert Fenced(node=B2, fenced=False).holds(seen())


def test_a_broker_that_others_list_and_that_does_not_answer_is_not_unfenced_yet() -> None:
    restarting = seen(serving=(1,))
    assert not Fenced(node=B2, fenced=False).holds(restarting)
    assert not AllRecovered().holds(restarting)


def test_nothing_of_the_metadata_holds_while_no_broker_answers() -> None:
    silent = seen(answered=False)
    assert not Fenced(node=B2, fenced=True).holds(silent)
    assert not Isr(members={"t-0": frozenset({1, 2})}).holds(silent)
    assert not AllRecovered().holds(silent)


def test_recovered_needs_every_process_broker_and_replica() -> None:
    assert AllRecovered().holds(seen())
    assert not AllRecovered().holds(seen(b2=NodeState.PAUSED))
    assert not AllRecovered().holds(seen(brokers=(1,)))
    assert not AllRecovered().holds(seen(isr=(1,)))
    assert not AllRecovered().holds(seen(leader=None))


def test_the_host_and_the_clients_are_asked_too() -> None:
    assert Down(node=B2).holds(seen(b2=NodeState.DOWN))
    assert ControlledBy(node=C1).holds(seen())
    assert Acknowledged(count=5).holds(seen(acknowledged=5))
    assert not Acknowledged(count=6).holds(seen(acknowledged=5))


def test_every_condition_written_down_is_read_back_the_same() -> None:
    conditions: list[Condition] = [
        Isr(members={"t-0": frozenset({1, 2})}),
        LedBy(leaders={"t-0": None}),
        Fenced(node=B1, fenced=True),
        Fenced(node=B1, fenced=False),
        Down(node=B2),
        ControlledBy(node=C1),
        Acknowledged(count=7),
        IsrMember(members={"t-0": 2}, inside=True),
        IsrMember(members={"t-0": 2}, inside=False),
        Held(name="join"),
        Held(name="join", count=3),
        Seen(name="reg", count=2),
        Registered(node=B2),
        LogEnd(key="t-0", node=B2, offset_min=100),
        Changed(node=C1, file="version-2/currentEpoch"),
        AllRecovered(),
    ]
    for condition in conditions:
        assert parse_condition(condition.data(), stage=STAGE) == condition


def test_a_member_of_the_isr_is_asked_for_whoever_else_is_in_it() -> None:
    assert IsrMember(members={"t-0": 2}, inside=True).holds(seen())
    assert not IsrMember(members={"t-0": 2}, inside=False).holds(seen())
    assert IsrMember(members={"t-0": 2}, inside=False).holds(seen(isr=(1,)))
    assert not IsrMember(members={"x-0": 2}, inside=False).holds(seen())


def test_what_the_wire_counted_is_compared_with_what_was_asked() -> None:
    rules = {"join": rule(matched=1, held=1), "reg": rule(matched=2)}
    now = replace(seen(), rules=rules, registrations={B2: 1, B1: 0})
    assert Held(name="join").holds(now)
    assert not Held(name="join", count=2).holds(now)
    assert not Held(name="other").holds(now)
    assert not Held(name="reg").holds(now)
    assert Seen(name="reg", count=2).holds(now)
    assert not Seen(name="reg", count=3).holds(now)
    assert not Seen(name="other").holds(now)
    assert Registered(node=B2).holds(now)
    assert not Registered(node=B1).holds(now)


def test_a_topic_is_deleted_when_a_view_shows_none_of_that_name() -> None:
    assert not TopicDeleted(topic="t").holds(seen())
    assert TopicDeleted(topic="u").holds(seen())
    assert not TopicDeleted(topic="u").holds(seen(answered=False))


def test_a_log_end_nobody_could_read_is_below_every_offset() -> None:
    asked = LogEnd(key="t-0", node=B2, offset_min=100)
    assert not asked.holds(seen())
    assert not asked.holds(replace(seen(), log_ends={("t-0", B2): 99}))
    assert asked.holds(replace(seen(), log_ends={("t-0", B2): 100}))


def test_a_broker_without_a_replica_can_never_be_awaited_in_the_isr() -> None:
    stage = replace(STAGE, broker_ids=(1, 2, 3), replicas={"t-0": (1, 2)})
    with pytest.raises(SpecError, match="broker 3 has no replica of t-0"):
        parse_condition({"isr": {"t-0": [1, 3]}}, stage=stage)


@pytest.mark.parametrize(
    ("operand", "why"),
    [
        ("broker-1", "expected a node and a file of its data"),
        ({"broker-1": "a", "broker-2": "b"}, "expected a node and a file of its data"),
        ({"broker-9": "a"}, "no such node: 'broker-9'"),
        ({"broker-1": "/etc/passwd"}, "expected a file below the node's data directory"),
        ({"broker-1": "../server.log"}, "expected a file below the node's data directory"),
        ({"broker-1": "."}, "expected a file below the node's data directory"),
    ],
)
def test_a_file_to_be_watched_is_one_of_the_nodes_data(operand: object, why: str) -> None:
    with pytest.raises(SpecError, match=why):
        parse_condition({"changed": operand}, stage=STAGE)
