"""C25: what controllers told as the high watermark of the metadata log."""

import pytest
from metadata_logs import FACTS, asked, case_count, facts, metadata_log, proofs, tables
from proving import assert_proof, only

from fencepost.checkers.control_plane.metadata_watermark_ahead import metadata_watermarks_ahead
from fencepost.checkers.facts import Facts
from fencepost.checkers.proof import Proof

THREE = facts(controllers=3)
FIVE = facts(controllers=5)
RECORDS = "3 noop at 500\n4 noop at 800\n5 noop at 7000\n6 noop at 9000"
LOG = metadata_log(**{f"controller_{number}": RECORDS for number in range(1, 6)})
TOLD = "at 1000 broker-1 fetch epoch 1 from 3 -> ok watermark {} at 1500"


def fetched(voter: int, offset: int, *, how: str = "at 900") -> str:
    return f"{how} controller-{voter} fetch epoch 1 from {offset} -> nothing\n"


def found(frames: str, run: Facts = THREE) -> dict[str, list[Proof]]:
    return proofs(asked(metadata_watermarks_ahead, tables(LOG, frames), run))


def test_no_majority_can_have_what_was_told() -> None:
    proof = only(found(fetched(2, 4) + fetched(3, 3) + TOLD.format(5)), "metadata")
    assert_proof(proof, "fetched from no higher offset", high_watermark=5, limit=4, frame=21)


@pytest.mark.parametrize(
    ("frames", "run"),
    [
        pytest.param(fetched(2, 4), THREE, id="the leader and one other have it"),
        pytest.param(fetched(2, 5), THREE, id="a late answer tells less"),
        pytest.param(fetched(2, 4) + fetched(3, 4), FIVE, id="of five, two others"),
        pytest.param(fetched(1, 4), THREE, id="from an earlier leader"),
    ],
)
def test_what_a_majority_has_may_be_told(frames: str, run: Facts) -> None:
    assert not found(frames + TOLD.format(4), run)


@pytest.mark.parametrize(
    ("frames", "run"),
    [
        pytest.param("", THREE, id="nobody has fetched"),
        pytest.param(fetched(2, 4), FIVE, id="of five, one other has it"),
        pytest.param(fetched(2, 4, how="at 1600"), THREE, id="too late"),
        pytest.param(fetched(2, 4, how="at 900 passed 1600"), THREE, id="held until too late"),
        pytest.param(fetched(2, 4, how="at 900 held"), THREE, id="never passed on"),
        pytest.param("at 900 broker-2 fetch epoch 1 from 4 -> nothing\n", THREE, id="no voter"),
    ],
)
def test_what_no_majority_has_may_not_be_told(frames: str, run: Facts) -> None:
    assert only(found(frames + TOLD.format(4), run), "metadata").fact("high_watermark") == 4


def test_a_record_that_is_appended_later_was_not_committed() -> None:
    proof = only(found(TOLD.format(6), FACTS), "metadata")
    assert_proof(proof, "was appended only later", high_watermark=6, limit=5, frame=1)
    assert not found(TOLD.format(5), FACTS)


def test_an_answer_younger_than_the_log_is_judged_by_fetches_alone() -> None:
    young = "at 9500 broker-1 fetch epoch 1 from 3 -> ok watermark 8 at 9600"
    assert not found(young, FACTS)
    assert found(young, THREE)


def test_no_refusal_and_nothing_that_the_proxy_made_up_tells_anything() -> None:
    refused = TOLD.format(9).replace("-> ok", "-> NOT_LEADER_OR_FOLLOWER")
    assert not found(refused)
    assert not found(TOLD.format(9) + " by the proxy")


def test_a_case_is_an_answer() -> None:
    frames = fetched(2, 4) + TOLD.format(4) + "\n" + TOLD.format(3)
    assert case_count(asked(metadata_watermarks_ahead, tables(LOG, frames), THREE)) == 2
