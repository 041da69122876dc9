"""C19: what a controller changes, and nobody asked for."""

from dataclasses import replace

import pyarrow as pa
import pytest
from metadata_logs import FACTS, ON_ZOOKEEPER, asked, metadata_log, proofs, tables, told, wire
from proving import assert_proof
from replica_disks import faults

from fencepost.checkers.control_plane.unasked_change import unasked_changes
from fencepost.checkers.facts import Facts
from fencepost.checkers.proof import Proof
from fencepost.history.cluster_schema import NODE_SETTINGS

LOG = """
    0 leader 1000 at 0
    1 register 1 unfenced
    2 register 2 unfenced
    3 register 3 unfenced
    5 topic t
    6 partition t-0 replicas 1,2,3 isr {isr} leader {leader} at 600
"""


OTHER = "at 50 broker-1 register -> ok 1 at 60"
"""A tape that is there, and says nothing of the partition."""


def found(
    step: str, frames: str = OTHER, *, isr: str = "1,2", leader: int = 1, run: Facts = FACTS
) -> list[Proof]:
    log = LOG.format(isr=isr, leader=leader) + step + "\n99 noop at 60000"
    return proofs(asked(unasked_changes, tables(log, frames), run)).get("t-0", [])


ALTER = "at 20900 broker-1 alter t-0 expecting 0 isr {} -> {}"


def test_a_replica_that_no_leader_asked_for_is_in_the_isr() -> None:
    (proof,) = found("10 change t-0 isr 1,2,3 at 21000")
    assert_proof(proof, "is in the ISR of {key}", broker_id=3, key="t-0", metadata_offset=10)
    (proof,) = found("10 change t-0 isr 1,2,3 at 21000", ALTER.format("1,2", "ok 1 at 21005"))
    rule = "was granted partition epoch {partition_epoch}, under which it is {isr}"
    assert_proof(proof, rule, wanted="[1, 2]", isr="[1, 2, 3]", frame=0, source="broker-1")
    for answer in ("ok 1 at 21005", "nothing", "REQUEST_TIMED_OUT at 21005"):
        assert not found("10 change t-0 isr 1,2,3 at 21000", ALTER.format("1,2,3", answer))
    refused = ALTER.format("1,2,3", "INVALID_UPDATE_VERSION at 21005")
    assert found("10 change t-0 isr 1,2,3 at 21000", refused)


def test_a_replica_whose_broker_lives_is_put_out() -> None:
    (proof,) = found("10 change t-0 isr 1 at 21000")
    assert_proof(proof, "is out of the ISR of {key}", broker_id=2, leader=1, isr="[1]")
    assert not found("10 change t-0 isr 1 at 21000", ALTER.format("1", "ok 1 at 21005"))
    # Its reason is in the same batch, before it or after it.
    for reason in ("fence 2", "stopping 2", "unregister 2", "register 2"):
        assert not found(f"10 change t-0 isr 1 at 21000\n11 {reason} at 21000"), reason
        assert not found(f"10 {reason} at 21000\n11 change t-0 isr 1 at 21000"), reason
        assert found(f"10 change t-0 isr 1 at 21000\n11 {reason} at 22000"), reason
    assert not found("9 fence 2 at 20900\n10 change t-0 isr 1 at 21000")


@pytest.mark.parametrize(
    ("fault", "target", "at_ms", "is_judged"),
    [
        ("kill", "broker-3", 15_000, True),
        ("pause", "controller-1", 5_000, True),
        ("pause", "controller-1", 15_000, False),
        ("pause", "broker-2", 15_000, False),
    ],
)
def test_a_session_may_have_ended_that_is_not_fenced_yet(
    fault: str, target: str, at_ms: int, *, is_judged: bool
) -> None:
    log = LOG.format(isr="1,2", leader=1) + "10 change t-0 isr 1 at 21000\n99 noop at 60000"
    given = tables(log, OTHER, faults=faults((fault, target, at_ms)))
    assert bool(proofs(asked(unasked_changes, given, FACTS))) is is_judged


def test_a_leader_that_lives_is_replaced() -> None:
    again = "10 change t-0 isr 1,2 leader 3 at 21000"
    (proof,) = found(again, isr="1,2,3")
    assert_proof(proof, "is out of the ISR of {key}", broker_id=3)
    moved = "10 change t-0 leader 3 at 21000"
    (proof,) = found(moved, isr="1,2,3")
    assert_proof(proof, "no longer leads with the ISR of {key}", broker_id=1, leader=3)
    assert found("10 change t-0 leader -1 at 21000")
    assert not found(moved + "\n11 fence 1 at 21000", isr="1,2,3")
    # The preferred one may always lead again; and an election names the leader that there is.
    assert not found("10 change t-0 leader 1 at 21000", leader=2)
    assert not found("10 change t-0 leader 2 at 21000", leader=2)


def test_who_is_elected_out_of_the_isr_was_not_let_in() -> None:
    unclean = "10 change t-0 isr 3 leader 3 at 21000\n11 fence 1 at 21000\n12 fence 2 at 21000"
    assert not found(unclean)


@pytest.mark.parametrize("moving", ["adding 3", "removing 3", "replicas 1,2"])
def test_a_partition_that_is_moved_is_not_judged(moving: str) -> None:
    assert not found(f"10 change t-0 isr 1,2 {moving} at 21000", isr="1,2,3")


def test_before_controlled_shutdown_is_recorded_nothing_is_judged() -> None:
    step = "8 feature metadata.version {} at 700\n10 change t-0 isr 1 at 21000"
    assert not found(step.format(6))
    assert found(step.format(7))
    raised = "7 feature metadata.version 6 at 650\n"
    assert found(raised + step.format(7))
    assert not found(raised + step.format(7).replace("8 feature", "18 feature"))


def test_where_a_request_may_be_of_another_topic_of_that_name_nothing_is_judged() -> None:
    log = LOG.format(isr="1,2", leader=1) + "10 change t-0 isr 1,2,3 at 21000\n"
    twice = log + "20 delete t at 22000\n21 topic t id other at 22100\n"
    twice += "22 partition t-1 replicas 1 isr 1 leader 1 at 22200"
    frames = wire(ALTER.format("1,2,3", "INVALID_UPDATE_VERSION at 21005"))
    place = frames.schema.get_field_index("topic_id")
    by_name = frames.set_column(place, "topic_id", pa.nulls(len(frames), pa.string()))
    by_name = by_name.set_column(
        by_name.schema.get_field_index("topic"), "topic", pa.array(["t"] * len(frames))
    )

    def is_accused(log: str, tape: pa.Table) -> bool:
        return bool(told(asked(unasked_changes, tables(log, wire=tape), FACTS))[0])

    assert is_accused(twice, frames)
    assert is_accused(log, by_name)
    assert not is_accused(twice, by_name)


BY_ZOOKEEPER = """
    0 leader 2 at 0
    1 register 1 unfenced
    2 register 2 unfenced
    3 register 3 unfenced
    5 topic t
    6 partition t-0 replicas 1,2,3 isr 1,2 leader 1 at 600
"""
WITH_THREE = replace(ON_ZOOKEEPER, node_ids={**ON_ZOOKEEPER.node_ids, "broker-3": 3})
ASKED_BEFORE = "at 50 broker-1 to broker-2 alter t-1 expecting 0 isr 1 under 1 -> ok 1 at 60\n"
CHANGED_BEFORE = "at 50 broker-1 to broker-2 changes t-1 isr 1 leader-epoch 0 under 1 -> ok at 60\n"


NO_SETTINGS = NODE_SETTINGS.empty_table()


def by_zookeeper(step: str, frames: str) -> list[Proof]:
    log = BY_ZOOKEEPER + step + "\n99 noop at 60000"
    given = tables(metadata_log(zookeeper_1=log), frames, node_settings=NO_SETTINGS)
    return proofs(asked(unasked_changes, given, WITH_THREE)).get("t-0", [])


JOINS = "10 change t-0 isr 1,2,3 at 21000"
ASKS = "at 20900 broker-1 to broker-2 alter t-0 expecting {} isr {} under 1 -> {}"
CHANGES = "at {} broker-1 to broker-2 changes t-0 isr {} leader-epoch 0 under 1 -> {}"


def test_on_zookeeper_a_replica_is_in_that_no_alter_partition_names() -> None:
    (proof,) = by_zookeeper(JOINS, ASKED_BEFORE)
    assert_proof(proof, "is in the ISR of {key}", broker_id=3, key="t-0", metadata_offset=10)
    of_another = ASKS.format(5, "1,2,3", "ok 6 at 21005")
    assert by_zookeeper(JOINS, of_another), "it expects another partition epoch"
    never = ASKS.format(0, "1,2,3", "nothing").replace("broker-1 to", "held broker-1 to")
    assert by_zookeeper(JOINS, never)
    # A write that is repeated after the connection to ZooKeeper was lost is refused, and done.
    for answer in ("ok 1 at 21005", "nothing", "INVALID_UPDATE_VERSION at 21005"):
        assert not by_zookeeper(JOINS, ASKS.format(0, "1,2,3", answer)), answer
    assert by_zookeeper("10 change t-0 isr 1 at 21000", ASKED_BEFORE) == []


def test_on_zookeeper_a_replica_is_in_that_no_isr_change_under_way_names() -> None:
    (proof,) = by_zookeeper(JOINS, CHANGED_BEFORE)
    assert_proof(proof, "is in the ISR of {key}", broker_id=3)
    assert by_zookeeper(JOINS, CHANGES.format(15_000, "1,2,3", "ok at 15005"))
    assert by_zookeeper(JOINS, CHANGES.format(25_000, "1,2,3", "ok at 25005"))
    assert by_zookeeper(JOINS, CHANGES.format(20_900, "1,2", "ok at 21005"))
    assert not by_zookeeper(JOINS, CHANGES.format(20_900, "1,2,3", "ok at 21005"))
    assert not by_zookeeper(JOINS, CHANGES.format(15_000, "1,2,3", "nothing"))


def test_on_zookeeper_another_isr_was_granted_than_was_asked_for() -> None:
    asked_for_two = ASKS.format(0, "1,2", "ok 1 at 21005")
    (proof,) = by_zookeeper("10 change t-0 isr 1 at 21000", asked_for_two)
    rule = "was granted partition epoch {partition_epoch}, under which it is {isr}"
    assert_proof(proof, rule, wanted="[1, 2]", isr="[1]", source="broker-1")
    assert not by_zookeeper("10 change t-0 isr 1 at 21000", asked_for_two.replace("1,2 u", "1 u"))


@pytest.mark.parametrize(
    ("step", "frames"),
    [
        pytest.param(JOINS, OTHER, id="the leader may write ISRs itself"),
        pytest.param("8 register 1 unfenced at 700\n" + JOINS, ASKED_BEFORE, id="it did before"),
        pytest.param("8 leader 1 at 700\n" + JOINS, ASKED_BEFORE, id="it is the controller"),
        pytest.param("10 change t-0 isr 1,3 leader 3 at 21000", ASKED_BEFORE, id="it is elected"),
        pytest.param(
            "10 change t-0 isr 1,2,3 partition-epoch 2 at 21000", ASKED_BEFORE, id="one is missing"
        ),
        pytest.param("10 change t-0 isr 1,2,3 adding 3 at 21000", ASKED_BEFORE, id="it is moved"),
    ],
)
def test_on_zookeeper_what_may_need_no_request_is_not_judged(step: str, frames: str) -> None:
    assert not by_zookeeper(step, frames)


def test_in_a_migration_nothing_is_judged() -> None:
    migrating = replace(FACTS, node_ids={**FACTS.node_ids, "zookeeper-1": 2001})
    assert not found("10 change t-0 isr 1 at 21000", run=migrating)


KEPT = "at 5000 broker-2 to broker-3 updates epoch 1 for 3 -> ok at 5010\n"
"""The controller, broker 2, has told broker 3 of its registration."""
OUT = "10 change t-0 isr 1 at 21000"
LEADS = "10 change t-0 isr 3 leader 3 at 21000"


def lost_by_zookeeper(step: str, frames: str, *, isr: str = "1,3", leader: int = 1) -> list[Proof]:
    log = BY_ZOOKEEPER.replace("isr 1,2 leader 1", f"isr {isr} leader {leader}")
    records = metadata_log(zookeeper_1=f"{log}{step}\n99 noop at 60000")
    given = tables(records, frames, node_settings=NO_SETTINGS)
    return proofs(asked(unasked_changes, given, WITH_THREE)).get("t-0", [])


def test_on_zookeeper_a_broker_that_the_controller_had_for_alive_is_put_out() -> None:
    (proof,) = lost_by_zookeeper(OUT, ASKED_BEFORE + KEPT)
    assert_proof(proof, "is out of the ISR of {key}", broker_id=3, isr="[1]", metadata_offset=10)
    assert lost_by_zookeeper(OUT + "\n11 fence 3 at 21000", ASKED_BEFORE + KEPT), "later"
    of_another_epoch = ASKS.format(5, "1", "ok 6 at 21005")
    assert lost_by_zookeeper(OUT, of_another_epoch + "\n" + KEPT)
    assert not lost_by_zookeeper(OUT, ASKS.format(0, "1", "nothing") + "\n" + KEPT)


def test_on_zookeeper_a_leader_that_the_controller_had_for_alive_is_replaced() -> None:
    frames = ASKED_BEFORE + KEPT
    moved = "10 change t-0 leader 2 at 21000"
    (proof,) = lost_by_zookeeper(moved, frames, isr="2,3", leader=3)
    assert_proof(proof, "no longer leads with the ISR of {key}", broker_id=3, leader=2)
    assert lost_by_zookeeper("10 change t-0 leader -1 at 21000", frames, isr="3", leader=3)
    preferred = "10 change t-0 leader 1 at 21000"
    assert not lost_by_zookeeper(preferred, frames, isr="1,3", leader=3)
    assert not lost_by_zookeeper(LEADS, frames), "the controller was not seen to know broker 1"


@pytest.mark.parametrize(
    ("step", "frames"),
    [
        pytest.param(OUT, ASKED_BEFORE, id="the controller never told it anything"),
        pytest.param(OUT, ASKED_BEFORE + KEPT.replace("5000", "22000"), id="it did so later"),
        pytest.param(OUT, ASKED_BEFORE + KEPT.replace("for 3", "for 1"), id="of an earlier one"),
        pytest.param(OUT, ASKED_BEFORE + KEPT.replace("epoch 1", "epoch 0"), id="of another one"),
        pytest.param("9 fence 3 at 20999\n" + OUT, ASKED_BEFORE + KEPT, id="its session ended"),
        pytest.param("9 register 3 unfenced at 8000\n" + OUT, ASKED_BEFORE + KEPT, id="it is back"),
        pytest.param(
            OUT,
            ASKED_BEFORE + KEPT + "at 9000 broker-3 to broker-2 leaves for 3 -> nothing",
            id="it is in controlled shutdown",
        ),
        pytest.param("9 to-delete t at 20000\n" + OUT, ASKED_BEFORE + KEPT, id="t is deleted"),
        pytest.param(OUT, OTHER + "\n" + KEPT, id="the leader may write ISRs itself"),
        pytest.param(
            OUT,
            ASKED_BEFORE + KEPT + "at 9000 broker-1 to broker-3 beats epoch 3 -> ok at 9001",
            id="heartbeats count, and it sent none",
        ),
    ],
)
def test_on_zookeeper_a_broker_that_the_controller_may_have_had_for_gone_is_not_judged(
    step: str, frames: str
) -> None:
    assert not lost_by_zookeeper(step, frames)
