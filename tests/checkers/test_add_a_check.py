"""docs/add-a-check.md: its example is a kernel that finds what it says, and nothing else."""

from typing import Any

from examples import examples_of, run_example
from metadata_logs import FACTS, asked, tables, told
from proving import assert_proof

from checkers.control_plane import illegal_isr
from checkers.metadata.partition_states import PartitionHistory, PartitionVersion
from checkers.proof import Proof

TOPIC = "1 topic t\n2 partition t-0 replicas 1,2,3 isr 1,2 leader 1\n"
MOVED = "3 change t-0 replicas 1,{},3\n"


def _proof(history: PartitionHistory, version: PartitionVersion) -> Proof:
    named = {"key": history.key, "replicas": list(version.replicas)}
    return Proof.of("{key} has the replicas {replicas}", **named)


def test_the_example_of_the_page_finds_a_replica_that_stands_twice() -> None:
    (kernel,) = examples_of("add-a-check.md")
    names = {**vars(illegal_isr), "NAME": "repeated-replica", "_proof": _proof}
    repeated_replicas: Any = run_example(kernel, names)["repeated_replicas"]

    proofs, cases = told(asked(repeated_replicas, tables(TOPIC + MOVED.format(1)), FACTS))
    (proof,) = proofs
    assert_proof(proof, "has the replicas", key="t-0", replicas="[1, 1, 3]")
    assert cases == 2
    assert told(asked(repeated_replicas, tables(TOPIC + MOVED.format(2)), FACTS)) == ([], 2)
