"""A stored run as a scenario: its own cluster and clients, and the play that it performed."""

from dataclasses import replace

import yaml

from harness.scenario import Scenario, load_scenario, parse_scenario
from history.failure import UsageError
from history.run_directory import RunDirectory

__all__ = ["replayed"]

_SLACK_S = 60.0
"""A replay may run late: an election takes as long as it takes."""


def replayed(run: RunDirectory, *, kafka: str | None) -> Scenario:
    """The scenario that repeats `run`. UsageError if it did not come as far as its play."""
    if not run.play_path.is_file() or not run.scenario_path.is_file():
        raise UsageError(f"{run.root}: it performed no play, so there is nothing to repeat")
    steps = yaml.safe_load(run.play_path.read_text(encoding="utf-8")) or []
    overrides = [(("cluster", "kafka"), kafka, "--kafka")] if kafka else []
    original = load_scenario(run.scenario_path, overrides)
    document = original.document.without("nemesis", "play")
    document = document.with_flag(("play",), steps, str(run.play_path))
    scenario = parse_scenario(document)
    last_s = max((step.at_s or 0.0 for step in scenario.play or ()), default=0.0)
    return replace(scenario, time_limit_s=max(original.time_limit_s, last_s) + _SLACK_S)
