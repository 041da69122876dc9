"""The results as the web page asks for them (`report.serve.archive.Archive`)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fencepost.harness.gate.known_issues import KnownIssue
from fencepost.harness.gate.nights import RunRecord
from fencepost.harness.series.rate import Rate
from fencepost.harness.series.reproduction_file import read_reproduction
from fencepost.harness.serve.memory import Remembered, stamp_of
from fencepost.harness.serve.nights import StoredNights
from fencepost.harness.serve.stored import StoredRuns, subject_words
from fencepost.history.failure import HarnessError
from fencepost.report.notation import one_line, utc
from fencepost.report.serve.archive import (
    FindingTrend,
    ListedNight,
    ListedRun,
    NightDetail,
    SubjectRate,
)

_CONCLUSIVE = ("valid", "invalid")
_REPRODUCTIONS_MAX = 50


@dataclass(frozen=True, slots=True)
class _Answer:
    """One run, as a rate needs it."""

    subject: str
    verdict: str
    findings: tuple[str, ...]


class ResultsArchive:
    """A directory of results."""

    def __init__(self, results: Path, *, issues: Sequence[KnownIssue] = ()) -> None:
        """`issues`: those for which the gate is suspended."""
        self._results = results
        self._runs = StoredRuns(results)
        self._nights = StoredNights(results, issues)
        self._reproductions: Remembered[str] = Remembered()

    def runs(self) -> Sequence[ListedRun]:
        """Return all stored runs, the newest first."""
        return self._runs.listed()

    def nights(self, name: str | None = None) -> Sequence[ListedNight]:
        """Return the nights, all or of one name, the newest first; the gate is not asked."""
        return self._nights.listed(name)

    def gated(self, listed: ListedNight) -> ListedNight:
        """Return the night with what the gate says of it."""
        return self._nights.gated(listed)

    def night(self, name: str, time: str) -> NightDetail | None:
        """Return a night, or None."""
        return self._nights.detail(name, time, self.runs())

    def night_stamp(self, name: str, time: str) -> str:
        """Return a word that changes with the files of a night; "" without a night."""
        return self._nights.stamp(name, time, self.runs())

    def trend(self, name: str) -> tuple[Sequence[ListedNight], Sequence[FindingTrend]]:
        """Return the newest nights of a name, the oldest first, and their findings."""
        return self._nights.trend(name)

    def rates(self, scenario: str) -> Sequence[SubjectRate]:
        """Return the rates of a scenario by subject: any violation first, then each finding.

        Of the runs of all nights, stored or removed since, and of all other stored runs.
        """
        by_subject: dict[str, list[_Answer]] = defaultdict(list)
        for answer in self._answers(scenario):
            by_subject[answer.subject].append(answer)
        return [
            rate for subject in sorted(by_subject) for rate in _rates(subject, by_subject[subject])
        ]

    def reproductions(self, scenario: str) -> Sequence[tuple[str, str]]:
        """Return the stored reproductions of a scenario, newest first: when, and the sentence."""
        folder = self._results / scenario / "reproductions"
        if folder.parent.parent != self._results or folder.is_symlink():
            return []
        newest = sorted(folder.glob("*.json"), reverse=True)[:_REPRODUCTIONS_MAX]
        return [(path.stem, self._sentence(path)) for path in newest]

    def _sentence(self, path: Path) -> str:
        def read() -> str:
            try:
                found = read_reproduction(path)
            except HarnessError as error:
                return one_line(str(error))
            return f"{found.sentence()} ({found.state}, begun {utc(found.started_at)})"

        return self._reproductions.of(path, stamp_of((path,)), read)

    def _answers(self, scenario: str) -> Iterator[_Answer]:
        of_nights = set()
        for night in self._nights.records():
            for run in night.runs:
                if run.subject.scenario == scenario:
                    of_nights.add(run.run)
                    yield _of_night(run)
        for stored in self.runs():
            if stored.scenario == scenario and stored.name not in of_nights:
                yield _Answer(stored.subject, stored.verdict, stored.findings)


def _of_night(run: RunRecord) -> _Answer:
    told = run.subject
    subject = subject_words(
        cluster=told.cluster, release=told.release, host=told.host, variant=told.variant
    )
    return _Answer(subject, str(run.verdict), run.findings)


def _rates(subject: str, answers: Sequence[_Answer]) -> Iterator[SubjectRate]:
    conclusive = [one for one in answers if one.verdict in _CONCLUSIVE]
    others = len(answers) - len(conclusive)
    hits = sum(one.verdict == "invalid" for one in conclusive)
    yield _rate(subject, "", hits, len(conclusive), others)
    for finding in _in_order(conclusive):
        seen = sum(finding in one.findings for one in conclusive)
        yield _rate(subject, finding, seen, len(conclusive), others)


def _in_order(answers: Iterable[_Answer]) -> list[str]:
    counts: dict[str, int] = defaultdict(int)
    for one in answers:
        for finding in one.findings:
            counts[finding] += 1
    return sorted(counts, key=lambda finding: (-counts[finding], finding))


def _rate(subject: str, finding: str, hits: int, runs: int, others: int) -> SubjectRate:
    low, high = Rate(hit_count=hits, run_count=runs).interval()
    return SubjectRate(
        subject=subject, finding=finding, hits=hits, runs=runs, low=low, high=high, others=others
    )
