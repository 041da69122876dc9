"""D31: under one producer id and epoch, a log has records in the order in which they were sent."""

import pyarrow as pa
import pytest
from metadata_logs import FACTS, asked, case_count, proofs
from proving import assert_proof, only
from replica_disks import disks

from fencepost.checkers.proof import Proof
from fencepost.checkers.replicas.out_of_sequence import out_of_sequence
from fencepost.checkers.sources import source_of
from fencepost.history.segment_format import PROCESS_SHIFT

ONE, TWO = (process << PROCESS_SHIFT for process in (1, 2))


def log(*records: str, node: str = "broker-1") -> str:
    return f"{node}: {' '.join(records)}\n"


def found(text: str) -> dict[str, list[Proof]]:
    return proofs(asked(out_of_sequence, disks(text), FACTS))


def test_two_producers_have_one_id() -> None:
    text = log(f"{ONE}@0 by 7/0", f"{TWO}@1 by 7/0", f"{ONE + 1}@4 by 7/0")
    told = {"offset": 1, "behind": 4, "producer_id": 7, "process": 2, "other_process": 1}
    assert_proof(only(found(text), "t-0"), "of process {other_process}", **told)


@pytest.mark.parametrize("second", [ONE + 1, ONE])
def test_a_record_stands_there_twice_or_too_late(second: int) -> None:
    text = log(f"{ONE + 1}@3 by 7/0", f"{second}@5 by 7/0")
    told = {"offset": 3, "behind": 5, "value": ONE + 1, "value_behind": second}
    assert_proof(only(found(text), "t-0"), "which was sent no later", **told)


@pytest.mark.parametrize(
    "records",
    [
        pytest.param([f"{ONE}@0 by 7/0", f"{ONE + 5}@1 by 7/0"], id="others went elsewhere"),
        pytest.param([f"{TWO}@0 by 7/0", f"{ONE}@1 by 8/0", f"{ONE}@2 by 9/0"], id="other ids"),
        pytest.param([f"{ONE + 1}@0 by 7/0", f"{ONE + 1}@1 by 7/1"], id="another epoch"),
        pytest.param([f"{ONE + 9}@0 by 7/0", f"{TWO}@1 by 7/0"], id="it goes on"),
        pytest.param([f"{ONE}@0", f"{ONE}@1"], id="without idempotence"),
        pytest.param([f"{ONE}@0 by 7/0", "marker@1 by 7/0", f"{ONE + 1}@2 by 7/0"], id="a marker"),
    ],
)
def test_what_one_client_may_do(records: list[str]) -> None:
    assert not found(log(*records))


def test_logs_of_other_replicas_and_keys_are_others() -> None:
    others = log(f"{ONE}@1 by 7/0", node="broker-2") + log(f"{ONE}@1 by 7/0", node="broker-1 u-1")
    assert not found(log(f"{ONE + 1}@0 by 7/0") + others)


def test_a_case_is_an_epoch_of_a_producer_in_a_key() -> None:
    one = log(f"{ONE}@0 by 7/0", f"{TWO}@1 by 8/0", f"{TWO + 1}@2 by 8/1")
    both = one + log(f"{ONE}@0 by 7/0", node="broker-2")
    assert case_count(asked(out_of_sequence, disks(both), FACTS)) == 3


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_it_does_not_matter_where_a_table_is_cut(rows: int) -> None:
    text = log(f"{ONE}@0 by 7/0", f"{TWO}@1 by 8/0", f"{ONE + 1}@2 by 7/0", f"{TWO}@3 by 8/0")
    held = disks(text)["replica_records"]
    cut = pa.Table.from_batches(held.to_batches(max_chunksize=rows), held.schema)
    assert len(list(source_of(cut)(("key",)))) == -(-len(held) // rows)
    proof = only(proofs(asked(out_of_sequence, {"replica_records": cut}, FACTS)), "t-0")
    assert (proof.fact("offset"), proof.fact("behind")) == (1, 3)
