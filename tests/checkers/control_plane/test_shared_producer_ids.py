"""C24: a block of producer ids is given out once."""

import pytest
from metadata_logs import FACTS, ON_ZOOKEEPER, asked, case_count, proofs, tables
from proving import assert_proof

from fencepost.checkers.control_plane.shared_producer_ids import shared_producer_ids
from fencepost.checkers.facts import Facts
from fencepost.checkers.proof import Proof

LOG = "0 leader 1000"
FIRST = "at 3000 broker-1 allocates for 3 -> ok 1000 at 3001\n"
SECOND = "at 4000 broker-2 allocates for 4 -> {} at 4001\n"


def found(frames: str, run: Facts = FACTS) -> list[Proof]:
    return proofs(asked(shared_producer_ids, tables(LOG, frames), run)).get("metadata", [])


@pytest.mark.parametrize("run", [FACTS, ON_ZOOKEEPER])
def test_two_brokers_are_given_the_same_ids(run: Facts) -> None:
    (proof,) = found(FIRST + SECOND.format("ok 1000"), run)
    cited = {"first_id": 1000, "frame": 1, "other_frame": 11, "other_source": "broker-2"}
    assert_proof(proof, "was given the producer ids from {first_id} on", **cited)


@pytest.mark.parametrize("answer", ["ok 2000", "NOT_CONTROLLER 1000", "REQUEST_TIMED_OUT 1000"])
def test_other_ids_or_none_are_no_anomaly(answer: str) -> None:
    assert not found(FIRST + SECOND.format(answer))


def test_a_case_is_a_block_that_was_given() -> None:
    frames = FIRST + SECOND.format("ok 2000") + SECOND.format("NOT_CONTROLLER 0")
    assert case_count(asked(shared_producer_ids, tables(LOG, frames), FACTS)) == 2
    unanswered = "at 3000 broker-1 allocates for 3 -> nothing"
    assert not case_count(asked(shared_producer_ids, tables(LOG, unanswered), FACTS))
