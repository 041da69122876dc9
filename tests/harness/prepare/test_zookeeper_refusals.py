"""What an ensemble of ZooKeeper cannot do is refused with its line, before anything starts."""

from pathlib import Path

import pytest

from fencepost.clusters.systems import MAKES
from fencepost.harness.run.plan import planned
from fencepost.harness.scenario.options import RunOptions
from fencepost.harness.scenario.scenario import load_scenario
from fencepost.history.failure import UsageError

HEAD = "name: s\ncluster: {system: zookeeper}\nworkload: {kind: register}\n"


def refusal(directory: Path, text: str, *, make: str = "zookeeper") -> str:
    """The words with which a run of this is refused."""
    path = directory / "s.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as refused:
        planned(
            load_scenario(path, []),
            RunOptions(results=directory, seed=1, command="fencepost run", cluster=MAKES[make]),
            lambda _: None,
        )
    return str(refused.value)


@pytest.mark.parametrize(
    ("play", "why"),
    [
        (
            "{hold: {api: AlterPartition}}",
            "cannot do that: none of its links carries AlterPartition",
        ),
        ("{duplicate: {from: server-1}}", "they belong to their connections"),
        ("{kill: server-1}, {flip_bit: server-1}", "it lacks the ability BitFlips"),
        ("{kill: server-1}, {start: server-1, to: 3.8.4}", "the ability ChangesReleases"),
        ("{partition: {isolate: leader, by: packets}}", "run it with --host netns or docker"),
    ],
)
def test_a_step_that_it_cannot_do(tmp_path: Path, play: str, why: str) -> None:
    said = refusal(tmp_path, f"{HEAD}play: [{play}]\n")
    assert why in said
    assert "s.yaml:4: play[" in said


def test_another_make_than_its_own(tmp_path: Path) -> None:
    said = refusal(tmp_path, HEAD, make="simulated")
    assert "runs on zookeeper, which can be: zookeeper" in said


def test_a_workload_of_another_system(tmp_path: Path) -> None:
    said = refusal(tmp_path, HEAD.replace("register", "produce-poll"))
    assert "unknown workload 'produce-poll'; allowed: register" in said


@pytest.mark.parametrize("name", ["newest", "image:/opt/zookeeper", "path:/opt/zookeeper"])
def test_a_release_that_is_none(tmp_path: Path, name: str) -> None:
    said = refusal(tmp_path, HEAD.replace("zookeeper}", f"zookeeper, release: '{name}'}}"))
    assert f'"{name}" is not a release of ZooKeeper' in said


def test_a_release_that_the_scenario_is_not_about(tmp_path: Path) -> None:
    text = (
        HEAD.replace("zookeeper}", "zookeeper, release: 3.8.4}")
        + 'expect: [{valid: true, release: ">=3.9"}, {refused: it has no such message}]\n'
    )
    said = refusal(tmp_path, text)
    assert "s.yaml:4: expect[1]: it cannot be run on 3.8.4: it has no such message" in said


@pytest.mark.parametrize("kind", ["partition", "packets", "delay"])
def test_a_fault_between_nodes_where_there_is_one(tmp_path: Path, kind: str) -> None:
    alone = HEAD.replace("zookeeper}", "zookeeper, servers: 1}")
    said = refusal(tmp_path, f"{alone}nemesis: {{faults: [kill, {kind}]}}\n")
    assert f"s.yaml:4: nemesis.faults[1]: {kind}: " in said
    assert "it takes two nodes, and there is one" in said


@pytest.mark.parametrize(
    "faults",
    [
        "play: [{delay: {as: d, from: server-1, by: 20ms}}, {hold: {as: h}}]",
        "nemesis: {faults: [partition, delay]}",
    ],
)
def test_late_and_lost_bytes_are_possible(tmp_path: Path, faults: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(f"{HEAD}{faults}\n")
    options = RunOptions(results=tmp_path, seed=1, command="", cluster=MAKES["zookeeper"])
    scenario = planned(load_scenario(path, []), options, lambda _: None).scenario
    assert scenario.play is not None or scenario.mix is not None
