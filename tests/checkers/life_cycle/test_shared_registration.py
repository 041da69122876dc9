"""Two living sessions with one broker id."""

from ensemble_disks import Row, disks, logged
from metadata_logs import ON_ZOOKEEPER, asked, case_count, metadata_log, proofs, sentence

from checkers.life_cycle.shared_registration import shared_registrations

LOG = "5 register 1 unfenced at 1000\n9 register 1 unfenced at 9000"
FIRST = logged("zookeeper-1", 5, "create2", "/brokers/ids/1", session=7)
SECOND = logged("zookeeper-1", 9, "create2", "/brokers/ids/1", session=8)


def found(*rows: Row) -> tuple[list[str], int]:
    given = {**disks(FIRST, SECOND, *rows), "metadata_log": metadata_log(zookeeper_1=LOG)}
    judged = list(asked(shared_registrations, given, ON_ZOOKEEPER))
    told = [one.sentence for of_key in proofs(judged).values() for one in of_key]
    return told, case_count(judged)


def test_a_session_that_writes_after_another_took_its_id() -> None:
    wrote = logged("zookeeper-1", 12, "setData", "/brokers/topics/t", session=7)
    (told,), count = found(wrote)
    assert told == sentence(
        """session 0x8 registered broker 1 at metadata offset 9, and session 0x7, which had
        registered it at metadata offset 5, still wrote at metadata offset 12"""
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
