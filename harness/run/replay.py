"""A stored run as a scenario: its own cluster and clients, and the play that it performed.

A node that had died on its own was started again when everything was healed. That start is left
out: nothing in the play takes the node down, and if it dies again, the end of the run heals it
again.

The play of a trial is its drawn faults as they happened, at their very nanoseconds: done again
then, it makes the same world, or, with a step left out, the same one up to there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import yaml

from harness.scenario.scenario import Scenario, load_scenario, parse_scenario
from harness.scenario.trial_spec import Storm
from harness.scenario.yaml_file import Document
from history.failure import UsageError
from history.run_directory import RunDirectory
from nemesis.verbs.registry import VERBS

__all__ = ["replayed"]

_STARTING = (Storm.CHAOS, Storm.MIX, Storm.PLAY)
"""The storms all of whose starts may be those of misfits: in others only some are, or none."""
_START = "start"
_TAKE_DOWN = tuple(
    verb.word for verb in VERBS.values() if verb.deed is not None and verb.deed.takes_down
)
_SLACK_S = 60.0
"""A replay may run late: an election takes as long as it takes."""


def replayed(run: RunDirectory, *, kafka: str | None) -> Scenario:
    """Return the scenario that repeats `run`.

    Raise UsageError if it did not come as far as its play.
    """
    if not run.play_path.is_file() or not run.scenario_path.is_file():
        raise UsageError(f"{run.root}: it performed no play, so there is nothing to repeat")
    steps = yaml.safe_load(run.play_path.read_text(encoding="utf-8")) or []
    overrides = [(("cluster", "kafka"), kafka, "--kafka")] if kafka else []
    original = load_scenario(run.scenario_path, overrides)
    document = original.document.without("nemesis", "play")
    if original.trial is not None:
        return parse_scenario(_same_world(document, steps, str(run.play_path)))
    document = document.with_flag(("play",), _repeatable(steps), str(run.play_path))
    scenario = parse_scenario(document)
    last_s = max((step.at_s or 0.0 for step in scenario.play or ()), default=0.0)
    return replace(scenario, time_limit_s=max(original.time_limit_s, last_s) + _SLACK_S)


def _same_world(document: Document, steps: Sequence[Mapping[str, Any]], place: str) -> Document:
    """Return the document with a trial's deeds, at their times, in place of what drew them."""
    drawn = ["storm", "laggards", "duels"]
    if document.data["trial"]["storm"] not in _STARTING:
        drawn += ["old_software", "other_ids", "ill_timed", "unformatted"]
    kept = {key: value for key, value in document.data["trial"].items() if key not in drawn}
    document = document.with_flag(("trial",), {"storm": str(Storm.PLAY), **kept}, place)
    return document.with_flag(("play",), list(steps), place)


def _repeatable(steps: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    down: set[str] = set()
    kept = []
    for step in steps:
        for word in _TAKE_DOWN:
            down |= _nodes(step.get(word))
        started = _nodes(step.get(_START))
        if started <= down:
            kept.append(step)
        down -= started
    return kept


def _nodes(operand: object) -> set[str]:
    """Return the names of the nodes to which a performed step was done."""
    if operand is None:
        return set()
    return set(map(str, operand)) if isinstance(operand, list) else {str(operand)}
