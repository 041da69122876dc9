"""C13, where ZooKeeper has the metadata: by the incarnations and the leader that requests name."""

from metadata_logs import ON_ZOOKEEPER, asked, metadata_log, tables, told
from proving import assert_proof
from replica_disks import faults

from fencepost.checkers.control_plane.epoch_check_bypassed import bypassed_epoch_checks
from fencepost.checkers.proof import Proof

LOG = """
    1 leader 2 at 100
    3 register 1 unfenced at 200
    5 topic t at 300
    6 partition t-0 replicas 1,2 isr 1,2 leader 1 at 400
    9 register 1 unfenced at {registered}
    20 change t-0 isr 1 at 9000
"""
ASKED = "at 8990 broker-1 to broker-2 changes t-0 isr 1 under {} -> {}"


def found(frame: str, *, registered: int = 5000) -> list[Proof]:
    log = metadata_log(zookeeper_1=LOG.format(registered=registered))
    return told(asked(bypassed_epoch_checks, tables(log, frame), ON_ZOOKEEPER))[0]


def test_an_incarnation_that_is_over_changes_an_isr() -> None:
    (proof,) = found(ASKED.format(3, "ok at 9010"))
    request = {"api": "IsrChange", "key": "t-0", "asked": 8990, "frame": 0, "target": "broker-2"}
    epochs = {"broker_id": 1, "named": 3, "in_force": 9, "offset": 9}
    refusal = {"metadata_offset": 20, "refusal": "INVALID_INCARNATION_ID"}
    assert_proof(proof, "named its sender", **request, **epochs, **refusal)
    assert found(ASKED.format(9, "ok at 9010")) == []
    # One that was answered otherwise, or not at all, made nothing for certain.
    assert found(ASKED.format(3, "INVALID_INCARNATION_ID at 9010")) == []
    assert found(ASKED.format(3, "nothing")) == []


def test_a_registration_of_a_moment_ago_may_not_be_known_to_the_controller() -> None:
    assert found(ASKED.format(3, "ok at 9010"), registered=7500) == []
    held = "at 4000 passed 8990 broker-1 to broker-2 alter t-0 expecting 0 isr 1 under 3 -> {}"
    assert found(held.format("ok 1 at 9010"), registered=7500) == []
    assert found(held.format("ok 1 at 9010"))


def test_what_a_controller_that_stood_still_cannot_know_is_not_held_against_it() -> None:
    log = metadata_log(zookeeper_1=LOG.format(registered=5000))
    for fault, target, healed, accused in (
        ("pause", "broker-2", False, False),
        ("partition", "zookeeper-1", False, False),
        # It had two seconds again, or was none that it needs.
        ("pause", "broker-2", True, True),
        ("hold", "broker-2", False, True),
        ("kill", "broker-1", False, True),
    ):
        broken = faults((fault, target, 5500), healed=healed)
        given = tables(log, ASKED.format(3, "ok at 9010"), faults=broken)
        judged = told(asked(bypassed_epoch_checks, given, ON_ZOOKEEPER))[0]
        assert bool(judged) is accused, (fault, target, healed)


def test_a_request_made_no_version_before_the_incarnation_that_it_names() -> None:
    assert found(ASKED.format(30, "ok at 9010")) == []


def test_a_controller_that_leads_changes_an_isr_without_a_request() -> None:
    """Broker 1 was granted the ISR while it led; broker 2 leads in office, and makes the same."""
    log = """
        1 leader {controller} at 100
        3 register 1 unfenced at 200
        4 register 2 unfenced at 200
        5 topic t at 300
        6 partition t-0 replicas 1,2 isr {before} leader 1 at 400
        19 change t-0 isr 1,2 at 8991
        20 change t-0 isr 2 leader 2 leader-epoch 1 at 8992
        21 change t-0 isr 1,2 at 8999
    """
    asks = "at 8990 broker-1 to broker-2 changes t-0 isr 1,2 under 3 -> ok at 9010"
    for controller, accused in ((2, False), (1, True)):
        stored = metadata_log(zookeeper_1=log.format(controller=controller, before="1"))
        judged = told(asked(bypassed_epoch_checks, tables(stored, asks), ON_ZOOKEEPER))[0]
        assert bool(judged) is accused
    # What can have made nothing else made it.
    alone = log.replace("19 change t-0 isr 1,2 at 8991", "").format(controller=2, before="2")
    assert told(
        asked(bypassed_epoch_checks, tables(metadata_log(zookeeper_1=alone), asks), ON_ZOOKEEPER)
    )[0]
