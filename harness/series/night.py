"""A night: runs of many cells, one after the other, until each has its number or the time is over.

    results/nights/<name>/seed.json                    the first seed that no night has used
    results/nights/<name>/<yyyymmddThhmmssZ>/plan.json  what was to be run; written once
    results/nights/<name>/<yyyymmddThhmmssZ>/night.json what was; replaced after each run
    …/night.html  …/junit.xml  …/runs/<number>.json, .log

What runs next is computed from the plan and the runs so far, so that a night that was killed goes
on where it was. Entries advance evenly: at any time each has had about the same part of its runs,
or of its share of the time, so that a night that ends early has tried a bit of everything. The
cells of an entry take turns, and share the seeds of each round.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean
from typing import Any, Final

from pydantic import ConfigDict, TypeAdapter, ValidationError

from fencepost.harness.seeds import SEED_MAX
from fencepost.harness.series.night_file import Cell, NightEntry
from fencepost.history.atomic import write_atomically
from fencepost.history.failure import HarnessError, UsageError
from fencepost.report.notation import about, counted
from fencepost.report.sums import is_as_expected

_NIGHTS: Final = "nights"
_A_SECOND_MAX: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfCell:
    """What names the cell that something is about (`Cell.names`)."""

    entry: int
    scenario: str
    system: str
    cluster: str
    release: str | None
    host: str
    variant: str

    def is_of(self, cell: Cell) -> bool:
        """Return whether it is about this cell."""
        return all(getattr(self, name) == value for name, value in cell.names.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutRuns(_OfCell):
    """Runs that a night did not make, of one cell."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    runs: int
    """0: as many as there would have been time for."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NightPlan:
    """What is to be run, as `plan.json` has it."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    night: str
    file: str
    command: str
    first_seed: int
    time_s: float | None
    thins: bool = False
    """Thin runs that are valid."""
    entries: tuple[NightEntry, ...]
    cells: tuple[Cell, ...]
    left_out: tuple[LeftOutRuns, ...] = ()
    """What cannot run here."""
    only: tuple[tuple[int, int], ...] | None = None
    """The cell and seed of each run, of a night that repeats those of another; else None."""

    def cells_of(self, entry: int) -> tuple[Cell, ...]:
        """Return the cells of an entry, in the order of their turns."""
        return tuple(cell for cell in self.cells if cell.entry == entry)

    def seed(self, round_index: int) -> int:
        """Return the seed of a round."""
        return (self.first_seed + round_index - 1) % SEED_MAX + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NightRun(_OfCell):
    """One run of a night, as `night.json` has it."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    seed: int
    run: str | None
    """Relative to the results; None: it left no directory."""
    verdict: str
    reason: str
    findings: tuple[str, ...]
    expected: tuple[str, ...] = ()
    """Those of them that the scenario expects of this release."""
    seconds: float

    @property
    def as_expected(self) -> bool:
        """Whether the run is invalid by nothing but what its scenario expects."""
        return is_as_expected(self.verdict, self.findings, self.expected)

    @property
    def holds(self) -> bool:
        """Whether nothing is to be held against the run."""
        return self.verdict == "valid" or self.as_expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """What was run, as `night.json` has it."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    night: str
    file: str
    command: str
    started_at: str
    """UTC, ISO 8601."""
    harness: str | None = None
    """The identity of the process that made or makes it (`clusters.hosts.process.harness_mark`)."""
    ended_at: str | None = None
    """None: it is under way, or was interrupted; `--resume` goes on with it."""
    runs: tuple[NightRun, ...] = ()
    left_out: tuple[LeftOutRuns, ...] = field(default=())

    @property
    def finding_count(self) -> int:
        """The number of different findings."""
        return len({name for run in self.runs for name in run.findings})


def due(plan: NightPlan, runs: Sequence[NightRun]) -> tuple[Cell, int] | None:
    """Return the next run's cell and seed; None if the night is over."""
    if plan.only is not None:
        ahead = plan.only[len(runs) :]
        return (plan.cells[ahead[0][0]], ahead[0][1]) if ahead else None
    entries = sorted(_unfinished(plan, runs), key=lambda found: found[0])
    for _, entry in entries:
        cells = plan.cells_of(entry)
        count = sum(run.entry == entry for run in runs)
        cell = cells[count % len(cells)]
        if _fits(plan, runs, cell):
            return cell, plan.seed(count // len(cells))
    return None


def runs_ahead(plan: NightPlan, runs: Sequence[NightRun]) -> int | None:
    """Return how many runs are still to be made; None where the time decides."""
    if plan.only is not None:
        return len(plan.only) - len(runs)
    if any(entry.run_count is None for entry in plan.entries):
        return None
    counts = [(e.run_count or 0) * len(plan.cells_of(i)) for i, e in enumerate(plan.entries)]
    return sum(counts) - len(runs)


def place_of_next(plan: NightPlan, night: Night) -> str:
    """Return `run 7 of 40, 2 findings, about 1 h 10 min left`, of the run after those it has."""
    done, ahead = len(night.runs), runs_ahead(plan, night.runs)
    of = "" if ahead is None else f" of {done + ahead}"
    found = f", {counted(night.finding_count, 'finding')}"
    spent_s = sum(run.seconds for run in night.runs)
    if ahead is None:
        left = f", {about(max(0.0, (plan.time_s or 0.0) - spent_s))} left"
    else:
        left = f", {about(ahead * spent_s / done)} left" if done else ""
    return f"run {done + 1}{of}{found}{left}"


def left_over(plan: NightPlan, runs: Sequence[NightRun], *, reason: str) -> list[LeftOutRuns]:
    """Return what the plan asked for and was not run; `reason`: why the night ended."""
    if plan.only is not None:
        missing = [plan.cells[index] for index, _ in plan.only[len(runs) :]]
        return [left_out(cell, runs=1, reason=reason) for cell in missing]
    found = []
    for cell in plan.cells:
        count, asked = sum(run.is_of(cell) for run in runs), plan.entries[cell.entry].run_count
        if asked is not None and count < asked:
            found.append(left_out(cell, runs=asked - count, reason=reason))
        elif asked is None and not count:
            found.append(left_out(cell, runs=0, reason=reason))
    return found


def left_out(cell: Cell, *, runs: int, reason: str) -> LeftOutRuns:
    """Return the runs of a cell that are not made."""
    return LeftOutRuns(**cell.names, runs=runs, reason=reason)


def _unfinished(plan: NightPlan, runs: Sequence[NightRun]) -> Iterator[tuple[float, int]]:
    """Yield how far each entry is, from 0 to 1, and its index."""
    for index, entry in enumerate(plan.entries):
        own = [run for run in runs if run.entry == index]
        cells = plan.cells_of(index)
        if not cells:
            continue
        if entry.run_count is not None:
            part = len(own) / (entry.run_count * len(cells))
        else:
            assert plan.time_s is not None, "refused with the file"
            part = sum(run.seconds for run in own) / (entry.share * plan.time_s)
        if part < 1:
            yield part, index


def _fits(plan: NightPlan, runs: Sequence[NightRun], cell: Cell) -> bool:
    """Return whether the time that is left is enough for a run, as long as its last ones took."""
    if plan.time_s is None:
        return True
    left_s = plan.time_s - sum(run.seconds for run in runs)
    same = [run.seconds for run in runs if run.is_of(cell)]
    return left_s > (mean(same) if same else 0.0)


_PLANS: Final = TypeAdapter(NightPlan)
_NIGHTS_OF: Final = TypeAdapter(Night)
_SEEDS: Final = TypeAdapter(dict[str, int])


class NightStore:
    """The files of one night."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.plan_path = root / "plan.json"
        self.night_path = root / "night.json"
        self.page_path = root / "night.html"
        self.junit_path = root / "junit.xml"
        self.runs = root / "runs"

    @classmethod
    def create(cls, results: Path, name: str, at: datetime) -> "NightStore":
        """Make the directory of a night that starts `at`; HarnessError if the disk refuses."""
        parent = nights_of(results, name)
        stamp = at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
        for attempt in range(_A_SECOND_MAX):
            store = cls(parent / (f"{stamp}-{attempt:02}" if attempt else stamp))
            try:
                store.runs.mkdir(parents=True)
            except FileExistsError:
                continue
            except OSError as error:
                raise HarnessError(f"cannot make {store.root}: {error.strerror}") from error
            return store
        raise HarnessError(f"more than {_A_SECOND_MAX} nights in one second: {parent / stamp}")

    @classmethod
    def find(cls, text: str, results: Path, name: str) -> "NightStore":
        """Return the night that a user means: its time, its path, or `latest`.

        Raises UsageError, with the nights that there are, if there is none.
        """
        parent = nights_of(results, name)
        known = sorted(path.parent.name for path in parent.glob("*/plan.json"))
        found = known[-1] if text == "latest" and known else text
        for root in (parent / found, Path(text)):
            if (root / "plan.json").is_file():
                return cls(root)
        there = ", ".join(known[-5:]) or "none yet"
        raise UsageError(f"no night {text!r} in {parent}; there are: {there}")

    def read_plan(self) -> NightPlan:
        """Return the plan. Raises HarnessError if it is missing or torn."""
        plan: NightPlan = _read(_PLANS, self.plan_path)
        return plan

    def read(self) -> Night:
        """Return what was run. Raises HarnessError if it is missing or torn."""
        night: Night = _read(_NIGHTS_OF, self.night_path)
        return night

    def write_plan(self, plan: NightPlan) -> None:
        """Store the plan. Raises HarnessError if the disk refuses."""
        write_atomically(self.plan_path, _PLANS.dump_json(plan, indent=2) + b"\n")

    def write(self, night: Night) -> None:
        """Store what was run. Raises HarnessError if the disk refuses."""
        write_atomically(self.night_path, _NIGHTS_OF.dump_json(night, indent=2) + b"\n")


def nights_of(results: Path, name: str) -> Path:
    """Return the directory of all nights of this name."""
    return results / _NIGHTS / name


def unfinished(results: Path, name: str) -> list[NightStore]:
    """Return the nights of this name that can be resumed, the newest last."""
    found = []
    for path in sorted(nights_of(results, name).glob("*/night.json")):
        store = NightStore(path.parent)
        try:
            if store.read().ended_at is None:
                found.append(store)
        except HarnessError:
            continue  # of another format, or torn: not ours to resume
    return found


def next_seed(results: Path, name: str) -> int | None:
    """Return the first seed that no night of this name has used; None before the first night."""
    path = nights_of(results, name) / "seed.json"
    return _read(_SEEDS, path)["next_seed"] if path.is_file() else None


def keep_seed(results: Path, name: str, seed: int) -> None:
    """Note that this seed is used: the next night begins behind it."""
    before = next_seed(results, name)
    following = seed % SEED_MAX + 1
    if before is None or seed >= before or following == 1:
        content = _SEEDS.dump_json({"next_seed": following}) + b"\n"
        write_atomically(nights_of(results, name) / "seed.json", content)


def _read(adapter: TypeAdapter[Any], path: Path) -> Any:
    try:
        return adapter.validate_json(path.read_bytes())
    except OSError as error:
        raise HarnessError(f"cannot read {path}: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the whole"
        raise HarnessError(f"{path} is not the file of a night: {place}: {first['msg']}") from error


def ended(night: Night, plan: NightPlan, *, reason: str) -> Night:
    """Return the night as it is over now, with what was left out of it."""
    return replace(
        night,
        ended_at=datetime.now(UTC).isoformat(timespec="seconds"),
        left_out=(*plan.left_out, *left_over(plan, night.runs, reason=reason)),
    )
