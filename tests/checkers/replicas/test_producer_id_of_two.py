"""D31: a producer id and epoch are one producer's."""

import pytest
from metadata_logs import FACTS, asked, case_count, proofs
from proving import assert_proof, only
from replica_disks import disks

from checkers.proof import Proof
from checkers.replicas.producer_id_of_two import producer_ids_of_two
from history.segment_format import PROCESS_SHIFT

ONE, TWO = (process << PROCESS_SHIFT for process in (1, 2))


def log(*records: str, node: str = "broker-1") -> str:
    return f"{node}: {' '.join(records)}\n"


def found(text: str) -> dict[str, list[Proof]]:
    return proofs(asked(producer_ids_of_two, disks(text), FACTS))


def test_a_process_stands_between_two_records_of_another_under_one_id() -> None:
    text = log(f"{ONE}@0 by 7/0", f"{TWO}@1 by 7/0", f"{ONE + 1}@4 by 7/0")
    told = {"before": 0, "other": 1, "behind": 4, "producer_id": 7, "process": 1}
    assert_proof(only(found(text), "t-0"), "all of producer id {producer_id}", **told)


@pytest.mark.parametrize(
    "records",
    [
        pytest.param([f"{ONE}@0 by 7/0", f"{TWO}@1 by 8/0", f"{ONE + 1}@2 by 7/0"], id="two ids"),
        pytest.param([f"{ONE}@0 by 7/0", f"{TWO}@1 by 7/1", f"{ONE + 1}@2 by 7/0"], id="epochs"),
        pytest.param([f"{ONE}@0 by 7/0", f"{ONE + 1}@1 by 7/0", f"{TWO}@2 by 7/0"], id="goes on"),
        pytest.param([f"{ONE}@0", f"{TWO}@1", f"{ONE + 1}@2"], id="without idempotence"),
        pytest.param([f"{ONE}@0 by 7/0", "marker@1 by 7/0", f"{ONE + 1}@2 by 7/0"], id="a marker"),
    ],
)
def test_what_one_client_may_do(records: list[str]) -> None:
    assert not found(log(*records))


def test_records_of_two_replicas_or_keys_do_not_interleave() -> None:
    between = log(f"{TWO}@1 by 7/0", node="broker-2") + log(f"{TWO}@1 by 7/0", node="broker-1 u-1")
    assert not found(log(f"{ONE}@0 by 7/0", f"{ONE + 1}@2 by 7/0") + between)


def test_a_case_is_a_pair_in_a_key() -> None:
    one = log(f"{ONE}@0 by 7/0", f"{TWO}@1 by 8/0", f"{TWO + 1}@2 by 8/1")
    both = one + log(f"{ONE}@0 by 7/0", node="broker-2")
    assert case_count(asked(producer_ids_of_two, disks(both), FACTS)) == 3
