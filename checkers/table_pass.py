"""Checks of tables of the cluster: kernels of whole tables, in Spark tasks.

Control-plane tables are small beside the records of a run (a metadata log has thousands of rows, a
tape some hundred thousand), so a kernel is given the tables that it wants, whole. What grows with
the records is spread over buckets by key, and a check of it has a call a bucket.

To read a tape and to replay a log takes longer than most checks do. So there are only as many Spark
tasks as the records are worth (`checkers.runner.tables.task_count`), and the calls of one task
share what they read.

A kernel that crashes is unknown for its call and check; so is a table that cannot be read. A Spark
task that dies ends the job of the group, and every check then has a job of its own.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_schema

from checkers.check_group import CheckGroup, GroupAnswers, Question
from checkers.entry import Entry
from checkers.facts import Facts, facts_of
from checkers.finding_rows import FINDINGS, findings_table, found_row, unknown_row
from checkers.results import anomalies_found, file_answers, result_of
from checkers.runner.memory import out_of_memory
from checkers.runner.tables import (
    JobError,
    SealedFile,
    byte_count,
    cluster_file,
    collected,
    row_count,
    rows_in,
    task_count,
)
from checkers.table_check import TableCheck
from checkers.verdict import CheckResult
from history.failure import HarnessError
from history.schema import RECORD_BUCKET_COUNT

__all__ = ["findings_of_task", "table_group"]

_LOG: Final = logging.getLogger(__name__)
_BUCKETED: Final = ("records", "replica_records")

_Shelf = dict[SealedFile, pa.Table]
"""What the calls of a Spark task share: tables that were read; never those of a bucket."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """One call of a kernel."""

    check: TableCheck
    bucket: int
    files: Mapping[str, SealedFile]
    facts: Facts

    @property
    def label(self) -> str:
        """What a row of FINDINGS names it by."""
        name = self.check.entry.name
        return f"bucket {self.bucket} of {name}" if self.check.by_bucket else name


def table_group(checks: Sequence[TableCheck]) -> CheckGroup:
    """These checks as a group."""

    def answer(question: Question) -> GroupAnswers:
        asked = [check for check in checks if check.entry.name in question.checks]
        return _answers(asked, question)

    return CheckGroup(name="tables", entries=tuple(check.entry for check in checks), answer=answer)


def findings_of_task(task: _Task, shelf: _Shelf) -> pa.Table:
    """FINDINGS of one call of a kernel: a row a key it judged, and one of the call itself."""
    started = perf_counter()
    name = task.check.entry.name
    rows: list[dict[str, Any]] = []
    unreadable = None
    try:
        tables = {name: _read(name, file, shelf) for name, file in task.files.items()}
        rows = [
            found_row(name, found) | {"key": key, "seconds": 0.0}
            for key, found in task.check.kernel(tables, task.facts)
        ]
    except HarnessError as error:
        unreadable = str(error)
    except MemoryError as error:
        rows = [unknown_row(name, out_of_memory(error), seconds=0.0) | {"key": ""}]
    except Exception as error:  # noqa: BLE001  # whatever it is, this check alone is unknown
        reason = f"the check crashed: {type(error).__name__}: {error}"
        rows = [unknown_row(name, reason, seconds=0.0) | {"key": ""}]
    seconds = perf_counter() - started
    if rows:
        rows[0]["seconds"] = seconds
    own = {"record_count": 0, "unknown": unreadable, "seconds": seconds}
    return findings_table([row | {"path": task.label} for row in (*rows, own)])


def _read(name: str, file: SealedFile, shelf: _Shelf) -> pa.Table:
    if name in _BUCKETED:
        return rows_in(file, name)
    if file not in shelf:
        shelf[file] = rows_in(file, name)
    return shelf[file]


@dataclass(frozen=True, slots=True)
class _Tasks:
    """The calls, as `mapInArrow` calls them: batches of their numbers in, batches of rows out."""

    tasks: tuple[_Task, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shelf: _Shelf = {}
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from findings_of_task(self.tasks[number], shelf).to_batches()


def _answers(checks: Sequence[TableCheck], question: Question) -> GroupAnswers:
    tasks = {check.entry.name: _tasks(check, question) for check in checks}
    findings, died = _findings(tasks, question)
    results = tuple(
        _result(check.entry, tasks[check.entry.name], findings, died) for check in checks
    )
    return GroupAnswers(
        results=results,
        anomalies=pa.concat_tables([anomalies_found(name, findings) for name in tasks]),
    )


def _tasks(check: TableCheck, question: Question) -> tuple[_Task, ...]:
    return tuple(
        _Task(
            check=check,
            bucket=bucket,
            files={
                name: cluster_file(question.run, question.manifest, name, bucket=bucket)
                for name in check.given
            },
            facts=facts_of(question.manifest),
        )
        for bucket in (_buckets(question) if check.by_bucket else (0,))
    )


def _buckets(question: Question) -> tuple[int, ...]:
    """Those that hold anything, or that cannot be read: few keys fill few buckets."""
    return tuple(
        bucket
        for bucket in range(RECORD_BUCKET_COUNT)
        if any(
            row_count(cluster_file(question.run, question.manifest, name, bucket=bucket)) != 0
            for name in _BUCKETED
        )
    )


def _findings(
    tasks: Mapping[str, tuple[_Task, ...]], question: Question
) -> tuple[pa.Table, dict[str, str]]:
    """FINDINGS of all tasks, and why a check did not answer at all."""
    died: dict[str, str] = {}
    try:
        return _collected(sum(tasks.values(), ()), question), died
    except JobError as error:
        _LOG.warning("the job of %s died (%s); running each by itself", ", ".join(tasks), error)
    tables = [FINDINGS.empty_table()]
    for name, mine in tasks.items():
        try:
            tables.append(_collected(mine, question))
        except JobError as error:
            died[name] = f"its job died: {error}"
    return pa.concat_tables(tables), died


def _collected(tasks: tuple[_Task, ...], question: Question) -> pa.Table:
    if not tasks:
        return FINDINGS.empty_table()
    of_buckets = sum(
        byte_count(file) for task in tasks for name, file in task.files.items() if name in _BUCKETED
    )
    count = task_count(question.spark, len(tasks), bytes_in_all=of_buckets)
    # Neighbours in the catalogue ask for the same tables: a Spark task takes every nth of them.
    dealt = tuple(task for first in range(count) for task in tasks[first::count])
    frame = question.spark.range(0, len(dealt), 1, count).mapInArrow(
        _Tasks(dealt), from_arrow_schema(FINDINGS)
    )
    return collected(frame, schema=FINDINGS, budget_s=question.budget_s)


def _result(
    entry: Entry, tasks: Sequence[_Task], findings: pa.Table, died: Mapping[str, str]
) -> CheckResult:
    name, labels = entry.name, [task.label for task in tasks]
    mine = findings.filter(pc.is_in(findings["path"], pa.array(labels)))
    # A job that died has answered for none of its tasks, which is one reason and not sixteen.
    paths = () if name in died else labels
    return result_of(
        entry,
        mine,
        files=file_answers(mine, paths=paths),
        broken=frozenset(),
        died=died.get(name, ""),
    )
