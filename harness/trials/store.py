"""Trials as runs: carried out once more, recorded, sealed, and stored with what the oracle found.

Trials write nothing, since nearly all of them find nothing. A seed is a world, so whatever is worth
a look can be had again, with all that happened in it, as a run that any command takes.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from fencepost.clusters.systems import system_of
from fencepost.harness.manifest import first_manifest
from fencepost.harness.prepare.reference import rules_of, rules_without
from fencepost.harness.scenario.options import RunOptions
from fencepost.harness.trials.diary import Diary
from fencepost.harness.trials.plan import TrialPlan
from fencepost.harness.trials.recorded import record_trial, scenario_of
from fencepost.harness.trials.trial import TrialResult
from fencepost.harness.virtual.evidence import ORIGIN_UTC_NS
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import RunState, read_manifest, write_manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.history.seal import seal


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTrial:
    """A trial on the disk."""

    run: RunDirectory
    """The run, sealed and not judged."""
    result: TrialResult
    """The result of the trial as it was recorded: to the end of its schedule."""


def store_trial(
    plan: TrialPlan,
    *,
    without_rules: Sequence[str],
    root: Path,
    name: str,
    parameters: Mapping[str, str] | None = None,
) -> StoredTrial:
    """Repeat a trial and store it at `root`, which it replaces: a run, trial.json, notes.jsonl.

    `name`: the name of the scenario; `parameters`: those that were filled in. Raises HarnessError
    if the disk refuses.
    """
    made = scenario_of(plan, name=name, title=f"{name}, seed {plan.seed}")
    scenario = replace(made, parameters=parameters or {})
    run = RunDirectory.replace(root)
    off = [word for rule in without_rules for word in ("--without-rule", rule)]
    make = system_of(plan.cluster).in_virtual_time
    assert make is not None
    rules = rules_without(without_rules, rules_of(plan.cluster))
    seed = ["--cluster", str(make), "--seed", str(plan.seed)]
    options = RunOptions(
        results=root.parent,
        seed=plan.seed,
        command=shlex.join(["fencepost", "run", str(run.scenario_path), *seed, *off]),
        cluster=make,
        without_rules=tuple(without_rules),
    )
    diary = Diary()
    try:
        run.scenario_path.write_text(scenario.document.text, encoding="utf-8")
        manifest = first_manifest(scenario, options, run, origin_ns=0, origin_utc_ns=ORIGIN_UTC_NS)
        write_manifest(run.manifest_path, manifest)
        result = record_trial(plan, rules, run=run, diary=diary)
        seal(run)
        _write_beside(run, result, diary)
    except OSError as error:
        raise HarnessError(f"cannot store a trial in {root}: {error}") from error
    manifest = read_manifest(run.manifest_path)
    write_manifest(run.manifest_path, replace(manifest, state=RunState.RECORDED, harness=None))
    return StoredTrial(run=run, result=result)


def _write_beside(run: RunDirectory, result: TrialResult, diary: Diary) -> None:
    """Write the evidence that checks do not read: the oracle's findings, and every node's notes."""
    told = {
        "seed": result.seed,
        "storm": result.storm,
        "findings": [asdict(finding) for finding in result.findings],
        "excused": result.excused,
        "crash": result.crash,
        "digest": result.digest,
    }
    (run.root / "trial.json").write_text(json.dumps(told, indent=1, default=str) + "\n")
    (run.root / "notes.jsonl").write_text("".join(f"{line}\n" for line in diary.notes))
