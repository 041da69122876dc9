"""The self-test: each rule switched off must be found out, and a clean cluster not be accused.

For each rule of a generation of the reference cluster, trials go on without it until the oracle has
found in enough of them what its absence shows as. These are recorded as runs are, one after the
other, until a check of the product has found it, too: that is what counts. The oracle is several
times quicker, and says which seeds are worth a record; that it found something is no answer here.

A check has found out that a rule is switched off once it calls the record of some trial invalid,
and not that of the very same trial with the rule on. (Other rules that do the same work are off in
both.) Of a trial whose losses nothing survives, which the oracle excuses, nothing counts that is
about records.

Then comes a series with all rules on, in which nothing may be found. A rule that no check finds
fails the test, as does a clean cluster that is accused.
"""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from pyspark.sql import SparkSession

from fencepost.checkers.catalogue import entry_of
from fencepost.checkers.check import check_run
from fencepost.checkers.runner.tasks import InProcessTasks
from fencepost.checkers.verdict import CheckResult, Validity, Verdict
from fencepost.clusters.reference.nodes.rules import ProtocolRule
from fencepost.harness.trials.examples import STORM, Example
from fencepost.harness.trials.generations import Generation, generation_of
from fencepost.harness.trials.plan import TrialPlan
from fencepost.harness.trials.series import TrialSeries, TrialTally
from fencepost.harness.trials.store import StoredTrial, store_trial
from fencepost.harness.trials.trial import TrialResult

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """The result of switching one rule off."""

    rule: ProtocolRule
    trial_count: int
    hits: tuple[int, ...]
    """The seeds whose trials found what the rule prevents, in order."""
    anomalies: dict[str, int]
    """The counts of trials by what they found, each anomaly once a trial."""
    crash_count: int
    cpu_s: float
    attempts: tuple[Attempt, ...]
    """The trials that the checks judged, in order, up to the first in which they found it."""

    @property
    def found(self) -> Attempt | None:
        """The trial in which a check found it."""
        return next((one for one in self.attempts if one.detected), None)

    @property
    def detected(self) -> bool:
        """True if a check of the product found it out."""
        return self.found is not None

    @property
    def rate(self) -> float:
        """The share of trials that found it."""
        return len(self.hits) / self.trial_count if self.trial_count else 0.0

    @property
    def seeds_to_detection(self) -> float | None:
        """The median number of seeds from one detection to the next, the first one included."""
        if not self.hits:
            return None
        ends = (0, *self.hits)
        return float(median(b - a for a, b in zip(ends, self.hits, strict=False)))


def detect(
    rule: ProtocolRule,
    *,
    session: SparkSession,
    seeds: int,
    hits: int,
    tries: int,
    root: Path | None,
) -> Detection:
    """Switch the rule off and look, for at most `seeds` seeds or until `hits` hits.

    Of these at most `tries` are judged by the checks, after the rule's own play, if it has one.
    `root`: the directory that keeps the runs in which they find it; None: they are not kept.
    """
    search = _Search(rule, session=session, seeds=seeds)
    search.look(hits)
    judge = partial(_judged, session=session, kept_in=root)
    judged = judge([*_own(rule), *_drawn(rule, search.found())][:tries])
    while not any(one.detected for one in judged) and len(judged) < tries:
        known = search.found()
        if not search.look(len(known) + 1):
            break
        more = _drawn(rule, [seed for seed in search.found() if seed not in known])
        judged += judge(more[: tries - len(judged)])
    return Detection(
        rule=rule,
        trial_count=search.tally.trial_count,
        hits=tuple(search.found()),
        anomalies=dict(
            Counter(name for one in search.tally.suspicious for name in one.anomalies).most_common()
        ),
        crash_count=len(search.tally.crashes),
        cpu_s=search.tally.cpu_s,
        attempts=tuple(judged),
    )


class _Search:
    """A search over seeds without a rule: the oracle looks for what its absence shows as."""

    def __init__(self, rule: ProtocolRule, *, session: SparkSession, seeds: int) -> None:
        self._rule = rule
        self._generation = generation_of(rule)
        self._session = session
        self._seeds = seeds
        self.tally = TrialTally()

    def found(self) -> list[int]:
        """Return the seeds in which it was found, in order."""
        return sorted(_hits(self._rule, self.tally.suspicious))

    def look(self, hits: int) -> bool:
        """Go on until there are `hits` seeds; return whether there are."""
        rule = self._rule
        before = self.tally.trial_count
        series = TrialSeries(
            session=self._session,
            plans=self._generation.storms(rule),
            rules=self._generation.rules().without(rule.name, *rule.beside),
            first=before + 1,
            count=self._seeds - before,
        )
        missing = hits - len(self.found())
        new = _last(series.run(until=lambda now: len(_hits(rule, now.suspicious)) >= missing))
        self.tally.merge(new)
        return len(self.found()) >= hits


def _own(rule: ProtocolRule) -> list[Example]:
    """Return the rule's own play, if it has one: it was made to be quick."""
    play = generation_of(rule).plays.get(rule.name)
    return [] if play is None else [Example(rule=rule, play=play, seed=1)]


def _drawn(rule: ProtocolRule, seeds: Sequence[int]) -> list[Example]:
    return [Example(rule=rule, play=STORM, seed=seed) for seed in seeds]


def _judged(
    examples: Sequence[Example], *, session: SparkSession, kept_in: Path | None
) -> list[Attempt]:
    """Judge the examples, as many at once as there are cores, up to the first detection."""
    at_a_time = session.sparkContext.defaultParallelism
    judged: list[Attempt] = []
    for first in range(0, len(examples), at_a_time):
        batch = examples[first : first + at_a_time]
        for one in attempts(batch, session=session, kept_in=kept_in):
            judged.append(one)
            if one.detected:
                return judged
    return judged


def clean_series(
    generation: Generation,
    *,
    session: SparkSession,
    seeds: int,
    shown: Callable[[TrialTally], None],
) -> TrialTally:
    """Run all kinds of faults with all rules on: any finding is an accusation without a ground."""
    series = TrialSeries(
        session=session,
        plans=generation.storms(None),
        rules=generation.rules(),
        first=1,
        count=seeds,
    )
    tally = TrialTally()
    for tally in series.run(until=lambda now: bool(now.suspicious or now.crashes)):
        shown(tally)
    return tally


def _hits(rule: ProtocolRule, results: Sequence[TrialResult]) -> list[int]:
    return [one.seed for one in results if not set(one.anomalies).isdisjoint(rule.shows_as)]


def _last(tallies: Iterator[TrialTally]) -> TrialTally:
    tally = TrialTally()
    for tally in tallies:  # noqa: B007  # the last one counts
        pass
    return tally


def attempted(example: Example, *, kept_in: Path | None = None) -> Attempt:
    """Record the trial without the rule, and judge it; if anything is found, with the rule, too.

    `kept_in`: the directory to which its run goes, under its name, if a check found the rule out.
    """
    rule, plan = example.rule, example.plan()
    off = (rule.name, *rule.beside)
    with TemporaryDirectory(prefix=f"fencepost-trial-{os.getpid()}-") as scratch:
        stored, verdict = _judged_record(plan, off, Path(scratch) / "off", rule)
        found = _first_proofs(verdict, stored.result)
        if found:
            kept, control = _judged_record(plan, rule.beside, Path(scratch) / "on", rule)
            accused = _first_proofs(control, kept.result)
            found = {name: proof for name, proof in found.items() if name not in accused}
        if found and kept_in is not None:
            _keep(stored.run.root, kept_in / str(example))
    result = stored.result
    return Attempt(
        example=example,
        storm=result.storm,
        oracle=str(result.findings[0]) if result.findings else "",
        excused=bool(result.excused),
        crash=result.crash,
        found=_ordered(rule, found),
        event_count=result.event_count,
    )


def _keep(run: Path, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(run, place)


def _judged_record(
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
