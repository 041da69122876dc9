"""What stands under `workload`: which go together, and what cannot be, with its line."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from fencepost.harness.run.clients import tables_of
from fencepost.harness.scenario.scenario import Scenario, load_scenario
from fencepost.history.failure import UsageError
from fencepost.workloads.membership_spec import MembershipSpec
from fencepost.workloads.metadata_spec import MetadataSpec
from fencepost.workloads.produce_poll_spec import ProducePollSpec
from fencepost.workloads.transactions_spec import TransactionsSpec

THREE = """\
name: three
cluster: {brokers: 4}
topics: [{name: t, partitions: 2}]
workload:
  - kind: produce-poll
    rate: 500
  - kind: metadata
    grows: 2
  - kind: membership
    movers: 2
    replicas_min: 3
"""
ASSIGNED = """\
name: placed
cluster: {brokers: 3}
topics: [{name: t, replicas: [[1, 2]]}]
workload: [{kind: produce-poll}, {kind: membership, movers: 1}]
play:
  - await: {in_isr: {t-0: 3}}
"""


def load(tmp_path: Path, text: str) -> Scenario:
    path = tmp_path / "trial.yaml"
    path.write_text(text)
    return load_scenario(path, [])


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(UsageError) as refused:
        load(tmp_path, text)
    message = str(refused.value)
    assert "\n" not in message
    return message


def test_a_workload_of_records_may_have_one_of_metadata_and_one_of_membership(
    tmp_path: Path,
) -> None:
    scenario = load(tmp_path, THREE)
    assert scenario.workload.rate == 500
    metadata, membership = scenario.beside
    assert isinstance(metadata, MetadataSpec)
    assert metadata.grows == 2
    assert isinstance(membership, MembershipSpec)
    assert (membership.movers, membership.replicas_max) == (2, None)
    assert tables_of(scenario) == ("describes", "metadata_writes", "partition_writes")


def test_a_scenario_without_them_sets_out_to_record_none_of_their_tables(tmp_path: Path) -> None:
    scenario = load(tmp_path, "name: one\ntopics: [{name: t}]\nworkload: {kind: produce-poll}\n")
    assert scenario.beside == ()
    assert tables_of(scenario) == ()


def test_membership_alone_records_what_it_did_to_partitions(tmp_path: Path) -> None:
    assert tables_of(load(tmp_path, ASSIGNED)) == ("partition_writes",)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("movers: 2", "mover: 2", "trial.yaml:10: workload[2].mover: unknown key 'mover'; did you"),
        ("movers: 2", "movers: 3", "trial.yaml:10: workload[2].movers: each mover needs a part"),
        ("movers: 2", "movers: two", "trial.yaml:10: workload[2].movers: Input should be a valid"),
        ("movers: 2", "movers: 2\n    moves: 1", "each mover needs a move, found moves: 1 and"),
        ("replicas_min: 3", "replicas_min: 4", "trial.yaml:11: workload[2].replicas_min: 4 repl"),
        ("replicas_min: 3", "replicas_max: 5", "trial.yaml:11: workload[2].replicas_max: 5 repl"),
        ("replicas_min: 3", "replicas_max: 1", "replicas_max must be at least replicas_min"),
        ("replicas_min: 3", "cancel_share: 2", "trial.yaml:11: workload[2].cancel_share: Input"),
        ("replicas_min: 3", "rate: 0", "trial.yaml:11: workload[2].rate: Input should be greater"),
        ("kind: membership", "kind: member", "trial.yaml:9: workload[2].kind: unknown workload"),
        (
            "kind: metadata\n    grows: 2",
            "kind: membership",
            "beside it one of metadata and one of mem",
        ),
        ("grows: 2", "grows: -1", "trial.yaml:8: workload[1].grows: Input should be greater"),
        ("kind: produce-poll\n    rate: 500", "kind: metadata", "expected one workload of prod"),
    ],
)
def test_what_cannot_be_is_one_line_with_its_place(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    assert old in THREE
    message = refusal(tmp_path, THREE.replace(old, new))
    assert says in message
    assert "trial.yaml:" in message


def test_where_partitions_move_a_play_may_wait_for_any_broker_to_join(tmp_path: Path) -> None:
    assert load(tmp_path, ASSIGNED).play is not None
    still = ASSIGNED.replace(", {kind: membership, movers: 1}", "")
    assert "broker 3 has no replica of t-0" in refusal(tmp_path, still)


def test_readers_that_no_consumer_would_be_are_refused(tmp_path: Path) -> None:
    text = (
        "name: t\ntopics: [{name: t}]\nworkload:\n  kind: transactions\n  readers: [java, java]\n"
    )
    assert "2 readers for 1 consumers" in refusal(tmp_path, text)
    assert "workload.readers" in refusal(tmp_path, text.replace("[java, java]", "[sarama]"))


@pytest.mark.parametrize("spec", [ProducePollSpec, TransactionsSpec, MetadataSpec, MembershipSpec])
def test_every_word_of_a_workload_is_explained(spec: type) -> None:
    page = (Path(__file__).parents[3] / "docs" / "scenarios.md").read_text()
    explained = set(re.findall(r"`(\w+)`", page[page.index("## workload: produce-poll") :]))
    assert {field.name for field in fields(spec)} <= explained
