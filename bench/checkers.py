"""The speed of the checkers, how it grows with the size, and the memory they take.

A section is a kind of history and the work done on it. Each size of it is made in a process of its
own, and measured in another, so that the memory used to make it is not in the figures. Every
repetition ends in a verdict, and a verdict that is not the expected one ends the bench: a fast
wrong answer is no result.

Rates are of all that counts as one in the section (operations, records, transactions). Growth is
the exponent b of time ~ size^b between neighbouring sizes, of the medians.
"""

import multiprocessing
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from fencepost.bench.measuring import Cost, growth, measured, spread
from fencepost.bench.worst_cases import WORST_CASES
from fencepost.checkers.catalogue import entry_of
from fencepost.checkers.check import check_run
from fencepost.checkers.entry import Kind
from fencepost.checkers.linearizability.versioned import nonlinearizable
from fencepost.checkers.runner.session import spark_session
from fencepost.checkers.runner.spark_tasks import SparkTasks
from fencepost.checkers.verdict import Validity
from fencepost.clusters.provision.java import find_java, spark_java_home
from fencepost.generators.draft import HistoryRecipe
from fencepost.generators.list_append import ListAppendRecipe as TransactionRecipe
from fencepost.generators.list_append import write_synthetic_transactions
from fencepost.generators.long_histories import write_long_synthetic_run
from fencepost.generators.models import ModelRecipe, model_pieces
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Manifest, Promises, RunState
from fencepost.history.model_writer import write_model_history
from fencepost.history.models import Model
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import MODEL_OPERATIONS

_MEGABYTE = 1 << 20
_MASTER: Final = "local[2]"
_KEY: Final = "k0"
_ROWS: Final = "rows.parquet"
_KEYS: Final = 100
_MILLION: Final = 1_000_000
_ROWS_A_SEND: Final = 4
"""The records for each send: the send, a poll of each of two consumers, and the final read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeFigures:
    """The figures of one size of one section."""

    section: str
    unit: str
    size: int
    costs: tuple[Cost, ...]
    """The cost of each repetition, in order; the first one finds everything cold."""

    @property
    def per_s(self) -> tuple[float, ...]:
        """The rate of each repetition."""
        return tuple(self.size / cost.seconds for cost in self.costs)

    @property
    def median_s(self) -> float:
        """The median time of the repetitions."""
        return statistics.median(cost.seconds for cost in self.costs)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckerFigures:
    """The figures of all sections, in order."""

    sizes: tuple[SizeFigures, ...]

    def as_data(self) -> dict[str, object]:
        """Return the figures for JSON."""
        return {
            "sizes": [{**asdict(one), "per_s": one.per_s} for one in self.sizes],
            "growth": self.growth(),
        }

    def growth(self) -> dict[str, tuple[float, ...]]:
        """Return the exponents of each section that has several sizes."""
        found = {}
        for name, sizes in self._by_section().items():
            if len(sizes) > 1:
                found[name] = growth([one.size for one in sizes], [one.median_s for one in sizes])
        return found

    def lines(self) -> list[str]:
        """Return the figures as lines of text."""
        return [line for sizes in self._by_section().values() for line in self._table(sizes)]

    def _by_section(self) -> Mapping[str, list[SizeFigures]]:
        found: dict[str, list[SizeFigures]] = {}
        for one in self.sizes:
            found.setdefault(one.section, []).append(one)
        return found

    def _table(self, sizes: Sequence[SizeFigures]) -> Iterator[str]:
        first = sizes[0]
        yield f"{first.section}: {SECTIONS[first.section].title}"
        yield (
            f"  {first.unit:>14}  {'a second: min / median / max':^37}  "
            f"{'seconds: min / median / max':^29}  {'cores':>5}  peak MB"
        )
        for one in sizes:
            cores = sum(cost.cpu_s for cost in one.costs) / sum(c.seconds for c in one.costs)
            peak = max(cost.rss_bytes_max for cost in one.costs) // _MEGABYTE
            seconds = [cost.seconds for cost in one.costs]
            yield (
                f"  {one.size:>14,}  {spread(one.per_s, '11,.0f')}  {spread(seconds, '8.2f')}"
                f"  {cores:5.2f}  {peak:7,}"
            )
        exponents = self.growth().get(first.section, ())
        if exponents:
            yield f"  growth: n^{', n^'.join(f'{one:.2f}' for one in exponents)}"


def checkers_bench(
    *,
    only: Sequence[str],
    sizes: Sequence[int],
    repetitions: int,
    directory: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> CheckerFigures:
    """Measure these sections, at these sizes (of each its own, if none are given).

    `directory`: where histories are made, and removed again. Raises HarnessError if a verdict is
    not the expected one, or a process dies.
    """
    found = []
    for name in only:
        section = SECTIONS[name]
        for size in sorted(sizes or section.sizes):
            with tempfile.TemporaryDirectory(prefix="fencepost-bench-", dir=directory) as place:
                say(f"{name}: making {size:,} {section.unit}")
                _apart(_make, name, Path(place), size)
                costs = _apart(_measure, name, Path(place), size, repetitions)
            figures = SizeFigures(section=name, unit=section.unit, size=size, costs=costs)
            say(f"{name}: {size:,} {section.unit} in {figures.median_s:.2f} s")
            found.append(figures)
    return CheckerFigures(sizes=tuple(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    """One kind of measurement."""

    title: str
    unit: str
    sizes: tuple[int, ...]
    make: Callable[[Path, int], None]
    """Write the history of this size into a directory."""
    measure: Callable[[Path, int, int], tuple[Cost, ...]]
    """Returns the costs of repetitions on the history: (directory, size, count of repetitions)."""


_RIGHT: Final = (Validity.VALID, Validity.FIGURE)
"""The answers of checks to a history that is valid: a figure is neither right nor wrong."""


def _make_rows(directory: Path, size: int) -> None:
    """Write the rows of one register, as a kernel gets them."""
    recipe = ModelRecipe(model=Model.VERSIONED_REGISTER, operations=size)
    with pq.ParquetWriter(directory / _ROWS, MODEL_OPERATIONS) as file:
        for _, pieces in model_pieces(recipe):
            for piece in pieces:
                file.write_table(piece.cast(MODEL_OPERATIONS))


def _make_worst(directory: Path, size: int, *, case: str) -> None:
    pq.write_table(WORST_CASES[case](_KEY, size), directory / _ROWS)


def _judge_rows(directory: Path, size: int, repetitions: int) -> tuple[Cost, ...]:
    """The kernel alone, on one core, rows in memory."""
    rows = pq.read_table(directory / _ROWS, read_dictionary=["key", "f", "outcome"])
    if rows.num_rows != size:
        raise HarnessError(f"{rows.num_rows} operations were made, and not {size}")

    def judge() -> None:
        found = nonlinearizable(_KEY, rows, Model.VERSIONED_REGISTER)
        if found.never_count or found.doubt:
            raise HarnessError(f"a linearizable history was not found so: {found}")

    return tuple(measured(judge) for _ in range(repetitions))


def _make_registers(directory: Path, size: int, *, keys: int) -> None:
    """Write an open history of `keys` registers, each with its share of the operations."""
    manifest = Manifest(
        run_id="bench",
        state=RunState.RECORDED,
        scenario="bench",
        title="A made-up history of registers",
        seed=0,
        started_at="1970-01-01T00:00:00Z",
        origin_ns=0,
        command="fencepost bench checkers",
        fencepost_version="",
        model=Model.VERSIONED_REGISTER.value,
        promises=Promises(idempotent=True, acks="all", consume="assign"),
        end_ns=0,
    )
    recipe = ModelRecipe(model=Model.VERSIONED_REGISTER, operations=size, keys=keys)
    write_model_history(RunDirectory(directory), manifest, model_pieces(recipe))


def _make_transactions(directory: Path, size: int) -> None:
    write_synthetic_transactions(RunDirectory(directory), TransactionRecipe(transactions=size))


def _make_run(directory: Path, size: int, *, keys: int = 16) -> None:
    recipe = HistoryRecipe(sends=size // _ROWS_A_SEND, keys=keys)
    write_long_synthetic_run(RunDirectory(directory), recipe)


def _judge_run(directory: Path, size: int, repetitions: int) -> tuple[Cost, ...]:
    """Measure from the sealed files to the verdict on disk, in a session that already exists."""
    del size
    run = RunDirectory(directory)
    spark = spark_session(java_home=spark_java_home(find_java()), master=_MASTER)

    def judge() -> None:
        wrong = {
            one.check: one.reason
            for one in check_run(run, session=SparkTasks(spark)).checks
            # There are no grounds for a verdict on a run that never was.
            if one.validity not in _RIGHT and entry_of(one.check).kind is not Kind.GROUND
        }
        if wrong:
            raise HarnessError(f"a history that is valid was not found so: {wrong}")

    try:
        return tuple(measured(judge) for _ in range(repetitions))
    finally:
        spark.stop()


def _check_again(directory: Path, size: int, repetitions: int) -> tuple[Cost, ...]:
    """The command itself: Python, the JVM, the checks, the report."""
    del size
    command = [sys.executable, "-m", "fencepost", "check", str(directory)]
    master = ["--spark-master", _MASTER]

    def check() -> None:
        ended = subprocess.run([*command, *master], capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            raise HarnessError(
                f"`{' '.join(command)}` ended with {ended.returncode}: {ended.stderr}"
            )

    return tuple(measured(check) for _ in range(repetitions))


SECTIONS: Final[Mapping[str, _Section]] = {
    "registers": _Section(
        title="versioned register in memory, 50 clients, 1 % crashes, one core",
        unit="operations",
        sizes=(_MILLION, 10 * _MILLION),
        make=_make_rows,
        measure=_judge_rows,
    ),
    "register-on-spark": _Section(
        title=f"versioned registers from sealed Parquet to verdict, {_KEYS} keys, {_MASTER}",
        unit="operations",
        sizes=(_MILLION, 10 * _MILLION),
        make=partial(_make_registers, keys=_KEYS),
        measure=_judge_run,
    ),
    "one-key-on-spark": _Section(
        title=f"one versioned register from sealed Parquet to verdict, {_MASTER}",
        unit="operations",
        sizes=(_MILLION, 10 * _MILLION),
        make=partial(_make_registers, keys=1),
        measure=_judge_run,
    ),
    "data-plane": _Section(
        title=f"all checks of sends and polls from sealed Parquet to verdict, {_MASTER}",
        unit="records",
        sizes=(_MILLION, 10 * _MILLION),
        make=_make_run,
        measure=_judge_run,
    ),
    "data-plane-one-key": _Section(
        title=f"the same with all records in one partition, {_MASTER}",
        unit="records",
        sizes=(_MILLION, 10 * _MILLION),
        make=partial(_make_run, keys=1),
        measure=_judge_run,
    ),
    "cycles": _Section(
        title=f"list-append transactions from sealed Parquet to verdict, {_MASTER}",
        unit="transactions",
        sizes=(_MILLION // 10, _MILLION),
        make=_make_transactions,
        measure=_judge_run,
    ),
    "recheck": _Section(
        title="`fencepost check` of a stored run, the start of Python and of the JVM included",
        unit="records",
        sizes=(20_000,),
        make=_make_run,
        measure=_check_again,
    ),
    "worst-refused": _Section(
        title="versioned register, half of the operations refused, all in one connected run",
        unit="operations",
        sizes=(_MILLION, 10 * _MILLION),
        make=partial(_make_worst, case="all-refused"),
        measure=_judge_rows,
    ),
    "worst-open": _Section(
        title="versioned register, half of the operations never answered",
        unit="operations",
        sizes=(_MILLION, 2 * _MILLION),
        make=partial(_make_worst, case="never-answered"),
        measure=_judge_rows,
    ),
}
"""The sections, in the order in which they are measured."""


def _make(section: str, directory: Path, size: int) -> tuple[Cost, ...]:
    SECTIONS[section].make(directory, size)
    return ()


def _measure(section: str, directory: Path, size: int, repetitions: int) -> tuple[Cost, ...]:
    return SECTIONS[section].measure(directory, size, repetitions)


def _apart(work: Callable[..., tuple[Cost, ...]], *arguments: object) -> tuple[Cost, ...]:
    """Measure in a process of its own, which begins with none of this one's memory."""
    context = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
            return pool.submit(work, *arguments).result()
    except BrokenProcessPool as error:
        raise HarnessError(f"a process of the bench died: {arguments[0]}") from error
