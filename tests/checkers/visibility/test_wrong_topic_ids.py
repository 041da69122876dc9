"""V9: reads of metadata that show a topic with an id that it had not, or had no more."""

from dataclasses import replace

import pytest
from metadata_logs import FACTS, ON_ZOOKEEPER, asked, case_count, describes, doubts, proofs, tables
from metadata_logs import metadata_log as logs
from proving import assert_proof

from fencepost.checkers.facts import Facts, Judged
from fencepost.checkers.proof import Proof
from fencepost.checkers.visibility.wrong_topic_id import wrong_topic_ids

LOG = """
    1 register 1 unfenced at 0
    2 topic t as id-a at 1000
    3 partition t-0 replicas 1,2 isr 1,2 leader 1 at 1000
    4 topic u as id-u at 2000
    5 partition u-0 replicas 1,2 isr 1,2 leader 1 at 2000
    6 delete t at 3000
    7 topic t as id-b at 4000
    8 partition t-0 replicas 1,2 isr 1,2 leader 1 at 4000
    9 noop at 9000
"""
RESTART = LOG.replace("9 noop", "9 register 1 unfenced at 6000\n    10 noop")
OLD, NEW, U = (f"leader 1 isr 1,2 at {when}" for when in ("1500..1510", "5000..5010", "2500..2510"))


def judged(reads: str, log: str = LOG, facts: Facts = FACTS) -> Judged:
    log_of = logs(**{facts.controllers[0]: log})
    return list(asked(wrong_topic_ids, tables(log_of, describes=describes(reads)), facts))


def accused(reads: str, log: str = LOG, key: str = "t-0") -> list[Proof]:
    return proofs(judged(reads, log)).get(key, [])


def test_an_id_that_nobody_made_is_none() -> None:
    (proof,) = accused(f"broker-1 showed t-0 as id-x {NEW}")
    assert_proof(proof, "has no topic of that id", node="broker-1", key="t-0", topic_id="id-x")
    right = f"broker-1 showed t-0 as id-a {OLD}\nbroker-2 showed t-0 as id-b {NEW}"
    assert not accused(right)
    assert case_count(judged(right)) == 2


def test_an_id_is_under_one_name() -> None:
    (proof,) = accused(f"broker-1 showed t-0 as id-u {U}")
    assert_proof(proof, "gave to {other_topic}", other_topic="u", metadata_offset=4)
    assert not accused(f"broker-1 showed u-0 as id-u {U}", key="u-0")


def test_an_id_is_not_shown_before_it_is_made() -> None:
    (proof,) = accused("broker-1 showed t-0 as id-b leader 1 isr 1,2 at 3000..3800")
    assert_proof(proof, "was appended no earlier than {earliest}", returned=3800, metadata_offset=7)
    # Its clock may be a tenth of a second behind.
    assert not accused("broker-1 showed t-0 as id-b leader 1 isr 1,2 at 3000..3950")


def test_an_incarnation_does_not_go_back_to_a_dead_topic() -> None:
    back = (
        f"broker-1 showed t-0 as id-b {NEW}\n"
        "broker-1 showed t-0 as id-a leader 1 isr 1,2 at 7000..7010"
    )
    (proof,) = accused(back)
    assert_proof(proof, "later topic id {newer_id}", newer_id="id-b", newer_read=0, read=1)
    assert not accused(back, log=RESTART)
    assert not accused(back.replace("broker-1 showed t-0 as id-b", "broker-2 showed t-0 as id-b"))
    # One that was called before the other one had returned may have been answered before.
    assert not accused(back.replace("7000..7010", "5005..5020"))


@pytest.mark.parametrize("shown", ["at 1500..9000", "at 8950..9100"])
def test_a_read_that_returned_beyond_the_end_of_the_log_says_nothing(shown: str) -> None:
    assert not accused(f"broker-1 showed t-0 as id-x leader 1 isr 1,2 {shown}")
    assert case_count(judged(f"broker-1 showed t-0 as id-x leader 1 isr 1,2 {shown}")) == 0


def test_where_the_log_does_not_know_all_ids_nothing_is_judged() -> None:
    strange = f"broker-1 showed t-0 as id-x {NEW}"
    snapshot = "\n".join(f"snapshot {line.strip()}" for line in LOG.strip().splitlines()[:5])
    assert not accused(strange, log=f"{snapshot}\n9 noop at 9000")
    migrating = replace(FACTS, node_ids={**FACTS.node_ids, "zookeeper-1": 2001})
    assert not judged(strange, facts=migrating)
    assert doubts(asked(wrong_topic_ids, tables("", describes=describes(strange)), FACTS))


def test_in_zookeeper_a_topic_may_have_been_made_without_an_id() -> None:
    later = LOG.replace("id-a", "0x1a")
    strange = f"broker-1 showed t-0 as id-x {NEW}"
    assert not proofs(judged(strange, log=later, facts=ON_ZOOKEEPER))
    assert proofs(judged(strange, log=LOG, facts=ON_ZOOKEEPER))
    zeros = f"broker-1 showed t-0 as {'A' * 22} {NEW}"
    assert case_count(judged(zeros, facts=ON_ZOOKEEPER)) == 0
