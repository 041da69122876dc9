"""A proof is a rule and facts: one sentence comes of it, and it is stored and read back whole."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from fencepost.checkers.anomaly import ANOMALIES, SENTENCES, Anomaly, anomalies_of
from fencepost.checkers.proof import Fact, FactKind, Proof

WORD = Fact(kind=FactKind.WORD, name="node", value="b-2")
GONE = Proof.of(
    "operation {send} put value {value} at offset {offset} at {called}, {age} before {node} {said}",
    operations={"acknowledged": 4, "send": 3},
    values={"value": 17},
    offsets={"offset": 5},
    times={"called": 1_500_000_000},
    durations={"age": 2_000_000},
    sources={"offset": "send", "node": "send"},
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


def test_several_facts_of_one_name_are_a_list() -> None:
    proof = Proof.of("values {each} of {count}", values={"each": (18, 17), "other": ()}, count=3)
    assert proof.sentence == "values 18, 17 of 3"
    assert proof.values == (18, 17)
    whole = Proof.of("{one}, and {other}", values={"each": (9,)}, one=proof, other=proof)
    assert whole.sentence == "values 18, 17 of 3, and values 18, 17 of 3"


def test_a_moment_is_exact_and_its_rule_says_the_unit_once() -> None:
    proof = Proof.of("in [{call}, {end} s]", moments={"call": 4, "end": 6, "by": None})
    assert proof.sentence == "in [0.000000004, 0.000000006 s]"
    assert [(fact.name, fact.value, fact.words) for fact in proof.facts] == [
        ("call", 4, "0.000000004 s"),
        ("end", 6, "0.000000006 s"),
    ]


def test_ids_of_zookeeper_are_numbers_in_its_own_notation() -> None:
    proof = Proof.of("zxid {zxid}", zookeeper_ids={"zxid": 0x100000005})
    assert (proof.sentence, proof.fact("zxid")) == ("zxid 0x100000005", 0x100000005)


def test_a_clause_stands_in_its_place_and_brings_its_facts() -> None:
    clause = Proof.of("{node} knew of value {seen} (frame {frame})", frames={"frame": 8}, seen=6)
    proof = Proof.of(
        "{node} wrote {value}, though {other}",
        values=(9,),
        frames=(7, 8),
        node="b-1",
        value=9,
        other=replace(clause, facts=(*clause.facts, WORD)),
    )
    assert proof.sentence == "b-1 wrote 9, though b-2 knew of value 6 (frame 8)"
    assert proof.fact("other_node") == "b-2"
    assert proof.frames == (7, 8), "what was cited has a name now"
    assert proof.fact("seen") == 6


def test_a_fact_that_a_rule_names_is_never_taken_for_a_citation() -> None:
    shown = Proof.of("number {number}", number=1)
    assert shown.further(" of {process}", process=1).sentence == "number 1 of 1"


def test_two_clauses_about_what_was_cited_each_keep_their_own() -> None:
    one, other = (Proof.of("value {value}", values={"value": value}) for value in (18, 28))
    proof = Proof.of("{one} and {other}", values=(18, 28), one=one, other=other)
    assert proof.sentence == "value 18 and value 28"
    assert proof.values == (18, 28)


def test_clauses_that_are_joined_number_what_they_have_alike() -> None:
    each = [Proof.of("{node} has {count}", node=node, count=2) for node in ("b-1", "b-2")]
    both = Proof.of("{logs}", logs=Proof.joined(" and ", each))
    assert both.rule == "{node} has {count} and {node_2} has {count}"
    assert both.sentence == "b-1 has 2 and b-2 has 2"


def test_a_source_is_told_by_the_name_of_what_it_is() -> None:
    (node,) = [fact for fact in GONE.facts if fact.name == "node"]
    assert node.origin == (FactKind.OPERATION, 3)
    assert GONE.facts[0].origin is None


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


@pytest.mark.parametrize(
    ("ns", "said"),
    [(0, "0.000"), (4, "0.000000004"), (1_500_000_000, "1.500"), (12_345_678_901, "12.345678901")],
)
def test_a_moment_is_in_seconds_to_its_last_nanosecond(ns: int, said: str) -> None:
    proof = Proof.of("{read} at {by} s", moments={"by": ns}, operations={"read": 1})
    assert proof.sentence == f"1 at {said} s"
    assert [fact.words for fact in proof.facts if fact.name == "by"] == [f"{said} s"]


def test_a_stored_rule_that_said_nanoseconds_says_seconds() -> None:
    row = Proof.of("by {by} ns, after {call} ns", moments={"by": 7, "call": 5}).columns()
    assert Proof.of_columns(row).sentence == "by 0.000000007 s, after 0.000000005 s"
