"""Two living sessions with one broker id."""

from ensemble_disks import Row, disks, logged
from metadata_logs import ON_ZOOKEEPER, asked, case_count, metadata_log, told
from proving import assert_proof

from fencepost.checkers.life_cycle.shared_registration import shared_registrations
from fencepost.checkers.proof import Proof

LOG = "5 register 1 unfenced at 1000\n9 register 1 unfenced at 9000"
FIRST = logged("zookeeper-1", 5, "create2", "/brokers/ids/1", session=7)
SECOND = logged("zookeeper-1", 9, "create2", "/brokers/ids/1", session=8)


def found(*rows: Row) -> tuple[list[Proof], int]:
    given = {**disks(FIRST, SECOND, *rows), "metadata_log": metadata_log(zookeeper_1=LOG)}
    return told(asked(shared_registrations, given, ON_ZOOKEEPER))


def test_a_session_that_writes_after_another_took_its_id() -> None:
    wrote = logged("zookeeper-1", 12, "setData", "/brokers/topics/t", session=7)
    (proof,), count = found(wrote)
    assert_proof(
        proof,
        "still wrote at metadata offset",
        session=8,
        broker_id=1,
        metadata_offset=9,
        other=7,
        before=5,
        zxid=12,
    )
    assert count == 1


def test_a_session_that_ends_or_is_refused_later_is_no_living_one() -> None:
    ended = logged("zookeeper-1", 12, "closeSession", session=7)
    refused = logged("zookeeper-1", 13, "error", session=7)
    before = logged("zookeeper-1", 8, "setData", "/brokers/topics/t", session=7)
    assert found(before, ended, refused) == ([], 1)


def test_one_session_may_register_again() -> None:
    again = {**SECOND, "session": 7}
    given = {**disks(FIRST, again), "metadata_log": metadata_log(zookeeper_1=LOG)}
    assert case_count(asked(shared_registrations, given, ON_ZOOKEEPER)) == 0
