"""A trial that found something, stored: it is carried out once more with a diary.

Trials write nothing, since nearly all of them find nothing. A seed is a world, so whatever is worth
a look can be had again, with all that its nodes said and all that was done to them.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import yaml

from clusters.reference.rules import Rules
from harness.trials.diary import Diary
from harness.trials.plan import TrialPlan
from harness.trials.trial import run_trial
from history.failure import HarnessError

__all__ = ["store_trial"]


def store_trial(plan: TrialPlan, *, without_rules: Sequence[str], command: str, root: Path) -> None:
    """Repeat a trial and write it into `root`: trial.json, play.yaml and notes.jsonl.

    `command` is what repeats it. Raises HarnessError if the disk refuses.
    """
    diary = Diary()
    result = run_trial(plan, Rules().without(*without_rules), digest=True, diary=diary)
    told = {
        "seed": plan.seed,
        "storm": result.storm,
        "command": command,
        "without_rules": list(without_rules),
        "findings": [asdict(finding) for finding in result.findings],
        "excused": result.excused,
        "crash": result.crash,
        "digest": result.digest,
        "plan": asdict(plan),
    }
    try:
        root.mkdir(parents=True, exist_ok=True)
        (root / "trial.json").write_text(json.dumps(told, indent=1, default=str) + "\n")
        (root / "play.yaml").write_text(yaml.safe_dump(diary.steps, sort_keys=False))
        (root / "notes.jsonl").write_text("".join(f"{line}\n" for line in diary.notes))
    except OSError as error:
        raise HarnessError(f"cannot store a trial in {root}: {error}") from error
