"""The stored nights of a directory of results, and what the gate says of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Final
from zlib import crc32

from fencepost.harness.doctor.stored_runs import is_alive
from fencepost.harness.gate.decision import GateDecision, GatedFinding, day_of, decided
from fencepost.harness.gate.known_issues import KnownIssue
from fencepost.harness.gate.nights import (
    NIGHTS_MAX,
    NightRecord,
    RunRecord,
    nights_before,
    read_night,
)
from fencepost.harness.gate.words import called_words, headline, lines
from fencepost.harness.series.night import NightStore, place_of_next
from fencepost.harness.serve.memory import Remembered, stamp_of
from fencepost.harness.serve.stored import TIME, subject_words
from fencepost.history.failure import HarnessError, UsageError
from fencepost.report.notation import counted, one_line
from fencepost.report.serve.archive import (
    FindingTrend,
    ListedNight,
    ListedRun,
    NightDetail,
    NightRunLine,
    TrendCell,
)
from fencepost.report.sums import VERDICTS, SummedRun, is_as_expected, sum_line

_FILES: Final = ("night.html", "junit.xml", "night.json", "plan.json")
_TREND_MAX: Final = 14
"""The nights of a trend that the gate is asked about."""
_BARS_MAX: Final = 90


class StoredNights:
    """The nights below a directory. What was read is kept until the files change."""

    def __init__(self, results: Path, issues: Sequence[KnownIssue]) -> None:
        """`issues`: those for which the gate is suspended."""
        self._results = results
        self._issues = issues
        self._records: Remembered[NightRecord | str] = Remembered()
        self._decisions: Remembered[GateDecision | str] = Remembered()

    def listed(self, name: str | None) -> list[ListedNight]:
        """Return the nights, all or of one name, the newest first."""
        found = sorted(self._paths(name), key=lambda path: path.parent.name, reverse=True)
        return [self._listed(path) for path in found]

    def record(self, path: Path) -> NightRecord | str:
        """Return what a night's file says, or why it cannot be read."""

        def read() -> NightRecord | str:
            try:
                return read_night(path)
            except UsageError as error:
                return one_line(str(error))

        return self._records.of(path, stamp_of((path,)), read)

    def records(self) -> Iterator[NightRecord]:
        """Yield all nights that can be read, the oldest first."""
        for path in sorted(self._paths(None), key=lambda path: path.parent.name):
            record = self.record(path)
            if not isinstance(record, str):
                yield record

    def gated(self, listed: ListedNight) -> ListedNight:
        """Return the night with what the gate says of it."""
        decision = self._decision(self._path(listed.name, listed.time))
        if isinstance(decision, str):
            return replace(listed, gate=decision)
        return replace(listed, gate=headline(decision), gate_code=decision.exit_code)

    def detail(self, name: str, time: str, runs: Sequence[ListedRun]) -> NightDetail | None:
        """Return a night, or None."""
        path = self._path(name, time)
        if path not in set(self._paths(name)):
            return None
        listed, record = self.gated(self._listed(path)), self.record(path)
        decision = self._decision(path)
        stored = {run.name for run in runs}
        whole = () if isinstance(record, str) else record.runs
        left_out = () if isinstance(record, str) else record.left_out
        command, progress = _course(path, ended=listed.ended)
        return NightDetail(
            listed=listed,
            command=command,
            progress=progress,
            runs=tuple(_line(i, run, stored) for i, run in enumerate(whole, start=1)),
            left_out=tuple(
                f"{one.scenario} {one.release}: "
                f"{counted(one.runs, 'run') if one.runs else 'those left'}: {one.reason}"
                for one in left_out
            ),
            gate_lines=() if isinstance(decision, str) else tuple(lines(decision))[1:],
            files=tuple(file for file in _FILES if (path.parent / file).is_file()),
        )

    def stamp(self, name: str, time: str, runs: Iterable[ListedRun]) -> str:
        """Return a word that changes with what a page on this night shows; "" without a night."""
        path = self._path(name, time)
        found = stamp_of([path, *(path.with_name(file) for file in _FILES)])
        if found[0] is None:
            return ""
        running = [run.name for run in runs if run.verdict == "running"]
        record = self.record(path)
        under_way = not isinstance(record, str) and _is_under_way(record)
        return f"{crc32(repr((found, running, under_way)).encode()):08x}"

    def trend(self, name: str) -> tuple[list[ListedNight], list[FindingTrend]]:
        """Return the newest nights of a name, the oldest first, and their findings."""
        nights = self.listed(name)[:_BARS_MAX]
        newest = [self.gated(night) for night in nights[:_TREND_MAX]]
        cells: dict[tuple[str, str], dict[int, TrendCell]] = {}
        for place, night in enumerate(reversed(newest)):
            decision = self._decision(self._path(name, night.time))
            for one in () if isinstance(decision, str) else decision.judgements:
                key = (one.found.identity, one.found.subject.words)
                cells.setdefault(key, {})[place] = _cell(one)
        shown = [*nights[: _TREND_MAX - 1 : -1], *reversed(newest)]
        first = len(shown) - len(newest)
        trends = [
            FindingTrend(
                identity=identity,
                subject=subject,
                cells=tuple(by_night.get(place - first) for place in range(len(shown))),
            )
            for (identity, subject), by_night in cells.items()
        ]
        latest_first = {t: max(i for i, cell in enumerate(t.cells) if cell) for t in trends}
        return shown, sorted(trends, key=lambda t: (-latest_first[t], t.identity, t.subject))

    def _paths(self, name: str | None) -> Iterator[Path]:
        parent = self._results / "nights"
        for path in parent.glob("*/*/night.json"):
            inside = not any(one.is_symlink() for one in (path.parent, path.parent.parent))
            named = name in (None, path.parent.parent.name)
            if inside and named and TIME.fullmatch(path.parent.name):
                yield path

    def _path(self, name: str, time: str) -> Path:
        return self._results / "nights" / name / time / "night.json"

    def _listed(self, path: Path) -> ListedNight:
        record = self.record(path)
        night = ListedNight(name=path.parent.parent.name, time=path.parent.name)
        if isinstance(record, str):
            return replace(night, trouble=record)
        summed = [_summed(run) for run in record.runs]
        return replace(
            night,
            started_at=record.started_at,
            ended=record.ended,
            is_under_way=_is_under_way(record),
            counts={word: sum(run.verdict == word for run in record.runs) for word in VERDICTS},
            sum_line=sum_line(summed),
        )

    def _decision(self, path: Path) -> GateDecision | str:
        """Return what the gate says; the newest night is judged as of today, others of theirs."""
        night = self.record(path)
        if isinstance(night, str):
            return night
        before = [*reversed(nights_before(night, at_most=NIGHTS_MAX))]
        newest = max(self._paths(path.parent.parent.name), default=path)
        today = date.today() if path == newest else day_of(night)  # noqa: DTZ011 - as the gate's

        def decide() -> GateDecision | str:
            records = [self.record(one) for one in before]
            if torn := next((one for one in records if isinstance(one, str)), ""):
                return torn
            known = [one for one in records if not isinstance(one, str)]
            return decided(night, known, self._issues, today=today)

        return self._decisions.of(path, (today, stamp_of((path, *before))), decide)


def _is_under_way(record: NightRecord) -> bool:
    return not record.ended and is_alive(record.harness)


def _course(path: Path, *, ended: bool) -> tuple[str, str]:
    """Return the command that repeats a night, and how far one came that has not ended."""
    store = NightStore(path.parent)
    try:
        plan = store.read_plan()
        return plan.command, "" if ended else place_of_next(plan, store.read())
    except HarnessError:
        return "", ""  # without a plan, or of another version


def _line(number: int, run: RunRecord, stored: set[str]) -> NightRunLine:
    return NightRunLine(
        number=number,
        scenario=run.subject.scenario,
        subject=_subject(run),
        seed=run.seed,
        verdict=str(run.verdict),
        seconds=run.seconds,
        found=tuple(one.removeprefix(f"{run.subject.scenario}/") for one in run.findings),
        reason=run.reason,
        run=run.run if run.run in stored else None,
    )


def _subject(run: RunRecord) -> str:
    told = run.subject
    return subject_words(
        cluster=told.cluster, release=told.release, host=told.host, variant=told.variant
    )


def _summed(run: RunRecord) -> SummedRun:
    told = run.subject
    return SummedRun(
        scenario=told.scenario,
        system=told.system,
        cluster=told.cluster,
        release=told.release or None,
        host=told.host or "local",
        variant=told.variant,
        seed=run.seed or 0,
        run=run.run,
        verdict=str(run.verdict),
        reason=run.reason,
        findings=run.findings,
        as_expected=is_as_expected(run.verdict, run.findings, run.expected),
        seconds=run.seconds,
    )


def _cell(one: GatedFinding) -> TrendCell:
    found = one.found
    return TrendCell(
        call=str(found.call),
        words=called_words(found),
        hits=found.tonight.hits,
        runs=found.tonight.runs,
    )
