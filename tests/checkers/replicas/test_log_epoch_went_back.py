"""D33: in a log the leader epochs grow from offset to offset."""

import pyarrow as pa
import pytest
from metadata_logs import FACTS, asked, case_count, proofs
from proving import assert_proof, only
from replica_disks import disks

from fencepost.checkers.proof import Proof
from fencepost.checkers.replicas.log_epoch_went_back import log_epochs_that_went_back


def found(text: str) -> dict[str, list[Proof]]:
    return proofs(asked(log_epochs_that_went_back, disks(text), FACTS))


def test_a_record_of_an_older_epoch_lies_behind_one_of_a_newer() -> None:
    proof = only(found("broker-1: 1@0:3 2@4:5 3@5:4 4@6:5\n"), "t-0")
    told = {"offset": 4, "behind": 5, "epoch": 5, "epoch_behind": 4, "node": "broker-1"}
    assert_proof(proof, "in leader epoch {epoch} at {offset}", **told)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("broker-1: 1@0:0 2@1:0 3@2:7\n", id="epochs grow"),
        pytest.param("broker-1: 1@0:5\nbroker-2: 1@1:4\n", id="another replica"),
        pytest.param("broker-1: 1@0:5\nbroker-1 u-1: 1@1:4\n", id="another key"),
    ],
)
def test_the_nearest_good_logs(text: str) -> None:
    assert not found(text)


def test_batches_without_an_epoch_are_left_out() -> None:
    held = disks("broker-1: 1@0:5 2@1:5 3@2:5\n")["replica_records"]
    place = held.schema.get_field_index("leader_epoch")
    epochs = pa.array([5, -1, 5], held.schema.field(place).type)
    table = held.set_column(place, held.schema.field(place), epochs)
    assert not proofs(asked(log_epochs_that_went_back, {"replica_records": table}, FACTS))


def test_a_case_is_a_log_with_records() -> None:
    text = "broker-1: 1@0:0 2@1:1\nbroker-2: 1@0:0\nbroker-1 u-1: 1@1:4\n"
    assert case_count(asked(log_epochs_that_went_back, disks(text), FACTS)) == 3


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_it_does_not_matter_where_a_table_is_cut(rows: int) -> None:
    held = disks("broker-1: 1@0:1 2@1:2 3@2:1\nbroker-2: 1@0:1\n")["replica_records"]
    cut = pa.Table.from_batches(held.to_batches(max_chunksize=rows), held.schema)
    proof = only(proofs(asked(log_epochs_that_went_back, {"replica_records": cut}, FACTS)), "t-0")
    assert (proof.fact("offset"), proof.fact("behind")) == (1, 2)
