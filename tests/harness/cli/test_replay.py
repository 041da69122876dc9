"""A run replayed: its scenario, with the play that it performed."""

from pathlib import Path

import pytest

from fencepost.harness.cli.running import replayed
from fencepost.harness.scenario.scenario import load_scenario
from fencepost.harness.scenario.sources import find_scenario
from fencepost.history.failure import UsageError
from fencepost.history.run_directory import RunDirectory
from fencepost.nemesis.play import step_data, step_word
from fencepost.nemesis.verbs.step import OnNodes


def test_a_replay_is_the_runs_scenario_with_the_play_it_performed(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    original = load_scenario(find_scenario("smoke"), [])
    run.scenario_path.write_text(original.document.resolved())
    run.play_path.write_text(
        "# What was performed.\n- {at: 3.5s, kill: broker-2}\n- {at: 50s, start: broker-2}\n"
    )
    scenario = replayed(run, kafka="3.9.2")
    assert scenario.cluster.release == "3.9.2"
    assert scenario.workload == original.workload
    assert scenario.mix is None
    assert [(s.at_s, step_word(s)) for s in scenario.play or () if isinstance(s, OnNodes)] == [
        (3.5, "kill"),
        (50.0, "start"),
    ]
    assert scenario.time_limit_s > 50


def test_a_replay_does_not_start_a_node_that_had_died_by_itself(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    original = load_scenario(find_scenario("smoke"), [])
    run.scenario_path.write_text(original.document.resolved())
    run.play_path.write_text(
        "- {at: 1s, kill: [broker-2, broker-3]}\n"
        "- {at: 2s, start: broker-1}\n"
        "- {at: 2s, start: broker-2}\n"
        "- {at: 3s, start: broker-3}\n"
        "- {at: 4s, start: broker-2}\n"
    )
    play = replayed(run, kafka=None).play or ()
    assert [step_data(step) for step in play][1:] == [
        {"at": "2s", "start": "broker-2"},
        {"at": "3s", "start": "broker-3"},
    ]


def test_a_run_that_performed_nothing_cannot_be_replayed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="performed no play"):
        replayed(RunDirectory(tmp_path), kafka=None)
