"""C4, C5, C6 and C14: one leader an epoch, epochs that grow, one incarnation an id."""

import pyarrow as pa
from metadata_logs import (
    FACTS,
    asked,
    describes,
    doubts,
    facts,
    metadata_log,
    proofs,
    said,
    sentence,
    tables,
    wire,
)

from checkers.control_plane.epochs import epochs_that_went_back
from checkers.control_plane.shared_identity import shared_identities
from checkers.control_plane.stale_controller import stale_controllers
from checkers.control_plane.two_leaders import two_leaders
from checkers.proof import Proof
from history.cluster_schema import QUORUM_CLAIMS

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
) -> dict[str, list[str]]:
    given = tables(
        log if logs is None else logs,
        frames,
        describes=describes(reads),
        quorum_claims=claims() if of_quorum is None else of_quorum,
    )
    return said(asked(two_leaders, given, THREE if logs is not None else FACTS))


def test_what_everybody_says_agrees() -> None:
    assert not leaders(
        frames="at 900 broker-1 alter t-0 expecting 0 isr 1 -> ok 1 at 910",
        reads="broker-2 showed t-0 leader 2 isr 2 leader-epoch 1 at 1100..1101",
        of_quorum=claims((1, "controller-1", 1)),
    )


def test_a_broker_asks_as_the_leader_of_an_epoch_that_is_anothers() -> None:
    frames = "at 1100 broker-1 alter t-0 expecting 1 isr 1 leader-epoch {} -> nothing"
    assert leaders(frames=frames.format(1))["t-0"] == [
        sentence(
            """
            in leader epoch 1 of t-0, 2 leads (metadata offset 10), and 1 does (it sent an
            AlterPartition at 1.100 s, frame 0)
            """
        )
    ]
    assert not leaders(frames=frames.format(0))


def test_a_describe_shows_another_leader_of_an_epoch() -> None:
    reads = "broker-1 showed t-0 leader 1 isr 1 leader-epoch {} at 1100..1101"
    assert leaders(reads=reads.format(1))
    assert not leaders(reads=reads.format(0))


def test_a_leader_is_a_replica_and_in_the_isr_unless_elected_uncleanly() -> None:
    assert (
        "which is not among its replicas [1, 2]"
        in (leaders(LOG + "11 change t-0 isr 3 leader 3")["t-0"][0])
    )
    assert (
        "which is not among its ISR [2]"
        in (leaders(LOG + "11 change t-0 isr 2 leader 1")["t-0"][0])
    )
    assert not leaders(LOG + "11 change t-0 leader 1 recovering")
    assert not leaders(LOG + "11 change t-0 isr 2 leader -1")


def test_two_controllers_won_one_epoch() -> None:
    both = metadata_log(
        controller_1="0 leader 1000\n5 leader 1000 epoch 2",
        controller_2=f"0 leader 1000\n5 leader {1001} epoch 2",
        controller_3="0 leader 1000",
    )
    assert leaders(logs=both)["metadata"][0].startswith(
        "in controller epoch 2 of metadata, 1000 leads (metadata offset 5 on controller-1), and "
        "1001 does"
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
        return proofs(asked(stale_controllers, {"quorum_claims": claims(*rows)}, THREE))

    old, new = (1.0, "controller-1", 1), (4.0, "controller-2", 2)
    going_on = [(second, "controller-1", 1) for second in (5.0, 9.0, 12.0)]
    (proof,) = stale(old, new, *going_on, (14.0, "controller-1", 1))["metadata"]
    assert (proof.fact("node"), proof.fact("epoch")) == ("controller-1", 1)
    assert (proof.fact("by"), proof.fact("newer_epoch")) == ("controller-2", 2)
    assert (proof.fact("claimed"), proof.fact("late")) == (14_000_000_000, 10_000_000_000)
    assert not stale(old, new, *going_on, (13.9, "controller-1", 1))
    assert not stale(old, new, (60.0, "controller-2", 2))
    assert not stale((4.0, "controller-1", 2), (20.0, "controller-1", 1))


def test_a_controller_that_wakes_up_in_office_is_given_time_to_learn() -> None:
    def stale(*woken: float) -> list[str]:
        rows = [(second, "controller-1", 1) for second in (1.0, 2.0, *woken)]
        table = claims(*rows, (4.0, "controller-2", 2), (60.0, "controller-2", 2))
        return said(asked(stale_controllers, {"quorum_claims": table}, THREE)).get("metadata", [])

    assert not stale(60.0, 61.0, 63.0)
    assert not stale(60.0, 64.0, 68.0, 69.9)
    assert stale(60.0, 64.0, 68.0, 70.0)


def test_several_controllers_and_no_claim_is_a_doubt() -> None:
    (_, found), *_ = asked(stale_controllers, {"quorum_claims": claims()}, THREE)
    assert found.doubt
    (_, found), *_ = asked(stale_controllers, {"quorum_claims": claims()}, FACTS)
    assert not found.doubt


def went_back(log: str = LOG, frames: str = "") -> dict[str, list[str]]:
    return said(asked(epochs_that_went_back, tables(log, frames), FACTS))


def test_nothing_goes_back() -> None:
    again = "12 register 2\n13 register 2"
    beats = """
        at 100 broker-2 heartbeat epoch 12 offset 40 -> ok at 101
        at 200 broker-2 heartbeat epoch 12 offset 40 -> ok at 201
    """
    assert not went_back(LOG + again, beats)


def test_a_controller_epoch_goes_back() -> None:
    assert went_back("0 leader 1000 epoch 2\n1 topic t epoch 1")["metadata"] == [
        sentence(
            """
            in the metadata log of controller-1, offset 0 of controller epoch 2 is followed
            by offset 1 of controller epoch 1
            """
        )
    ]


def test_a_partition_that_is_stated_again_goes_back() -> None:
    again = "12 partition t-0 replicas 1,2 isr 1 leader 1 leader-epoch {} partition-epoch {}"
    assert went_back(LOG + again.format(0, 1))["t-0"]
    assert went_back(LOG + again.format(1, 0))["t-0"]
    assert not went_back(LOG + again.format(1, 1))


def test_a_broker_epoch_goes_back() -> None:
    assert went_back("3 register 2 epoch-is 30\n4 register 2 epoch-is 20")["broker 2"]


def test_what_a_broker_had_applied_goes_back() -> None:
    beats = """
        at 100 broker-2 on 1 heartbeat epoch 12 offset 40 -> ok at 101
        at 200 broker-2 on {} heartbeat epoch {} offset 39 -> ok at 201
    """
    assert went_back(frames=beats.format(1, 12))["metadata"]
    assert not went_back(frames=beats.format(2, 12))  # connections may overtake each other
    assert not went_back(frames=beats.format(1, 50))


def test_an_answer_skips_an_epoch_or_goes_back() -> None:
    alter = "at 900 broker-1 alter t-0 expecting 5 isr 1 -> ok {} at 910"
    assert went_back(frames=alter.format(7))["metadata"]
    assert went_back(frames=alter.format(4))["metadata"]
    assert not went_back(frames=alter.format(5))
    assert not went_back(frames=alter.format(6))


def test_two_incarnations_are_served_under_one_id() -> None:
    def shared(*beats: str) -> dict[str, list[str]]:
        frames = (
            "at 100 broker-2 register -> ok 3 at 110\nat 900 broker-2 register -> ok 9 at 910\n"
        )
        return said(asked(shared_identities, {"wire": wire(frames + "\n".join(beats))}, FACTS))

    beat = "at {} broker-2 heartbeat epoch 3 offset 1 -> {} at 950"
    assert shared(beat.format(911, "ok"))["broker 2"] == [
        sentence(
            """
            controller-1 answered a heartbeat of broker 2 with broker epoch 3, passed on to it at
            0.911 s (frame 20), after controller-1 had registered that broker with broker epoch 9
            at 0.910 s (frame 10)
            """
        )
    ]
    assert not shared(beat.format(911, "STALE_BROKER_EPOCH"))
    assert not shared(beat.format(910, "ok"))
    assert not shared("at 911 broker-2 heartbeat epoch 3 offset 1 -> nothing")
    held = "at 500 passed {} broker-2 heartbeat epoch 3 offset 1 -> ok at 950"
    assert shared(held.format(911))
    assert not shared(held.format(909))


def test_another_incarnation_has_a_higher_broker_epoch() -> None:
    def told(second: str) -> dict[str, list[str]]:
        log = f"0 leader 1000\n3 register 2 incarnation a\n9 register 2 incarnation {second}"
        return said(asked(epochs_that_went_back, tables(log), FACTS))

    assert told("b epoch-is 3")["broker 2"] == [
        sentence("""
            broker 2 registered with broker epoch 3 at metadata offset 3, and another incarnation
            of it with 3 at metadata offset 9
        """)
    ]
    assert not told("a epoch-is 3")  # it amends its registration
    assert told("a epoch-is 2")
    assert not told("b")


def test_a_tape_without_registrations_tells_nothing_of_identities() -> None:
    assert not doubts(asked(shared_identities, {"wire": wire()}, FACTS))
    registered = wire("at 100 broker-2 register -> ok 3 at 110")
    assert not doubts(asked(shared_identities, {"wire": registered}, FACTS))
