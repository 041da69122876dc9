"""What some worlds come to, as JSON: to be run by a plain and by a compiled simulator."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace

from fencepost.bench.simulator import SECTIONS
from fencepost.clusters.compiled import is_compiled
from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.harness.scenario.scenario import load_scenario
from fencepost.harness.scenario.sources import find_scenario
from fencepost.harness.trials.plan import drawn_plan, plan_of
from fencepost.harness.trials.trial import TrialResult, run_trial

_STORM_SEEDS = range(1, 26)


def results() -> Iterator[tuple[str, TrialResult]]:
    """By name: storms, a play at the level where it finds what it is there for, rules off."""
    for seed in _STORM_SEEDS:
        yield f"storm {seed}", run_trial(drawn_plan(seed), Rules(), digest=True)
    level = [(("cluster", "metadata_version"), "1", "--metadata-version")]
    plan = plan_of(load_scenario(find_scenario("kip-903"), level), seed=1)
    for seed in (1, 2, 3):
        yield f"play {seed}", run_trial(replace(plan, seed=seed), Rules(), digest=True)
    for name in ("fenced_serves_nobody", "member_epochs_checked", "truncate_by_epoch"):
        for seed in (1, 2, 3):
            rules = Rules().without(name)
            yield f"without {name} {seed}", run_trial(drawn_plan(seed), rules, digest=True)
    # Messages are pickled, compared and said in words there. Its digest is of these words, too, and
    # they are not quite the same: an enum in a field of ints is an int in a native class.
    brief = replace(drawn_plan(1), faults_s=2.0)
    yield "witnessed 1", replace(run_trial(brief, Rules(), witnessed=True), digest="")


def told(result: TrialResult) -> list[object]:
    """What has to be the same of a trial; its line in a crash is not."""
    return [
        result.digest,
        result.event_count,
        result.acknowledged_count,
        result.crash.partition(" (")[0],
        [str(finding) for finding in result.findings],
    ]


if __name__ == "__main__":
    found = {name: told(result) for name, result in results()}
    found["recorded"] = ["", *SECTIONS["recorded"](), "", []]  # a run, not a trial
    json.dump({"compiled": is_compiled(), "worlds": found}, sys.stdout)
