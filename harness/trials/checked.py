"""Trials judged by the product's own checks, recorded as runs are.

A check has found out that a rule is switched off once it calls the record of some trial invalid,
and not that of the very same trial with the rule on. (Other rules that do the same work are off in
both.) Of a trial whose losses nothing survives, which the oracle excuses, nothing counts that is
about records. The oracle, which is several times quicker, says which seeds are worth a record; that
it found something is no answer here.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pyspark.sql import SparkSession

from checkers.catalogue import entry_of
from checkers.check import check_run
from checkers.runner.tasks import InProcessTasks
from checkers.verdict import CheckResult, Validity, Verdict
from clusters.reference.nodes.rules import ProtocolRule
from harness.trials.examples import Example
from harness.trials.plan import TrialPlan
from harness.trials.store import StoredTrial, store_trial
from harness.trials.trial import TrialResult

__all__ = ["Attempt", "attempted", "attempts"]

_RECORDS: Final = frozenset({"operations", "records", "replicas", "replica_records"})
"""The tables that tell of records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The checks' answer to one trial."""

    example: Example
    storm: str
    oracle: str
    """The oracle's first finding."""
    excused: bool
    crash: str
    found: Mapping[str, str]
    """By check: the first proof of what no promise allows, with its key. Those that the rule's
    table names come first; what is found with the rule on as well is left out."""
    event_count: int

    @property
    def detected(self) -> bool:
        """True if a check found the rule out."""
        return bool(self.found)


def attempts(
    examples: Sequence[Example], *, session: SparkSession, kept_in: Path | None = None
) -> list[Attempt]:
    """Judge these, a Spark task each, and return the attempts in order."""
    if not examples:
        return []
    tasks = session.sparkContext.parallelize(examples, len(examples))
    return list(tasks.map(partial(attempted, kept_in=kept_in)).collect())


def attempted(example: Example, *, kept_in: Path | None = None) -> Attempt:
    """Record the trial without the rule, and judge it; if anything is found, with the rule, too.

    `kept_in`: the directory to which its run goes, under its name, if a check found the rule out.
    """
    rule, plan = example.rule, example.plan()
    off = (rule.name, *rule.beside)
    with TemporaryDirectory(prefix="fencepost-trial-") as scratch:
        stored, verdict = _judged(plan, off, Path(scratch) / "off", rule)
        found = _first_proofs(verdict, stored.result)
        if found:
            kept, control = _judged(plan, rule.beside, Path(scratch) / "on", rule)
            accused = _first_proofs(control, kept.result)
            found = {name: proof for name, proof in found.items() if name not in accused}
        if found and kept_in is not None:
            _keep(stored.run.root, kept_in / str(example))
    result = stored.result
    return Attempt(
        example=example,
        storm=result.storm,
        oracle=str(result.findings[0]) if result.findings else "",
        excused=result.excused,
        crash=result.crash,
        found=_ordered(rule, found),
        event_count=result.event_count,
    )


def _keep(run: Path, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(run, place)


def _judged(
    plan: TrialPlan, off: Sequence[str], root: Path, rule: ProtocolRule
) -> tuple[StoredTrial, Verdict]:
    name = rule.name.replace("_", "-")
    stored = store_trial(plan, without_rules=off, root=root, name=name)
    return stored, check_run(stored.run, session=InProcessTasks())


def _first_proofs(verdict: Verdict, result: TrialResult) -> dict[str, str]:
    """Return, by check, the first proof of what no promise allows, with its key."""
    found: dict[str, str] = {}
    for check, proof in _proofs(verdict, result):
        found.setdefault(check, proof)
    return found


def _proofs(verdict: Verdict, result: TrialResult) -> Iterator[tuple[str, str]]:
    for one in verdict.checks:
        if one.validity is Validity.INVALID and not (result.excused and _is_about_records(one)):
            for proof in one.examples:
                if not proof.allowed:
                    yield one.check, f"{proof.key}: {proof.detail}"


def _is_about_records(result: CheckResult) -> bool:
    return not _RECORDS.isdisjoint(entry_of(result.check).needs)


def _ordered(rule: ProtocolRule, found: Mapping[str, str]) -> dict[str, str]:
    named = [name for name in rule.shows_as if name in found]
    return {name: found[name] for name in dict.fromkeys((*named, *found))}
