"""A controller that goes on deciding after another was elected."""

from ensemble_disks import disks, logged
from metadata_logs import ON_ZOOKEEPER, asked, metadata_log, told
from proving import assert_proof

from fencepost.checkers.control_plane.deposed_controller_write import deposed_controller_writes
from fencepost.checkers.proof import Proof

LOG = """
    1 register 1 unfenced
    2 register 2 unfenced
    3 leader 1 epoch 1
    4 topic t
    5 partition t-0 replicas 1,2 isr 1,2 leader 1
    6 leader 2 epoch 2
    7 change t-0 {change}
"""
ELECTS = "isr 2 leader 2 leader-epoch 1"
SHRINKS = "isr 1"
SESSIONS = {1: 71, 2: 72, 3: 71, 4: 71, 5: 71, 6: 72}


def found(change: str, *, by: int) -> tuple[list[Proof], int]:
    rows = [
        logged("zookeeper-1", zxid, "setData", "/z", session=session)
        for zxid, session in {**SESSIONS, 7: by}.items()
    ]
    log = metadata_log(zookeeper_1=LOG.format(change=change))
    given = {**disks(*rows), "metadata_log": log}
    return told(asked(deposed_controller_writes, given, ON_ZOOKEEPER))


def test_a_decision_of_the_controller_before_the_present_one() -> None:
    (proof,), count = found(ELECTS, by=71)
    assert_proof(
        proof,
        "wrote the state of {key}",
        broker_id=1,
        epoch=1,
        elected=3,
        key="t-0",
        metadata_offset=7,
        leader=2,
        leader_epoch=1,
        isr="[2]",
        other=2,
        other_epoch=2,
        deposed=6,
    )
    assert count == 1


def test_the_controller_in_office_decides() -> None:
    assert found(ELECTS, by=72) == ([], 1)


def test_a_leader_that_was_the_controller_once_writes_its_own_isr() -> None:
    assert found(SHRINKS, by=71) == ([], 0)


def test_a_session_that_never_was_the_controllers_is_not_judged() -> None:
    assert found(ELECTS, by=99) == ([], 0)
