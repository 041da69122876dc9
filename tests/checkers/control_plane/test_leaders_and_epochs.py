"""C4, C5, C6 and C14: one leader an epoch, epochs that grow, one incarnation an id."""

import pyarrow as pa
from metadata_logs import (
    FACTS,
    ON_ZOOKEEPER,
    asked,
    describes,
    doubts,
    facts,
    metadata_log,
    proofs,
    tables,
    wire,
)
from proving import assert_proof, only, source_of
from replica_disks import faults

from fencepost.checkers.control_plane.epochs import epochs_that_went_back
from fencepost.checkers.control_plane.shared_identity import shared_identities
from fencepost.checkers.control_plane.stale_controller import stale_controllers
from fencepost.checkers.control_plane.two_leaders import two_leaders
from fencepost.checkers.proof import Proof
from fencepost.history.cluster_schema import QUORUM_CLAIMS

LOG = """
    0 leader 1000
    5 topic t
    6 partition t-0 replicas 1,2 isr 1,2 leader 1
    10 change t-0 isr 2 leader 2
"""
THREE = facts(controllers=3)


def claims(*rows: tuple[float, str, int]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {"time_ns": int(at_s * 1e9), "node": node, "controller_epoch": epoch}
            for at_s, node, epoch in rows
        ],
        schema=QUORUM_CLAIMS,
    )


def leaders(
    log: str = LOG,
    frames: str = "",
    reads: str = "",
    of_quorum: pa.Table | None = None,
    logs: pa.Table | None = None,
) -> dict[str, list[Proof]]:
    given = tables(
        log if logs is None else logs,
        frames,
        describes=describes(reads),
        quorum_claims=claims() if of_quorum is None else of_quorum,
    )
    return proofs(asked(two_leaders, given, THREE if logs is not None else FACTS))


def test_what_everybody_says_agrees() -> None:
    assert not leaders(
        frames="at 900 broker-1 alter t-0 expecting 0 isr 1 -> ok 1 at 910",
        reads="broker-2 showed t-0 leader 2 isr 2 leader-epoch 1 at 1100..1101",
        of_quorum=claims((1, "controller-1", 1)),
    )


def test_a_broker_asks_as_the_leader_of_an_epoch_that_is_anothers() -> None:
    frames = "at 1100 broker-1 alter t-0 expecting 1 isr 1 leader-epoch {} -> nothing"
    proof = only(leaders(frames=frames.format(1)), "t-0")
    assert_proof(
        proof,
        "in leader epoch {epoch} of {key}",
        epoch=1,
        key="t-0",
        leader=2,
        metadata_offset=10,
        other_leader=1,
        asked=1100,
        frame=0,
    )
    assert source_of(proof, "asked") == "frame 0"
    assert not leaders(frames=frames.format(0))


def test_a_describe_shows_another_leader_of_an_epoch() -> None:
    reads = "broker-1 showed t-0 leader 1 isr 1 leader-epoch {} at 1100..1101"
    assert leaders(reads=reads.format(1))
    assert not leaders(reads=reads.format(0))


def test_a_leader_is_a_replica_and_in_the_isr_unless_elected_uncleanly() -> None:
    (stranger,) = leaders(LOG + "11 change t-0 isr 3 leader 3")["t-0"]
    assert_proof(stranger, "not among its replicas", leader=3, ids="[1, 2]", metadata_offset=11)
    (behind,) = leaders(LOG + "11 change t-0 isr 2 leader 1")["t-0"]
    assert_proof(behind, "not among its ISR", leader=1, ids="[2]", metadata_offset=11)
    assert not leaders(LOG + "11 change t-0 leader 1 recovering")
    assert not leaders(LOG + "11 change t-0 isr 2 leader -1")


def test_two_controllers_won_one_epoch() -> None:
    both = metadata_log(
        controller_1="0 leader 1000\n5 leader 1000 epoch 2",
        controller_2=f"0 leader 1000\n5 leader {1001} epoch 2",
        controller_3="0 leader 1000",
    )
    (proof,) = leaders(logs=both)["metadata"]
    assert_proof(
        proof,
        "in controller epoch {epoch} of {key}, {leader} leads (metadata offset {metadata_offset}",
        epoch=2,
        key="metadata",
        leader=1000,
        metadata_offset=5,
        node="controller-1",
        other_leader=1001,
        other_node="controller-2",
    )


def test_a_controller_says_that_it_leads_an_epoch_that_is_anothers() -> None:
    assert leaders(of_quorum=claims((3, "controller-2", 1)), logs=metadata_log(LOG))["metadata"]
    assert leaders(of_quorum=claims((3, "controller-1", 2), (3, "controller-2", 2)))["metadata"]
    assert leaders(
        frames="at 900 controller-2 begin-epoch leader 1001 epoch 1 -> ok at 901",
        logs=metadata_log(LOG),
    )["metadata"]
    named = (
        "at 900 broker-1 fetch epoch 0 from 3 -> NOT_LEADER_OR_FOLLOWER leader {} epoch 1 at 901"
    )
    assert leaders(frames=named.format(1001), logs=metadata_log(LOG))["metadata"]
    assert "metadata" not in leaders(frames=named.format(1000), logs=metadata_log(LOG))


def test_a_controller_still_claims_an_office_that_another_has_long_taken() -> None:
    def stale(*rows: tuple[float, str, int]) -> dict[str, list[Proof]]:
        return proofs(
            asked(stale_controllers, {"quorum_claims": claims(*rows), "faults": faults()}, THREE)
        )

    old, new = (1.0, "controller-1", 1), (4.0, "controller-2", 2)
    going_on = [(second, "controller-1", 1) for second in (5.0, 9.0, 12.0)]
    (proof,) = stale(old, new, *going_on, (14.0, "controller-1", 1))["metadata"]
    assert_proof(
        proof,
        "still called itself the leader of the quorum",
        node="controller-1",
        epoch=1,
        by="controller-2",
        newer_epoch=2,
        claimed=14_000,
        late=10_000,
    )
    assert not stale(old, new, *going_on, (13.9, "controller-1", 1))
    assert not stale(old, new, (60.0, "controller-2", 2))


def test_a_controller_claims_an_older_epoch_than_it_had_claimed_itself() -> None:
    def stale(*broken: tuple[str, str, int], epoch: int = 1) -> list[Proof]:
        rows = claims((4.0, "controller-1", 2), (20.0, "controller-1", epoch))
        given = {"quorum_claims": rows, "faults": faults(*broken)}
        return proofs(asked(stale_controllers, given, THREE)).get("metadata", [])

    (proof,) = stale()
    rule = "after it had done so itself in epoch {newer_epoch}"
    assert_proof(proof, rule, node="controller-1", epoch=1, newer_epoch=2)
    assert not stale(epoch=2)
    # A disk that was changed may have forgotten; one that was not, has not.
    assert not stale(("wipe", "controller-1", 10_000))
    assert stale(("wipe", "controller-2", 10_000))
    assert stale(("kill", "controller-1", 10_000))


def test_a_controller_that_wakes_up_in_office_is_given_time_to_learn() -> None:
    def stale(*woken: float) -> list[Proof]:
        rows = [(second, "controller-1", 1) for second in (1.0, 2.0, *woken)]
        table = claims(*rows, (4.0, "controller-2", 2), (60.0, "controller-2", 2))
        return proofs(
            asked(stale_controllers, {"quorum_claims": table, "faults": faults()}, THREE)
        ).get("metadata", [])

    assert not stale(60.0, 61.0, 63.0)
    assert not stale(60.0, 64.0, 68.0, 69.9)
    assert stale(60.0, 64.0, 68.0, 70.0)


def test_several_controllers_and_no_claim_is_a_doubt() -> None:
    (_, found), *_ = asked(
        stale_controllers, {"quorum_claims": claims(), "faults": faults()}, THREE
    )
    assert found.doubt
    (_, found), *_ = asked(
        stale_controllers, {"quorum_claims": claims(), "faults": faults()}, FACTS
    )
    assert not found.doubt


def went_back(log: str = LOG, frames: str = "") -> dict[str, list[Proof]]:
    return proofs(asked(epochs_that_went_back, tables(log, frames), FACTS))


def test_nothing_goes_back() -> None:
    again = "12 register 2\n13 register 2"
    beats = """
        at 100 broker-2 heartbeat epoch 12 offset 40 -> ok at 101
        at 200 broker-2 heartbeat epoch 12 offset 40 -> ok at 201
    """
    assert not went_back(LOG + again, beats)


def test_a_controller_epoch_goes_back() -> None:
    (proof,) = went_back("0 leader 1000 epoch 2\n1 topic t epoch 1")["metadata"]
    assert_proof(
        proof,
        "in the metadata log of {node}",
        node="controller-1",
        offset=0,
        epoch=2,
        next_offset=1,
        next_epoch=1,
    )
    assert source_of(proof, "next_epoch") == "metadata offset 1"


def test_a_partition_that_is_stated_again_goes_back() -> None:
    again = "12 partition t-0 replicas 1,2 isr 1 leader 1 leader-epoch {} partition-epoch {}"
    for new in ((0, 1), (1, 0)):
        (proof,) = went_back(LOG + again.format(*new))["t-0"]
        named = dict(zip(("new_leader_epoch", "new_partition_epoch"), new, strict=True))
        assert_proof(proof, "{key} had leader epoch", leader_epoch=1, partition_epoch=1, **named)
    assert not went_back(LOG + again.format(1, 1))


def test_on_zookeeper_a_partition_epoch_that_is_left_out_is_a_doubt() -> None:
    log = "5 topic t\n6 partition t-0 replicas 1,2 isr 1,2 leader 1\n"
    log += "9 change t-0 isr 1 partition-epoch {}"

    def doubted(next_epoch: int) -> bool:
        given = tables(metadata_log(zookeeper_1=log.format(next_epoch)))
        told = list(asked(epochs_that_went_back, given, ON_ZOOKEEPER))
        assert not proofs(told)
        return bool(doubts(told))

    assert doubted(2)
    assert not doubted(1)


def test_a_broker_epoch_goes_back() -> None:
    (proof,) = went_back("3 register 2 epoch-is 30\n4 register 2 epoch-is 20")["broker 2"]
    assert_proof(proof, "registered with", broker_id=2, broker_epoch=30, after_broker_epoch=20)


def test_what_a_broker_had_applied_goes_back() -> None:
    beats = """
        at 100 broker-2 on 1 heartbeat epoch 12 offset 40 -> ok at 101
        at 200 broker-2 on {} heartbeat epoch {} offset 39 -> ok at 201
    """
    (proof,) = went_back(frames=beats.format(1, 12))["broker 2"]
    assert_proof(proof, "had applied metadata offset", known=40, offset=39, frame=0, rpc_frame=10)
    assert not went_back(frames=beats.format(2, 12))  # connections may overtake each other
    assert not went_back(frames=beats.format(1, 50))


def test_an_answer_skips_an_epoch_or_goes_back() -> None:
    alter = "at 900 broker-1 alter t-0 expecting 5 isr 1 -> ok {} at 910"
    for told in (7, 4):
        (proof,) = went_back(frames=alter.format(told))["t-0"]
        epochs = {"asked_partition_epoch": 5, "told_partition_epoch": told}
        assert_proof(
            proof, "and was answered", source="broker-1", frame=0, answer_frame=1, **epochs
        )
    assert not went_back(frames=alter.format(5))
    assert not went_back(frames=alter.format(6))


def test_on_zookeeper_what_is_so_already_is_granted_at_a_later_epoch() -> None:
    def told(epoch: int) -> dict[str, list[Proof]]:
        frame = f"at 900 passed 4000 broker-1 alter t-0 expecting 5 isr 1 -> ok {epoch} at 4010"
        given = tables(metadata_log(zookeeper_1=LOG), frame)
        return proofs(asked(epochs_that_went_back, given, ON_ZOOKEEPER))

    assert not told(8)
    assert told(4)["t-0"]


def test_two_incarnations_send_heartbeats_where_brokers_register_in_zookeeper() -> None:
    def shared(*lines: str) -> dict[str, list[Proof]]:
        return proofs(asked(shared_identities, {"wire": wire("\n".join(lines))}, FACTS))

    new, old = (
        "at 900 broker-2 beats epoch 9 -> ok at 910",
        "at {} broker-2 beats epoch 3 -> {} at 950",
    )
    (proof,) = shared(new, old.format(911, "ok"))["broker 2"]
    assert_proof(proof, "had answered one with broker epoch {new}", old=3, new=9)
    assert not shared(new, old.format(911, "INVALID_INCARNATION_ID"))
    assert not shared(new, old.format(909, "ok"))
    assert not shared(new.replace("-> ok at 910", "-> nothing"), old.format(911, "ok"))
    # Another controller may not have heard of the newer one yet.
    assert not shared(new, old.format(911, "ok").replace("broker-2", "broker-2 to broker-3"))


def test_two_incarnations_are_served_under_one_id() -> None:
    def shared(*beats: str) -> dict[str, list[Proof]]:
        frames = (
            "at 100 broker-2 register -> ok 3 at 110\nat 900 broker-2 register -> ok 9 at 910\n"
        )
        return proofs(asked(shared_identities, {"wire": wire(frames + "\n".join(beats))}, FACTS))

    beat = "at {} broker-2 heartbeat epoch 3 offset 1 -> {} at 950"
    assert_proof(
        only(shared(beat.format(911, "ok")), "broker 2"),
        "answered a heartbeat of broker {broker_id}",
        target="controller-1",
        broker_id=2,
        old=3,
        reached=911,
        heartbeat_frame=20,
        registration_target="controller-1",
        new=9,
        answered=910,
        frame=10,
    )
    assert not shared(beat.format(911, "STALE_BROKER_EPOCH"))
    assert not shared(beat.format(910, "ok"))
    assert not shared("at 911 broker-2 heartbeat epoch 3 offset 1 -> nothing")
    held = "at 500 passed {} broker-2 heartbeat epoch 3 offset 1 -> ok at 950"
    assert shared(held.format(911))
    assert not shared(held.format(909))


def test_a_controller_that_was_deposed_may_not_know_the_newer_incarnation() -> None:
    frames = """
        at 900 broker-2 to {} register -> ok 9 at 910
        at 300 passed 2000 broker-2 heartbeat epoch 3 offset 1 -> ok at 2010
    """
    other = "\n8 leader 1001 epoch 2\n9 register 2 epoch 2"
    again = other + "\n12 leader 1000 epoch 3 at {}\n13 noop epoch 3 at 3000"

    def shared(more: str, registered_by: str) -> dict[str, list[Proof]]:
        log = "0 leader 1000\n3 register 2"
        both = metadata_log(controller_1=log, controller_2=log + more, controller_3=log + more)
        given = {"wire": wire(frames.format(registered_by)), "metadata_log": both}
        return proofs(asked(shared_identities, given, THREE))

    assert not shared(other, "controller-2")
    assert shared(other, "controller-1")
    assert not shared(again.format(1950), "controller-2")  # it may not have been elected yet
    assert shared(again.format(1800), "controller-2")


def test_records_of_one_transaction_of_zookeepers_have_one_offset() -> None:
    def told(log: str) -> dict[str, list[Proof]]:
        given = tables(metadata_log(zookeeper_1=log))
        return proofs(asked(epochs_that_went_back, given, ON_ZOOKEEPER))

    twice = "5 register 1\n5 unfence 1\n9 topic t"
    assert not told(twice)
    assert went_back(twice)["metadata"]
    assert told("5 register 1\n4 unfence 1")["metadata"]


def test_another_incarnation_has_a_higher_broker_epoch() -> None:
    def told(second: str) -> dict[str, list[Proof]]:
        log = f"0 leader 1000\n3 register 2 incarnation a\n9 register 2 incarnation {second}"
        return proofs(asked(epochs_that_went_back, tables(log), FACTS))

    assert_proof(
        only(told("b epoch-is 3"), "broker 2"),
        "and another incarnation of it with",
        broker_id=2,
        broker_epoch=3,
        metadata_offset=3,
        after_broker_epoch=3,
        after_metadata_offset=9,
    )
    assert not told("a epoch-is 3")  # it amends its registration
    assert told("a epoch-is 2")
    assert not told("b")


def test_a_tape_without_registrations_tells_nothing_of_identities() -> None:
    assert not doubts(asked(shared_identities, {"wire": wire()}, FACTS))
    registered = wire("at 100 broker-2 register -> ok 3 at 110")
    assert not doubts(asked(shared_identities, {"wire": registered}, FACTS))
