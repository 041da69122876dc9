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
from checkers.entry import Entry, Kind, Strength
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

__all__ = ["CHECKS", "answers_of_task"]

_ALLOWED_IF: Final = (
    "the run promises no greatest age of metadata, as no release of Kafka does, or the read is no "
    "older than promised; then it is a figure. A run may promise one of every read (`age_max_ms`), "
    "and one of reads called when nothing has been broken for a while (`settled_age_max_ms`, "
    "`settle_ms`). Brokers of the reference cluster that hide what not all have acknowledged "
    "(metadata.version 3) promise that no read is too old at all"
)

STALE: Final = Entry(
    id="V1",
    name="stale-read-after-write",
    title="A read of metadata lacks a write that was acknowledged before it",
    kind=Kind.ANOMALY,
    rule="A read shows what can only have been made before a write was called, and that write was "
    "acknowledged before the read was called: an old topic id after a deletion or a new creation, "
    "no topic after a creation or a change of its settings, an old setting after a newer one, "
    "fewer partitions of a topic id than it was given. Whatever a write without a clear "
    "end may have made is never stale.",
    meaning="A client creates a topic and is told that there is none. By how much: count of reads "
    "and topics, and the time from the acknowledgement to the read.",
    case="a topic or partition in a read that was called after an acknowledged write of it",
    source="KIP-1243; KAFKA-20089",
    strength=Strength.ALLOWED_IF,
    allowed_if=_ALLOWED_IF,
    promise="metadata_age_is_bounded",
    needs=("describes", "metadata_writes"),
)

NONREPEATABLE: Final = Entry(
    id="V2",
    name="nonrepeatable-read",
    title="Reads of metadata through different brokers go back",
    kind=Kind.ANOMALY,
    rule="A read returned before another, through a different broker, was called, and the second "
    "shows what can only have been made before what the first one shows: an older topic id, an "
    "older setting, no topic, an older leader epoch or fewer partitions of the same topic id.",
    meaning="A client that changes its broker is put back in time.",
    case="a topic or partition in a read that was called after one through another broker",
    source="KIP-1243; KAFKA-20089",
    strength=Strength.ALLOWED_IF,
    allowed_if=_ALLOWED_IF,
    promise="metadata_age_is_bounded",
    needs=("describes",),
)

BACKWARD_SESSION: Final = Entry(
    id="V3",
    name="session-went-back",
    title="Reads of metadata through one broker go back",
    kind=Kind.ANOMALY,
    rule="As nonrepeatable-read, through one broker.",
    meaning="A broker forgot metadata that it had shown, as one that starts again does.",
    case="a topic or partition in a read that was called after one through the same broker",
    source="KIP-1243",
    strength=Strength.ALLOWED_IF,
    allowed_if=_ALLOWED_IF,
    promise="metadata_age_is_bounded",
    needs=("describes",),
)

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


CHECKS: Final = (
    CheckGroup(name="visibility", entries=(STALE, NONREPEATABLE, BACKWARD_SESSION), answer=_answer),
)
