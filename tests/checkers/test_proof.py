"""A proof is a rule and facts: one sentence comes of it, and it is stored and read back whole."""

import json

import pyarrow as pa
import pytest

from checkers.anomaly import ANOMALIES, SENTENCES, Anomaly, anomalies_of
from checkers.proof import Fact, FactKind, Proof

GONE = Proof.of(
    "operation {send} put value {value} at offset {offset} at {called}, {age} before {node} {said}",
    operations={"acknowledged": 4, "send": 3},
    values={"value": 17},
    offsets={"offset": 5},
    times={"called": 1_500_000_000},
    durations={"age": 2_000_000},
    sources={"offset": "operation 3"},
    node="broker-1",
    said="{no more}",
)


def anomaly(proof: Proof) -> Anomaly:
    return Anomaly(check="lost-write", key="t-0", allowed=False, proof=proof)


def test_the_sentence_is_the_rule_with_its_facts() -> None:
    assert GONE.sentence == (
        "operation 3 put value 17 at offset 5 at 1.500 s, 0.002 s before broker-1 {no more}"
    )


def test_what_is_to_be_looked_up_is_told_by_the_kinds_of_the_facts() -> None:
    assert (GONE.operations, GONE.offsets, GONE.values, GONE.frames) == ((4, 3), (5,), (17,), ())
    assert GONE.fact("node") == "broker-1"
    (offset,) = [fact for fact in GONE.facts if fact.name == "offset"]
    assert offset == Fact(kind=FactKind.OFFSET, name="offset", value=5, source="operation 3")
    with pytest.raises(KeyError):
        GONE.fact("age of the moon")


def test_a_proof_goes_on_and_keeps_its_facts() -> None:
    further = GONE.further("; {count} in all", count=2)
    assert further.sentence == f"{GONE.sentence}; 2 in all"
    assert further.facts[:-1] == GONE.facts


def test_tables_and_json_give_back_what_was_stored() -> None:
    row = anomaly(GONE).row()
    assert Anomaly.of_row(json.loads(json.dumps(row))) == anomaly(GONE)
    table = pa.Table.from_pylist([row], schema=ANOMALIES)
    assert list(anomalies_of(table)) == [anomaly(GONE)]
    assert table["detail"].to_pylist() == [GONE.sentence]


def test_what_earlier_versions_stored_reads_as_it_did() -> None:
    table = pa.Table.from_pylist([anomaly(GONE).row()], schema=ANOMALIES).select(SENTENCES.names)
    (old,) = anomalies_of(table.cast(SENTENCES))
    assert old.detail == GONE.sentence
    assert (old.operations, old.offsets, old.values) == (GONE.operations, GONE.offsets, GONE.values)
    as_json = json.loads(json.dumps({name: anomaly(GONE).row()[name] for name in SENTENCES.names}))
    assert Anomaly.of_row(as_json) == old
