"""The checks of visibility as a group: each reads its tables whole, in a Spark task."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_schema

from checkers.anomaly import ANOMALIES
from checkers.check_group import CheckGroup, GroupAnswers, Question
from checkers.facts import Tables
from checkers.quiet import quiet
from checkers.runner.tables import (
    JobError,
    SealedFile,
    byte_count,
    cluster_file,
    collected,
    load_faults,
    rows_in,
    task_count,
)
from checkers.verdict import CheckResult, Validity
from checkers.visibility.entries import BACKWARD_SESSION, NONREPEATABLE, STALE, VISIBILITY
from checkers.visibility.lacking import STALE_READS
from checkers.visibility.promise import Promise
from checkers.visibility.stale import (
    StaleReads,
    backward_sessions,
    nonrepeatable_reads,
    stale_reads,
)
from checkers.visibility.told import Offsets, anomalies, result
from history.cluster_schema import PARTITION_WRITES
from history.failure import HarnessError

__all__ = ["VISIBILITY_GROUP", "answers_of_task"]

Kernel = Callable[[Tables], StaleReads]

_KERNELS: Final[Mapping[str, Kernel]] = {
    STALE.name: stale_reads,
    NONREPEATABLE.name: nonrepeatable_reads,
    BACKWARD_SESSION.name: backward_sessions,
}
_TABLES: Final = ("describes", "metadata_writes")
"""Writes that nobody recorded are an empty table."""
_LATER: Final = "partition_writes"
"""A run that did not set out to record it may be older than the table."""

_ANSWERS: Final = pa.schema(
    [
        pa.field("check", pa.string(), nullable=False),
        # Of the last row of a check, which says how it went; in the others null.
        pa.field("judged_count", pa.int64()),
        pa.field("case_count", pa.int64()),
        pa.field("unknown", pa.string()),
        pa.field("seconds", pa.float64()),
        *(field.with_nullable(True) for field in STALE_READS),
    ]
)


@dataclass(frozen=True, slots=True)
class _Tasks:
    """The checks, as `mapInArrow` calls them: batches of their numbers in, their answers out."""

    checks: tuple[str, ...]
    files: Mapping[str, SealedFile]
    promise: Promise

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from answers_of_task(
                    self.checks[number], self.files, self.promise
                ).to_batches()


def answers_of_task(check: str, files: Mapping[str, SealedFile], promise: Promise) -> pa.Table:
    """What one check found in these files, and a last row that says how it went."""
    started = perf_counter()
    stale = STALE_READS.empty_table()
    end: dict[str, Any]
    try:
        read = {name: rows_in(file, name) for name, file in files.items()}
        tables = {_LATER: PARTITION_WRITES.empty_table(), **read}
        found = _KERNELS[check](tables)
        stale, end = found.table, {"judged_count": found.judged_count}
        end["case_count"] = _case_count(_KERNELS[check], tables, found, promise)
    except HarnessError as error:
        end = {"unknown": str(error)}
    except Exception as error:  # noqa: BLE001  # whatever it is, this check alone is unknown
        end = {"unknown": f"the check crashed: {type(error).__name__}: {error}"}
    end |= {"check": check, "seconds": perf_counter() - started}
    return pa.concat_tables([_with_check(check, stale), pa.Table.from_pylist([end], _ANSWERS)])


def _case_count(kernel: Kernel, tables: Tables, found: StaleReads, promise: Promise) -> int:
    """How many of what was compared the run makes a promise of; without any promise, all.

    Reads that are held to nothing are left out altogether: what only they had shown before a read
    is not counted against it, so the number is rather too small.
    """
    describes = tables["describes"]
    held = promise.held(describes["call_ns"].to_numpy())
    if held.all() or not promise.promises.metadata_age_is_bounded:
        return found.judged_count
    return kernel({**tables, "describes": describes.filter(pa.array(held))}).judged_count


def _with_check(check: str, stale: pa.Table) -> pa.Table:
    """STALE_READS as rows of _ANSWERS."""
    count = len(stale)
    columns = {
        "check": pa.array([check] * count, pa.string()),
        "judged_count": pa.nulls(count, pa.int64()),
        "case_count": pa.nulls(count, pa.int64()),
        "unknown": pa.nulls(count, pa.string()),
        "seconds": pa.nulls(count, pa.float64()),
        **{name: stale[name] for name in STALE_READS.names},
    }
    return pa.table(columns, schema=_ANSWERS)


def _answer(question: Question) -> GroupAnswers:
    names = (*_TABLES, *({_LATER} & set(question.manifest.recorded)))
    files = {name: cluster_file(question.run, question.manifest, name) for name in names}
    promises = question.manifest.promises
    try:
        promise = Promise(promises=promises, calm=quiet(load_faults(question.run)))
        answers = _collected(question, files, promise)
    except HarnessError as error:
        return _silent(question.checks, str(error))
    except JobError as error:
        return _silent(question.checks, f"the job of the checks of visibility died: {error}")
    offsets = Offsets(_offsets(question))
    told = [_told(check, answers, offsets, promise) for check in question.checks]
    return GroupAnswers(
        results=tuple(one for one, _ in told),
        anomalies=pa.concat_tables([table for _, table in told]),
    )


def _collected(question: Question, files: Mapping[str, SealedFile], promise: Promise) -> pa.Table:
    count = len(question.checks)
    tasks = task_count(question.spark, count, bytes_in_all=sum(map(byte_count, files.values())))
    frame = question.spark.range(0, count, 1, tasks).mapInArrow(
        _Tasks(question.checks, files, promise), from_arrow_schema(_ANSWERS)
    )
    return collected(frame, schema=_ANSWERS, budget_s=question.budget_s)


def _offsets(question: Question) -> pa.Table:
    name = "metadata_offsets"
    return rows_in(cluster_file(question.run, question.manifest, name), name)


def _told(
    check: str, answers: pa.Table, offsets: Offsets, promise: Promise
) -> tuple[CheckResult, pa.Table]:
    mine = answers.filter(pc.equal(answers["check"], check))
    is_end = pc.is_null(mine["read"])
    ends: list[dict[str, Any]] = mine.filter(is_end).to_pylist()
    if not ends or ends[0]["unknown"] is not None:
        reason = ends[0]["unknown"] if ends else "it was not answered"
        silent = _silent([check], reason)
        return silent.results[0], silent.anomalies
    table = mine.filter(pc.invert(is_end)).select(STALE_READS.names).cast(STALE_READS)
    end = ends[0]
    found = StaleReads(table=table, judged_count=end["judged_count"])
    answer = result(
        check,
        found,
        offsets=offsets,
        case_count=end["case_count"],
        seconds=end["seconds"],
        promise=promise,
    )
    return answer, anomalies(check, table, offsets=offsets, promise=promise)


def _silent(checks: Sequence[str], reason: str) -> GroupAnswers:
    results = tuple(
        CheckResult(check=check, validity=Validity.UNKNOWN, reason=reason) for check in checks
    )
    return GroupAnswers(results=results, anomalies=ANOMALIES.empty_table())


VISIBILITY_GROUP: Final = CheckGroup(name="visibility", entries=VISIBILITY, answer=_answer)
