"""The checks of visibility as a group: each reads its tables whole, in a Spark task."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from checkers.anomaly import ANOMALIES
from checkers.check_group import CheckGroup, GroupAnswers, Question
from checkers.entry import Entry, Kind, Strength
from checkers.facts import Tables
from checkers.quiet import quiet
from checkers.runner.tables import SealedFile, byte_count, load_faults, rows_in
from checkers.runner.tasks import TaskResult
from checkers.verdict import CheckResult, Validity
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

__all__ = ["CHECKS"]

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
"""The tables that are read; an empty table stands for writes that were not recorded."""
_LATER: Final = "partition_writes"
"""A run that did not set out to record it may be older than the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """The checks by name, of these files."""

    files: Mapping[str, SealedFile]
    promise: Promise

    def __call__(self, check: str) -> tuple[StaleReads, int]:
        """Return the findings of the check and the number of its cases."""
        read = {name: rows_in(file, name) for name, file in self.files.items()}
        tables = {_LATER: PARTITION_WRITES.empty_table(), **read}
        found = _KERNELS[check](tables)
        return found, _case_count(_KERNELS[check], tables, found, self.promise)


def _case_count(kernel: Kernel, tables: Tables, found: StaleReads, promise: Promise) -> int:
    """Return how many of the comparisons the run makes a promise about; without a promise, all.

    Reads that are held to nothing are left out altogether: what only they had shown before a read
    is not counted against it, so the number is rather too small.
    """
    describes = tables["describes"]
    held = promise.held(describes["call_ns"].to_numpy())
    if held.all() or not promise.promises.metadata_age_is_bounded:
        return found.judged_count
    return kernel({**tables, "describes": describes.filter(pa.array(held))}).judged_count


def _answer(question: Question) -> GroupAnswers:
    names = (*_TABLES, *({_LATER} & set(question.manifest.recorded)))
    files = {name: question.file(name) for name in names}
    promises = question.manifest.promises
    try:
        promise = Promise(promises=promises, calm=quiet(load_faults(question.run)))
        offsets = Offsets(question.rows("metadata_offsets"))
    except HarnessError as error:
        return _silent(question.checks, str(error))
    size = sum(map(byte_count, files.values()))
    answers = question.each(question.checks, _Work(files=files, promise=promise), bytes_in_all=size)
    told = [_told(answer, offsets, promise) for answer in answers]
    return GroupAnswers(
        results=tuple(one for one, _ in told),
        anomalies=pa.concat_tables([table for _, table in told]),
    )


def _told(
    answer: TaskResult[str, tuple[StaleReads, int]], offsets: Offsets, promise: Promise
) -> tuple[CheckResult, pa.Table]:
    if answer.content is None:
        silent = _silent([answer.task], answer.failure)
        return silent.results[0], silent.anomalies
    found, case_count = answer.content
    told = result(
        answer.task,
        found,
        offsets=offsets,
        case_count=case_count,
        seconds=answer.seconds,
        promise=promise,
    )
    return told, anomalies(answer.task, found.table, offsets=offsets, promise=promise)


def _silent(checks: Sequence[str], reason: str) -> GroupAnswers:
    results = tuple(
        CheckResult(check=check, validity=Validity.UNKNOWN, reason=reason) for check in checks
    )
    return GroupAnswers(results=results, anomalies=ANOMALIES.empty_table())


CHECKS: Final = (
    CheckGroup(name="visibility", entries=(STALE, NONREPEATABLE, BACKWARD_SESSION), answer=_answer),
)
