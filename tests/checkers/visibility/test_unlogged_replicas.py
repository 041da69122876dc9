"""V10: reads of metadata that show a partition, or replicas, that the topic never had."""

from dataclasses import replace

import pyarrow as pa
import pytest
from metadata_logs import FACTS, ON_ZOOKEEPER, asked, case_count, describes, doubts, proofs, tables
from metadata_logs import metadata_log as logs
from proving import assert_proof

from fencepost.checkers.facts import Facts, Judged
from fencepost.checkers.proof import Proof
from fencepost.checkers.visibility.unlogged_replicas import unlogged_replicas
from fencepost.history.request_schema import DESCRIBES

LOG = """
    1 register 1 unfenced at 0
    2 topic t at 1000
    3 partition t-0 replicas 1,2 isr 1,2 leader 1 at 1000
    4 change t-0 replicas 1,2,3 adding 3 at 3000
    9 noop at 9000
"""


def judged(
    replicas: list[int],
    *,
    at_ms: int = 5000,
    key: str = "t-0",
    topic_id: str = "id-t",
    log: str = LOG,
    facts: Facts = FACTS,
) -> Judged:
    line = f"broker-1 showed {key} as {topic_id} leader 1 isr 1 at {at_ms}..{at_ms + 10}"
    rows = [row | {"replicas": replicas} for row in describes(line).to_pylist()]
    shown = pa.Table.from_pylist(rows, schema=DESCRIBES)
    log_of = logs(**{facts.controllers[0].replace("-", "_"): log})
    return list(asked(unlogged_replicas, tables(log_of, describes=shown), facts))


def accused(*args: list[int], key: str = "t-0", **others: object) -> list[Proof]:
    return proofs(judged(*args, key=key, **others)).get(key, [])  # type: ignore[arg-type]


@pytest.mark.parametrize("facts", [FACTS, ON_ZOOKEEPER])
def test_replicas_that_a_partition_never_had(facts: Facts) -> None:
    (proof,) = accused([1, 2, 9], facts=facts)
    assert_proof(proof, "never had these", node="broker-1", key="t-0", replicas="[1, 2, 9]")
    assert not accused([2, 1], facts=facts), "it is behind, and names another one first"
    assert not accused([1, 2, 3], facts=facts)
    assert not accused([], facts=facts)
    assert case_count(judged([1, 2], facts=facts)) == 1


def test_replicas_that_it_was_given_afterwards() -> None:
    (proof,) = accused([1, 2, 3], at_ms=2000)
    assert_proof(proof, "was given these no earlier than {earliest}", returned=2010)
    assert not accused([1, 2, 3], at_ms=2950), "clocks may differ by that"


def test_on_zookeeper_brokers_are_told_what_a_move_leaves_before_it_is_written() -> None:
    for replicas, at_ms in (([1, 2, 3], 2000), ([2, 3], 5000)):
        assert accused(replicas, at_ms=at_ms)
        assert not accused(replicas, at_ms=at_ms, facts=ON_ZOOKEEPER)


def test_a_partition_that_the_topic_never_had() -> None:
    (proof,) = accused([1, 2], key="t-7")
    assert_proof(proof, "never had that partition", key="t-7")
    assert not accused([1, 2], key="t-7", topic_id="id-x"), "wrong-topic-id judges that"


def test_what_no_log_tells_of_is_not_judged() -> None:
    assert not case_count(judged([9], at_ms=9500))
    assert not case_count(judged([9], log="snapshot 1 topic t\n" + LOG))
    migrating = replace(FACTS, node_ids={**FACTS.node_ids, "zookeeper-1": 2001})
    assert not case_count(judged([9], facts=migrating))
    assert doubts(judged([9], log=""))
