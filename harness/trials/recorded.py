"""A trial as a run: the scenario that repeats it, and its record in a run directory."""

from dataclasses import asdict, fields
from typing import Any

import yaml

from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.clusters.systems import SYSTEMS, system_of
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.harness.scenario.scenario import Scenario, parse_scenario
from fencepost.harness.scenario.trial_spec import Storm, TrialSpec
from fencepost.harness.scenario.yaml_file import Document
from fencepost.harness.trials.diary import Diary
from fencepost.harness.trials.plan import TrialPlan
from fencepost.harness.trials.recording import TrialRecording, timed_data
from fencepost.harness.trials.trial import TrialResult, run_trial
from fencepost.harness.virtual.evidence import few_collections
from fencepost.history.run_directory import RunDirectory
from fencepost.nemesis.mix_spec import MixSpec
from fencepost.nemesis.words import duration_text


def record_trial(
    plan: TrialPlan, rules: Rules, *, run: RunDirectory, diary: Diary | None = None
) -> TrialResult:
    """Carry a plan out, and record it into the run's raw directory.

    A failure in the simulation itself is in the result, and a shortfall of the run.
    """
    recording = TrialRecording(plan, run)
    with few_collections():
        result = run_trial(plan, rules, digest=True, diary=diary, recording=recording)
        recording.finish(crash=result.crash)
    return result


def scenario_of(plan: TrialPlan, *, name: str, title: str) -> Scenario:
    """Return the scenario whose run in virtual time with the plan's seed is this very trial."""
    data = {"name": name, "title": title, **_data(plan)}
    text = yaml.safe_dump(data, sort_keys=False, width=100)
    return parse_scenario(Document(name=name, text=text, data=data, lines={}, flags={}))


def _data(plan: TrialPlan) -> dict[str, Any]:
    data: dict[str, Any] = {
        "cluster": {"system": system_of(plan.cluster).name, **_changed(plan.cluster)},
        "topics": [_topic(topic) for topic in plan.topics],
        "workload": _workload(plan),
        "time_limit": duration_text(plan.faults_s),
        "recovery_limit": duration_text(plan.recovery_s),
    }
    if plan.storm is Storm.MIX:
        assert plan.mix is not None
        data["nemesis"] = _mix(plan.mix)
    if plan.storm is Storm.PLAY:
        data["play"] = [timed_data(step) for step in plan.play or ()]
    spec = TrialSpec(**{one.name: getattr(plan, one.name) for one in fields(TrialSpec)})
    data["trial"] = {"storm": str(plan.storm), **_changed(spec, but=("storm",))}
    return data


def _workload(plan: TrialPlan) -> Any:
    records = {"kind": "produce-poll", **_changed(plan.records)}
    if plan.metadata is None:
        return records
    return [records, {"kind": "metadata", **_changed(plan.metadata)}]


def _changed(spec: Any, but: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the fields that are not as they are by default, in plain values."""
    found = {}
    for one, value in asdict(spec).items():
        default = type(spec).__dataclass_fields__[one]
        is_default = value == default.default or (
            callable(default.default_factory) and value == default.default_factory()
        )
        if not is_default and one not in but:
            found["kafka" if one == "release" else one] = _plain(value)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    return str(value) if isinstance(value, str) else value


def _topic(topic: TopicSpec) -> dict[str, Any]:
    placed: dict[str, Any] = {
        "partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
    }
    if topic.assignment is not None:
        placed = {"replicas": [list(replicas) for replicas in topic.assignment]}
    return {"name": topic.name, **placed, "settings": dict(topic.settings)}


def _mix(mix: MixSpec) -> dict[str, Any]:
    roles = [role.name for role in SYSTEMS[mix.system].spec.roles]
    return {
        "faults": list(mix.faults),
        "targets": list(mix.targets),
        "gap": [duration_text(end) for end in mix.gap_s],
        "duration": [duration_text(end) for end in mix.duration_s],
        "down": {f"{role}s": mix.down_max(role) for role in roles},
        "overlap": mix.overlap,
        "rounds": mix.rounds,
    }
