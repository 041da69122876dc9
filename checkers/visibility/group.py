"""The checks of visibility as a group: each of a slice of what clients were shown, in Spark tasks.

Kafka promises that brokers catch up, and not when: without a promise of the run the checks are
figures, and what was found is legal. A run may promise a greatest age of every read, and one of
reads that are called when nothing has been broken for a while: a broker that is cut off may be as
old as it likes, and catches up when it is not. Older reads are never allowed then. Sightings that
could be compared are counted: without any, nothing was judged. Where a write is proven to be
missing from its table (`whole_writes`), they are unknown. What is compared, and why that is sound,
is told in `stale` and `sightings`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.anomaly import ANOMALIES, PROOFS_MAX, Anomaly, anomalies_of
from fencepost.checkers.check_group import CheckGroup, GroupAnswers, Question
from fencepost.checkers.entry import CatalogueEntry, Nearness, Strength
from fencepost.checkers.facts import facts_of
from fencepost.checkers.proof import Proof
from fencepost.checkers.quiet import Quiet, long_waits, quiet
from fencepost.checkers.runner.tables import (
    SealedFile,
    byte_count,
    load_faults,
    row_count,
    source_in,
)
from fencepost.checkers.runner.tasks import TaskResult
from fencepost.checkers.slices import Slice, Split, slice_count, slices_of
from fencepost.checkers.sources import source_of
from fencepost.checkers.spans import Span
from fencepost.checkers.verdict import CheckResult, Validity
from fencepost.checkers.visibility.known_offsets import KnownOffsets
from fencepost.checkers.visibility.stale import (
    StaleReads,
    backward_sessions,
    nonrepeatable_reads,
    stale_reads,
)
from fencepost.checkers.visibility.topic_reads import TopicReads, topic_reads
from fencepost.checkers.visibility.whole_writes import missing_write
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Promises
from fencepost.history.request_schema import PARTITION_WRITES

_ALLOWED_IF: Final = (
    "the run promises no greatest age of metadata, as no release of Kafka does, or the read is no "
    "older than promised; then it is a figure. A run may promise one of every read (`age_max_ms`), "
    "and one of reads called when nothing has been broken for a while (`settled_age_max_ms`, "
    "`settle_ms`). Brokers of the reference cluster that hide what not all have acknowledged "
    "(metadata.version 3) promise that no read is too old at all"
)

_BY_WAITS: Final = ("whole-tape",)
"""There a request of the controller that waits long for its answer is no quiet (`quiet`)."""

STALE: Final = CatalogueEntry.of(
    """V1 stale-read-after-write: A read of metadata lacks a write that was acknowledged before it.

    A read shows what can only have been made before a write was called, and that write was
    acknowledged before the read was called: an old topic id after a deletion or a new creation, no
    topic after a creation or a change of its settings, an old setting after a newer one, fewer
    partitions of a topic id than it was given. Whatever a write without a clear end may have made
    is never stale.

    Meaning: A client creates a topic and is told that it does not exist. By how much: count of
    reads and topics, and the time from the acknowledgement to the read.
    Case: a topic or partition in a read that was called after an acknowledged write of it
    Source: KIP-1243; KAFKA-20089
    """,
    nearness=Nearness.VIEW,
    strength=Strength.ALLOWED_IF,
    allowed_if=_ALLOWED_IF,
    promise="metadata_age_is_bounded",
    rests_on_zookeeper=_BY_WAITS,
    needs=("describes", "metadata_writes"),
)

NONREPEATABLE: Final = CatalogueEntry.of(
    """V2 nonrepeatable-read: Reads of metadata through different brokers go back.

    A read returned before another, through a different broker, was called, and the second shows
    what can only have been made before what the first one shows: an older topic id, an older
    setting, no topic, an older leader epoch or fewer partitions of the same topic id.

    Meaning: A client that changes its broker is put back in time.
    Case: a topic or partition in a read that was called after one through another broker
    Source: KIP-1243; KAFKA-20089
    """,
    nearness=Nearness.VIEW,
    strength=Strength.ALLOWED_IF,
    allowed_if=_ALLOWED_IF,
    promise="metadata_age_is_bounded",
    rests_on_zookeeper=_BY_WAITS,
    needs=("describes",),
)

BACKWARD_SESSION: Final = CatalogueEntry.of(
    """V3 session-went-back: Reads of metadata through one broker go back.

    As nonrepeatable-read, through one broker.

    Meaning: A broker forgot metadata that it had shown, as one that starts again does.
    Case: a topic or partition in a read that was called after one through the same broker
    Source: KIP-1243
    """,
    nearness=Nearness.NODE,
    strength=Strength.ALLOWED_IF,
    allowed_if=_ALLOWED_IF,
    promise="metadata_age_is_bounded",
    rests_on_zookeeper=_BY_WAITS,
    needs=("describes",),
)

Kernel = Callable[[TopicReads], StaleReads]

_KERNELS: Final[Mapping[str, Kernel]] = {
    STALE.name: stale_reads,
    NONREPEATABLE.name: nonrepeatable_reads,
    BACKWARD_SESSION.name: backward_sessions,
}
_TABLES: Final = ("describes", "metadata_writes")
"""The tables that are read; an empty table stands for writes that were not recorded."""
_LATER: Final = "partition_writes"
"""A run that did not set out to record it may be older than the table."""
_READS_A_ROW: Final = 2
"""A row of a read, of which few columns are kept, takes that much less memory than a request."""
_EXAMPLES_MAX: Final = 5
"""Operations, offsets and the like, which a read of metadata has none of."""
_NS_A_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Promise:
    """The promises of a run, and the times when nothing was broken in it."""

    promises: Promises
    calm: Quiet

    def held(self, call_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return a mask of the reads, called at these times, that are held to any age."""
        if self.promises.metadata_age_max_ms is not None:
            return np.ones(len(call_ns), dtype=np.bool_)
        if self.promises.metadata_settled_age_max_ms is not None:
            return self.settled(call_ns)
        return np.zeros(len(call_ns), dtype=np.bool_)

    def settled(self, call_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return a mask of the times after a fault-free span as long as the run states."""
        settle_ns = int(self.promises.metadata_settle_ms * _NS_A_MS)
        settled: NDArray[np.bool_] = self.calm.since_ns(call_ns) <= call_ns - settle_ns
        return settled

    def broken(self, call_ns: NDArray[np.int64], known_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return a mask of reads that are too old. `known_ns`: when what they lack was known."""
        ages_ns = call_ns - known_ns
        too_old = np.zeros(len(ages_ns), dtype=np.bool_)
        if (always_ms := self.promises.metadata_age_max_ms) is not None:
            too_old |= ages_ns > always_ms * _NS_A_MS
        if (settled_ms := self.promises.metadata_settled_age_max_ms) is not None:
            too_old |= self.settled(call_ns) & (ages_ns > settled_ms * _NS_A_MS)
        return too_old

    def words(self) -> str:
        """Return the greatest age, or ages."""
        always_ms = self.promises.metadata_age_max_ms
        settled_ms = self.promises.metadata_settled_age_max_ms
        told = [] if always_ms is None else [f"{always_ms:g} ms"]
        if settled_ms is not None:
            after_s = self.promises.metadata_settle_ms / 1000
            told.append(f"{settled_ms:g} ms with nothing broken for {after_s:g} s")
        return ", or ".join(told)


def _result(
    check: str,
    found: StaleReads,
    *,
    offsets: KnownOffsets,
    case_count: int,
    seconds: float,
    promise: _Promise,
) -> CheckResult:
    """Return the answer of a check, with its figures and the worst few."""
    worst = _anomalies(check, found.table, offsets=offsets, count=_EXAMPLES_MAX, promise=promise)
    examples = tuple(anomalies_of(worst))
    never = int(np.count_nonzero(_too_old(found.table, promise)))
    validity, reason = Validity.VALID, ""
    if never:
        validity = Validity.INVALID
        reason = f"{never} found older than {promise.words()}: {examples[0].detail}"
    return CheckResult(
        check=check,
        validity=validity,
        case_count=case_count,
        anomaly_count=len(found.table),
        allowed_count=len(found.table) - never,
        reason=reason,
        figures=dict(_figures(found, promise)),
        seconds=seconds,
        examples=examples,
    )


def _anomalies(
    check: str,
    stale: pa.Table,
    *,
    offsets: KnownOffsets,
    count: int = PROOFS_MAX,
    promise: _Promise,
) -> pa.Table:
    """Return ANOMALIES of the worst of STALE_READS: those that break a promise, then the oldest."""
    too_old = _too_old(stale, promise)
    order = np.lexsort((-_ages_ns(stale), ~too_old))[:count]
    never = too_old[order].tolist()
    rows = [
        Anomaly(check=check, key=row["key"], allowed=not too_old, proof=_proof(row, offsets)).row()
        for row, too_old in zip(stale.take(pa.array(order)).to_pylist(), never, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=ANOMALIES)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What a check found out about some topics."""

    found: StaleReads
    case_count: int
    doubt: str
    """What proves that a write is missing, so that nothing is; empty without a doubt."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """These checks, of a slice of these files."""

    checks: Sequence[str]
    files: Mapping[str, SealedFile]
    promise: _Promise

    def __call__(self, part: Slice) -> Mapping[str, _Told]:
        """Return the findings of each check. What was shown is read once for all of them."""
        sources = {name: source_in(file, name) for name, file in self.files.items()}
        told = topic_reads(
            sources["describes"],
            topic_writes=sources["metadata_writes"],
            partition_writes=sources.get(_LATER, source_of(PARTITION_WRITES.empty_table())),
            part=part,
        )
        doubt = missing_write(told) if _LATER in self.files else ""
        return {check: self._judged(_KERNELS[check], told, doubt) for check in self.checks}

    def _judged(self, kernel: Kernel, told: TopicReads, doubt: str) -> _Told:
        started = perf_counter()
        found = kernel(told)
        return _Told(
            found=found,
            case_count=_case_count(kernel, told, found, self.promise),
            doubt=doubt,
            seconds=perf_counter() - started,
        )


def _case_count(kernel: Kernel, told: TopicReads, found: StaleReads, promise: _Promise) -> int:
    """Return how many of the comparisons the run makes a promise about; without a promise, all.

    Reads that are held to nothing are left out altogether: what only they had shown before a read
    is not counted against it, so the number is rather too small.
    """
    every_age = promise.promises.metadata_age_max_ms is not None
    if every_age or not promise.promises.metadata_age_is_bounded:
        return found.judged_count
    return kernel(told.called(promise.held)).judged_count


def _answer(question: Question) -> GroupAnswers:
    names = (*_TABLES, *({_LATER} & set(question.manifest.recorded)))
    files = {name: question.file(name) for name in names}
    promises = question.manifest.promises
    try:
        calm = quiet(load_faults(question.run), _waits(question))
        promise = _Promise(promises=promises, calm=calm)
        offsets = KnownOffsets(question.rows("metadata_offsets"))
    except HarnessError as error:
        return GroupAnswers.unknown(question.checks, str(error))
    size = sum(map(byte_count, files.values()))
    rows = max((row_count(file) or 0 for file in files.values()), default=0)
    count = slice_count(rows, _READS_A_ROW * question.slice_rows)
    slices = list(slices_of(Split.PARTITIONS, count))
    work = _Work(checks=question.checks, files=files, promise=promise)
    answers = question.each(slices, work, bytes_in_all=size)
    return GroupAnswers.of(_of_check(check, answers, offsets, promise) for check in question.checks)


def _waits(question: Question) -> Sequence[Span]:
    facts = facts_of(question.manifest)
    if "wire" not in question.manifest.recorded or not (facts.on_zookeeper or facts.migrating):
        return ()
    return long_waits(source_in(question.file("wire"), "wire"))


def _of_check(
    check: str,
    answers: Sequence[TaskResult[Slice, Mapping[str, _Told]]],
    offsets: KnownOffsets,
    promise: _Promise,
) -> tuple[CheckResult, pa.Table]:
    failures = [one.failure for one in answers if one.content is None]
    if not failures:
        failures = [one.result[check].doubt for one in answers if one.result[check].doubt]
    if failures:
        silent = GroupAnswers.unknown([check], "; ".join(dict.fromkeys(failures)))
        return silent.results[0], silent.anomalies
    parts = [one.result[check] for one in answers]
    found = StaleReads(
        table=pa.concat_tables(part.found.table for part in parts),
        judged_count=sum(part.found.judged_count for part in parts),
    )
    told = _result(
        check,
        found,
        offsets=offsets,
        case_count=sum(part.case_count for part in parts),
        seconds=sum(part.seconds for part in parts),
        promise=promise,
    )
    return told, _anomalies(check, found.table, offsets=offsets, promise=promise)


def _too_old(stale: pa.Table, promise: _Promise) -> NDArray[np.bool_]:
    return promise.broken(stale["call_ns"].to_numpy(), stale["known_ns"].to_numpy())


def _proof(row: dict[str, Any], offsets: KnownOffsets) -> Proof:
    return Proof.of(
        "read {read} through {node} (process {process}), called at {called}, showed {seen}; it "
        "lacks {lacks}, known since {known}, {age} before{offsets_told}",
        times={"called": row["call_ns"], "known": row["known_ns"]},
        durations={"age": row["call_ns"] - row["known_ns"]},
        read=row["read"],
        node=row["node"],
        process=row["process"],
        seen=Proof.of_columns(row["seen"]),
        lacks=Proof.of_columns(row["lacks"]),
        offsets_told=offsets.clause(row["node"], row["call_ns"]),
    )


def _figures(found: StaleReads, promise: _Promise) -> Iterator[tuple[str, float]]:
    yield "judged_count", found.judged_count
    yield "stale_count", len(found.table)
    yield from _ages("", _ages_ns(found.table))
    settled = found.table.filter(pa.array(promise.settled(found.table["call_ns"].to_numpy())))
    yield "settled_stale_count", len(settled)
    yield from _ages("settled_", _ages_ns(settled))
    for node in sorted(pc.unique(found.table["node"]).to_pylist()):
        of_node = found.table.filter(pc.equal(found.table["node"], node))
        yield f"{_word(node)}_stale_count", len(of_node)
        yield from _ages(f"{_word(node)}_", _ages_ns(of_node))


def _ages(prefix: str, ages_ns: NDArray[np.int64]) -> Iterable[tuple[str, float]]:
    if not len(ages_ns):
        return []
    p50, p99, most = np.quantile(ages_ns, [0.5, 0.99, 1.0], method="higher") / _NS_A_MS
    named = {"p50": p50, "p99": p99, "max": most}
    return [(f"{prefix}age_{name}_ms", float(age_ms)) for name, age_ms in named.items()]


def _ages_ns(stale: pa.Table) -> NDArray[np.int64]:
    ages: NDArray[np.int64] = stale["call_ns"].to_numpy() - stale["known_ns"].to_numpy()
    return ages


def _word(node: str) -> str:
    return node.replace("-", "_")


CHECKS: Final = (
    CheckGroup(
        name="visibility",
        entries=(STALE, NONREPEATABLE, BACKWARD_SESSION),
        answer=_answer,
        given=("faults",),
    ),
)
