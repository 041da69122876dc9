"""Trials as runs: recorded without a change of their world, stored, and repeated."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from sealed_runs import sealed_table

from fencepost.checkers.check import check_run
from fencepost.checkers.metadata.write_numbers import skipped_write
from fencepost.checkers.runner.tasks import InProcessTasks
from fencepost.checkers.verdict import Validity, Verdict
from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.clusters.reference.simulated.quorum_kit import QuorumKit
from fencepost.harness.cli.running import replayed
from fencepost.harness.scenario.scenario import load_scenario, parse_scenario
from fencepost.harness.scenario.sources import find_scenario
from fencepost.harness.scenario.trial_spec import Storm, TrialSpec
from fencepost.harness.scenario.yaml_file import Document
from fencepost.harness.trials.plan import TrialPlan, drawn_plan, plan_of
from fencepost.harness.trials.recorded import scenario_of
from fencepost.harness.trials.store import StoredTrial, store_trial
from fencepost.harness.trials.trial import TrialResult, run_trial
from fencepost.history.failure import UsageError
from fencepost.history.manifest import RunState, read_manifest
from fencepost.workloads.generators.topic_lives import MetadataF

pytestmark = pytest.mark.slow

STORMS = {
    Storm.WINDOWS: 2,
    Storm.RELAYS: 3,
    Storm.QUORUM: 4,
    Storm.CHAOS: 15,
    Storm.MIX: 68,
    Storm.LATE_FETCHES: 105,
}


def stored(plan: TrialPlan, root: Path, *off: str) -> StoredTrial:
    return store_trial(plan, without_rules=off, root=root, name="storm")


def judged(trial: StoredTrial) -> Verdict:
    return check_run(trial.run, session=InProcessTasks())


def violated(verdict: Verdict) -> set[str]:
    return {one.check for one in verdict.checks if one.validity is Validity.INVALID}


@pytest.mark.parametrize(
    ("storm", "seed"),
    [
        pytest.param(storm, seed, marks=[] if storm is Storm.RELAYS else pytest.mark.slow)
        for storm, seed in STORMS.items()
    ],
)
def test_a_recorded_trial_is_the_same_world(storm: Storm, seed: int, tmp_path: Path) -> None:
    plan = drawn_plan(seed)
    assert plan.storm is storm
    recorded, alone = stored(plan, tmp_path / "run").result, run_trial(plan, Rules(), digest=True)
    assert replace(recorded, cpu_s=0.0) == replace(alone, cpu_s=0.0)


def test_a_lost_row_of_its_changes_is_missed(tmp_path: Path) -> None:
    trial = stored(plan_of(load_scenario(find_scenario("cut-off"), []), seed=5), tmp_path / "run")
    writes, growths = (
        sealed_table(trial.run, name) for name in ("metadata_writes", "partition_writes")
    )
    altered = [row for row, f in enumerate(writes["f"].to_pylist()) if f == MetadataF.ALTER]
    assert skipped_write(writes, growths) == ""
    without_one = [row for row in range(len(writes)) if row != altered[0]]
    assert skipped_write(writes.take(without_one), growths)
    assert "partition_writes" in read_manifest(trial.run.manifest_path).recorded


def test_what_is_found_is_the_same_and_the_schedule_goes_on(tmp_path: Path) -> None:
    plan, off = drawn_plan(2), "epoch_from_offset"
    recorded = stored(plan, tmp_path / "run", off).result
    alone = run_trial(plan, Rules().without(off))
    assert recorded.findings[0] == alone.findings[0]
    assert recorded.virtual_ns > alone.virtual_ns


def test_a_stored_trial_is_a_run_that_the_checks_judge(tmp_path: Path) -> None:
    trial = stored(drawn_plan(2), tmp_path / "run", "epoch_from_offset")
    manifest = read_manifest(trial.run.manifest_path)
    assert (manifest.seed, manifest.state) == (2, RunState.RECORDED)
    assert "--without-rule epoch_from_offset" in manifest.command
    assert manifest.versions["rules_off"] == "epoch_from_offset"
    assert sealed_table(trial.run, "faults").num_rows > 0
    told = json.loads((trial.run.root / "trial.json").read_text())
    assert told["findings"][0]["anomaly"] == "epoch-went-back"
    notes = [json.loads(one) for one in (trial.run.root / "notes.jsonl").read_text().splitlines()]
    assert {note[2] for note in notes} > {"committed-metadata", "leads", "broker-state"}
    verdict = judged(trial)
    assert {"epoch-went-back", "illegal-transition"} <= violated(verdict)


def test_k13_no_controller_tells_a_broker_anything_by_the_apis_of_before(tmp_path: Path) -> None:
    tape = sealed_table(stored(drawn_plan(2), tmp_path / "run").run, "wire")
    apis = dict(zip(tape["api_key"].to_pylist(), tape["api"].to_pylist(), strict=True))
    assert {"AlterPartition", "BrokerRegistration", "BrokerHeartbeat", "Fetch"} <= {*apis.values()}
    assert apis.keys().isdisjoint({4, 5, 6, 7})


@pytest.mark.parametrize("seed", [2, 3])
def test_a_clean_trial_is_not_accused(seed: int, tmp_path: Path) -> None:
    assert not violated(judged(stored(drawn_plan(seed), tmp_path / "run")))


@pytest.mark.parametrize("first", range(200, 240, 5))
def test_clean_trials_are_not_accused(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 5):
        trial = stored(drawn_plan(seed), tmp_path / "run")
        if not trial.result.excused:
            assert (seed, violated(judged(trial))) == (seed, set())


def cut_often(plan: TrialPlan) -> TrialPlan:
    """A trial's log has a hundred records at most: its nodes cut theirs several times."""
    settings = {**plan.cluster.settings, "fencepost.metadata.snapshot.records": "20"}
    return replace(plan, cluster=replace(plan.cluster, settings=settings))


def first_places(trial: StoredTrial) -> dict[str, tuple[bool, int]]:
    """Whether a node's log begins with a snapshot, and its first offset."""
    log = sealed_table(trial.run, "metadata_log").select(["node", "snapshot", "metadata_offset"])
    rows = reversed(log.to_pylist())
    return {row["node"]: (row["snapshot"], row["metadata_offset"]) for row in rows}


@pytest.mark.parametrize("first", range(200, 240, 5))
def test_clean_trials_whose_logs_are_cut_are_judged_whole_and_not_accused(
    first: int, tmp_path: Path
) -> None:
    for seed in range(first, first + 5):
        trial = stored(cut_often(drawn_plan(seed)), tmp_path / "run")
        assert (False, 0) in first_places(trial).values()
        if not trial.result.excused:
            assert (seed, violated(judged(trial))) == (seed, set())


@pytest.mark.parametrize("first", range(200, 240, 5))
def test_clean_trials_of_whose_logs_an_end_alone_is_known_are_not_accused(
    first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QuorumKit, "keep_metadata", lambda *_, **__: None)
    for seed in range(first, first + 5):
        trial = stored(cut_often(drawn_plan(seed)), tmp_path / "run")
        assert any(snapshot for snapshot, _ in first_places(trial).values())
        if not trial.result.excused:
            assert (seed, violated(judged(trial))) == (seed, set())


def test_a_plan_is_a_scenario_and_back() -> None:
    for seed in range(1, 80):
        plan = drawn_plan(seed)
        scenario = scenario_of(plan, name="storm", title="Seed after seed")
        again = plan_of(scenario, seed)
        drawn = plan.mix if plan.storm is Storm.MIX else None
        assert again == replace(plan, mix=drawn, topics=again.topics)
        assert [topic.assignment for topic in again.topics] == [
            topic.assignment for topic in plan.topics
        ]
    plan = plan_of(load_scenario(find_scenario("kip-903"), []), 1)
    assert plan_of(scenario_of(plan, name="kip-903", title="A play"), 1).play == plan.play


def test_a_storm_is_stated_where_its_schedule_is() -> None:
    scenario = scenario_of(drawn_plan(2), name="storm", title="Seed after seed")

    def said(**changes: object) -> str:
        data = {**scenario.document.data, **changes}
        text = yaml.safe_dump(data)
        with pytest.raises(UsageError) as error:
            parse_scenario(Document(name="x", text=text, data=data, lines={}, flags={}))
        return str(error.value)

    assert "storm play needs a `play` in the scenario" in said(trial={"storm": "play"})
    assert "storm windows excludes a `play` in the scenario" in said(play=[{"wait": "1s"}])
    assert "trial.strom" in said(trial={"strom": "play"})


def worlds(result: TrialResult) -> tuple[object, ...]:
    """What replays have in common; calls of the harness are events, and not made again."""
    return (result.virtual_ns, result.acknowledged_count, result.findings, result.crash)


@pytest.mark.parametrize(
    "seed", [2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (3, 4, 8, 105))]
)
def test_the_play_of_a_trial_makes_the_same_world_again(seed: int, tmp_path: Path) -> None:
    trial = stored(drawn_plan(seed), tmp_path / "first")
    again = plan_of(replayed(trial.run, kafka=None), seed)
    assert again.storm is Storm.PLAY
    second = stored(again, tmp_path / "second")
    assert worlds(second.result) == worlds(trial.result)
    # And so does the play of the replay.
    third = stored(plan_of(replayed(second.run, kafka=None), seed), tmp_path / "third")
    assert worlds(third.result) == worlds(trial.result)


def test_a_step_may_be_left_out_of_the_play(tmp_path: Path) -> None:
    trial = stored(drawn_plan(2), tmp_path / "run")
    steps = yaml.safe_load(trial.run.play_path.read_text())
    kept = [step for step in steps if "pause" not in step and "resume" not in step]
    assert 0 < len(kept) < len(steps)
    trial.run.play_path.write_text(yaml.safe_dump(kept))
    result = run_trial(plan_of(replayed(trial.run, kafka=None), 2), Rules())
    assert (result.crash, result.findings) == ("", ())


def test_the_faults_of_a_trial_are_drawn_unless_a_play_states_them() -> None:
    told = {storm: TrialSpec(storm=storm).draws for storm in Storm}
    assert {storm for storm, draws in told.items() if not draws} == {Storm.NONE, Storm.PLAY}
    drawn = scenario_of(drawn_plan(STORMS[Storm.RELAYS]), name="s", title="s")
    assert (drawn.drawn, drawn.mix) == (True, None)
