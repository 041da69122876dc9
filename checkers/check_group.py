"""Groups of checks outside the data plane: what a group is, its question and its answers.

A group answers its checks from the sealed tables of a run, in whatever way suits it; most are
kernels of tables of the cluster (`checkers.group_pass`). It is asked for those of its checks
whose tables the run set out to record: another check is not asked, and stands in no verdict. A
group that crashes as a whole leaves its checks unknown, and no others.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

import pyarrow as pa

from fencepost.checkers.anomaly import ANOMALIES
from fencepost.checkers.entry import CatalogueEntry
from fencepost.checkers.runner.tables import SealedFile, cluster_file, rows_in, run_files
from fencepost.checkers.runner.tasks import TaskResult, TaskSession, run_tasks
from fencepost.checkers.setting import Setting
from fencepost.checkers.slices import SLICE_ROWS
from fencepost.checkers.verdict import CheckResult, Validity
from fencepost.history.manifest import Manifest
from fencepost.history.run_directory import RunDirectory

Task = TypeVar("Task")
Content = TypeVar("Content")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The question put to a group: the run and its tables."""

    run: RunDirectory
    manifest: Manifest
    checks: tuple[str, ...]
    """The names of the checks, in the order of the catalogue; never empty."""
    setting: Setting
    """The setting that the operations tell: promises, complete final reads."""
    session: TaskSession
    budget_s: float
    """The budget of one job."""
    slice_rows: int = SLICE_ROWS
    """The rows that the tables of one call may have, about (`checkers.slices`)."""

    def file(self, name: str, *, bucket: int = 0) -> SealedFile:
        """Return the file of a table, or that of a bucket of it."""
        return cluster_file(self.run, self.manifest, name, bucket=bucket)

    def rows(self, name: str) -> pa.Table:
        """Return a table, whole. Raises HarnessError if it cannot be read."""
        return rows_in(self.file(name), name)

    def each(
        self,
        tasks: Sequence[Task],
        work: Callable[[Task], Content],
        *,
        bytes_in_all: int = 0,
        workers: int | None = None,
        neighbours: bool = False,
    ) -> list[TaskResult[Task, Content]]:
        """Run the work on each task (`run_tasks`)."""
        return run_tasks(
            self.session,
            tasks,
            work,
            budget_s=self.budget_s,
            bytes_in_all=bytes_in_all,
            workers=workers,
            neighbours=neighbours,
        )

    def each_file(
        self, files: Sequence[SealedFile], work: Callable[[SealedFile], Content]
    ) -> list[TaskResult[SealedFile, Content]]:
        """Run the work on each file."""
        return run_files(self.session, files, work, budget_s=self.budget_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAnswers:
    """The answers of a group to its checks."""

    results: tuple[CheckResult, ...]
    """One result per check that was asked; a check without one counts as not run."""
    anomalies: pa.Table
    """`checkers.anomaly.ANOMALIES` of all of them."""

    @classmethod
    def of(cls, told: Iterable[tuple[CheckResult, pa.Table]]) -> Self:
        """Return the answers and the anomalies of checks, gathered."""
        results, tables = zip(*told, strict=True)
        return cls(results=results, anomalies=pa.concat_tables(tables))

    @classmethod
    def unknown(cls, checks: Iterable[str], reason: str) -> Self:
        """Return that none of these checks could be answered, and why."""
        results = (
            CheckResult(check=one, validity=Validity.UNKNOWN, reason=reason) for one in checks
        )
        return cls(results=tuple(results), anomalies=ANOMALIES.empty_table())


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckGroup:
    """Checks that are answered together."""

    name: str
    entries: tuple[CatalogueEntry, ...]
    """The group's entries of the catalogue, which lists them, too."""
    answer: Callable[[Question], GroupAnswers]
    given: tuple[str, ...] = ()
    """Tables that it reads beside those that its entries need."""
