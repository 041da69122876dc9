"""What the product's own checks make of trials: recorded as runs are, judged as runs are.

A rule that is switched off counts as found out by a check once the check calls the record of some
trial invalid, and not that of the very same trial with the rule on. (Where other rules that do the
same work are off beside it, they are off in both. If every check then accuses both, a proof counts
that is of a kind which the control has not.) Of a trial whose losses nothing survives, which the
oracle excuses, nothing counts that is about records. Which seeds are worth a record, the oracle
says, which is several times quicker; that it found something is no answer here.
"""

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pyspark.sql import SparkSession

from checkers.catalogue import entry_of
from checkers.check import check_run
from checkers.in_process import in_process_session
from checkers.verdict import CheckResult, Validity, Verdict
from clusters.reference.rules import Rule
from harness.trials.plan import TrialPlan
from harness.trials.store import StoredTrial, store_trial
from harness.trials.trial import TrialResult

__all__ = ["Attempt", "Subject", "attempted", "attempts"]

_RECORDS: Final = frozenset({"operations", "records", "replicas", "replica_records"})
"""Tables that tell of records."""
_NUMBERS: Final = re.compile(r"\[[0-9, ]*\]|[0-9][0-9.,]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A trial to be judged, of a rule switched off."""

    rule: Rule
    plan: TrialPlan
    play: str
    """The scenario that the plan is of; `storm`: its seed's own."""
    root: Path | None = None
    """Where to keep the run if something is found; None: nowhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What the checks made of one trial."""

    rule: str
    play: str
    seed: int
    storm: str
    oracle: str
    """Its first finding."""
    excused: bool
    crash: str
    found: Mapping[str, str]
    """By check: the first proof of what no promise allows, with its key. Those that the rule's
    table names come first; what is found with the rule on as well is left out."""
    event_count: int

    @property
    def detected(self) -> bool:
        """Whether a check found the rule out."""
        return bool(self.found)


def attempts(subjects: Sequence[Subject], *, session: SparkSession) -> list[Attempt]:
    """Judge these, a Spark task each. In order."""
    if not subjects:
        return []
    context = session.sparkContext
    return list(context.parallelize(subjects, len(subjects)).map(attempted).collect())


def attempted(subject: Subject) -> Attempt:
    """Record the trial without the rule, and judge it; if anything is found, with the rule, too."""
    rule, plan = subject.rule, subject.plan
    off = (rule.name, *rule.beside)
    with TemporaryDirectory(prefix="fencepost-trial-") as scratch:
        stored, verdict = _judged(plan, off, Path(scratch) / "off", rule)
        found = _first_of_each(_proofs(verdict, stored.result))
        if found:
            kept, control = _judged(plan, rule.beside, Path(scratch) / "on", rule)
            found = _beyond(found, _proofs(verdict, stored.result), _proofs(control, kept.result))
        if found and subject.root is not None:
            shutil.rmtree(subject.root, ignore_errors=True)
            shutil.copytree(stored.run.root, subject.root)
    result = stored.result
    return Attempt(
        rule=rule.name,
        play=subject.play,
        seed=plan.seed,
        storm=result.storm,
        oracle=str(result.findings[0]) if result.findings else "",
        excused=result.excused,
        crash=result.crash,
        found=_ordered(rule, found),
        event_count=result.event_count,
    )


def _judged(
    plan: TrialPlan, off: Sequence[str], root: Path, rule: Rule
) -> tuple[StoredTrial, Verdict]:
    name = rule.name.replace("_", "-")
    stored = store_trial(plan, without_rules=off, root=root, name=name)
    return stored, check_run(stored.run, spark=in_process_session())


def _proofs(verdict: Verdict, result: TrialResult) -> Iterator[tuple[str, str]]:
    """By check: what proves that no promise allows it."""
    for one in verdict.checks:
        if one.validity is Validity.INVALID and not (result.excused and _is_about_records(one)):
            for proof in one.examples:
                if not proof.allowed:
                    yield one.check, f"{proof.key}: {proof.detail}"


def _beyond(
    found: Mapping[str, str],
    proofs: Iterable[tuple[str, str]],
    control: Iterable[tuple[str, str]],
) -> dict[str, str]:
    """What the control has not: by check, or if it has them all, by the kind of proof."""
    known = list(control)
    names, kinds = {name for name, _ in known}, {_kind(*one) for one in known}
    new = {name: proof for name, proof in found.items() if name not in names}
    return new or _first_of_each(one for one in proofs if _kind(*one) not in kinds)


def _kind(check: str, proof: str) -> tuple[str, str]:
    """Of a proof: its words, whatever the numbers."""
    return check, _NUMBERS.sub("#", proof)


def _first_of_each(proofs: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for check, proof in proofs:
        found.setdefault(check, proof)
    return found


def _is_about_records(result: CheckResult) -> bool:
    return not _RECORDS.isdisjoint(entry_of(result.check).needs)


def _ordered(rule: Rule, found: Mapping[str, str]) -> dict[str, str]:
    named = [name for name in rule.shows_as if name in found]
    return {name: found[name] for name in dict.fromkeys((*named, *found))}
