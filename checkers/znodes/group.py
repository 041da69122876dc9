"""The checks of znodes, as a group of the checker.

The unit is a znode: its operations are in one file, and a task holds one file. Rows that a kernel
cannot understand cost their znode the answer, and no other.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final

import pyarrow as pa

from fencepost.checkers.anomaly import Found
from fencepost.checkers.check_group import CheckGroup, GroupAnswers, Question
from fencepost.checkers.entry import CatalogueEntry, Kind, Nearness
from fencepost.checkers.finding_rows import findings_table, found_row, unknown_row
from fencepost.checkers.grounds.grounds import fault_windows
from fencepost.checkers.grounds.object_evidence import ObjectTally, evidence, tally_of
from fencepost.checkers.grounds.operations import FaultWindow
from fencepost.checkers.results import FileAnswers, anomalies_found, result_of
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.runner.tables import SealedFile, load_faults, rows_in
from fencepost.checkers.runner.tasks import TaskResult
from fencepost.checkers.verdict import CheckResult, Validity
from fencepost.checkers.whole_operations import whole_operations
from fencepost.checkers.znodes import linearizable, lost_writes, sessions, stale_reads, zxids
from fencepost.checkers.znodes.linearizable import found_of, judgement
from fencepost.checkers.znodes.lost_writes import lost_writes as lost_writes_of
from fencepost.checkers.znodes.operations import ZnodeOperation, znodes_of
from fencepost.checkers.znodes.sessions import sessions_that_went_back
from fencepost.checkers.znodes.stale_reads import Disturbance, stale_sync_reads
from fencepost.checkers.znodes.zxids import zxids_out_of_order
from fencepost.history.manifest import Manifest
from fencepost.history.schema import RECORD_BUCKET_COUNT

_GUIDE: Final = "https://zookeeper.apache.org/doc/current/zookeeperProgrammers.html#ch_zkGuarantees"
_TIME: Final = "https://zookeeper.apache.org/doc/current/zookeeperProgrammers.html#sc_timeInZk"
_INTERNALS: Final = (
    "https://zookeeper.apache.org/doc/current/zookeeperInternals.html#sc_consistency"
)
_WANTED: Final = ("create", "set", "cas", "read", "sync-read", "final-read")
_USES: Final = {"write": "write", "read": "sync read"}
"""The uses that are counted during each kind of fault, with their words."""
_TABLE: Final = "znode_operations"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The operations of a file, counted."""

    row_count: int
    first_index: int | None
    last_index: int | None
    counted: ObjectTally = field(default_factory=ObjectTally)


WHOLE: Final = CatalogueEntry.of(
    """Z0 whole-znodes: No operation on a znode is missing.

    Over all znodes, the least index is 0 and the greatest is one less than the number of
    operations, and every file could be read.

    Meaning: Otherwise a state that no recorded operation made may have been made by a lost one.
    Case: an operation
    Source: history/schema.py, ZNODE_OPERATIONS
    """,
    kind=Kind.ASSUMPTION,
    needs=(_TABLE,),
)
EVIDENCE: Final = CatalogueEntry.of(
    """Z1 znode-evidence: Enough was done to znodes to tell.

    Some of the faults that were asked for took effect, and each kind that the scenario demands.
    There are ok operations of each function: create, set, cas, read, sync-read and final-read; or,
    where the run says what its clients set out to do, of each of these (of delete, too). During
    each kind of fault that took effect, or of these each that the scenario names (`require:
    {served: […]}`), a write and a sync read were called that are ok. Of drawn faults: during any,
    and during each kind that the scenario demands or that took effect three times.

    Meaning: An ensemble that does nothing breaks no promise.
    Case: something that has to be there: operations of each function, and writes and reads during
    each kind of fault
    Source: Jepsen, checker `stats`
    """,
    kind=Kind.GROUND,
    needs=(_TABLE,),
)
WRITES: Final = CatalogueEntry.of(
    """Z2 nonlinearizable-write: No order of the writes on a znode explains every answer.

    Creates, sets, conditional sets and deletes that were acknowledged or refused, and final reads,
    each at one moment between its call and its return, are compared with what a znode does when it
    is undisturbed (history/models.py): by the moments at which its states appear, each made once,
    with one value. Any read found a state that had been made by its return. Crashed writes took
    effect at any moment after their call, or never; a refusal that a crashed write which no answer
    shows can explain is left out.

    Meaning: ZooKeeper broke its promise for writes: a change was lost, made twice, or undone, a
    condition did not hold, or a read showed what was never committed.
    Case: an answer that names a state, or a refusal
    Source: ZooKeeper Internals, Consistency Guarantees: writes are linearizable,
    https://zookeeper.apache.org/doc/current/zookeeperInternals.html#sc_consistency; Programmer's
    Guide, Reliability,
    https://zookeeper.apache.org/doc/current/zookeeperProgrammers.html#ch_zkGuarantees; Herlihy,
    Wing 1990
    """,
    kind=Kind.ANOMALY,
    nearness=Nearness.CLIENT,
    rests_on=(WHOLE.name,),
    needs=(_TABLE,),
)
LOST: Final = CatalogueEntry.of(
    """Z3 lost-acknowledged-write: A write that was acknowledged is gone.

    A change had returned before a final read was called, and what that read found cannot come after
    it: an earlier version or life; the same version with another value; no znode, or a later life,
    where no delete can have ended the life; the life that a delete ended.

    Meaning: Data that clients were told is safe is lost. The proof names the write, and the read on
    each server that lacks it.
    Case: an acknowledged change before a final read of its znode
    Source: ZooKeeper Programmer's Guide, Consistency Guarantees, Reliability,
    https://zookeeper.apache.org/doc/current/zookeeperProgrammers.html#ch_zkGuarantees
    """,
    kind=Kind.ANOMALY,
    nearness=Nearness.RECORD,
    rests_on=(WHOLE.name,),
    needs=(_TABLE,),
)
STALE: Final = CatalogueEntry.of(
    """Z4 stale-sync-read: A read behind a sync showed what was no longer there.

    The next state of the znode had appeared before the sync read was called, by the latest moments
    that the writes, refusals and all reads leave; of a read that found nothing, a life had begun
    before its call and ended after its return.

    Meaning: A server that does not know that it is no longer the leader answered the sync.
    Allowed if: a fault was in effect during the read, or up to 10 s before it: two servers may then
    take themselves for the leader
    Case: a sync read, on a znode whose writes fit an order
    Source: ZooKeeper Internals, Consistency Guarantees: a sync is "not currently a quorum
    operation", https://zookeeper.apache.org/doc/current/zookeeperInternals.html#sc_consistency;
    https://issues.apache.org/jira/browse/ZOOKEEPER-1675
    """,
    kind=Kind.ANOMALY,
    nearness=Nearness.CLIENT,
    rests_on=(WHOLE.name,),
    needs=(_TABLE,),
)
WENT_BACK: Final = CatalogueEntry.of(
    """Z5 nonmonotonic-session: A session was shown an older view than before.

    Of one session, in the order in which it queued them: a read, plain or behind a sync, found a
    state of its znode after which another change of that znode is known, with a zxid up to one that
    the session had been told of; or it found nothing, although the session had been told of a life
    on which a write was acknowledged that was called later.

    Meaning: A client that changed servers lost sight of its own writes, or of what it had read.
    Case: an ok read of a session that had been told of a change
    Source: ZooKeeper Programmer's Guide, Consistency Guarantees, Single System Image,
    https://zookeeper.apache.org/doc/current/zookeeperProgrammers.html#ch_zkGuarantees
    """,
    kind=Kind.ANOMALY,
    nearness=Nearness.CLIENT,
    rests_on=(WHOLE.name,),
    needs=(_TABLE,),
)
ORDER: Final = CatalogueEntry.of(
    """Z6 nonmonotonic-zxid: A zxid was given twice, or went back.

    An acknowledged change has a zxid up to one that was told by an answer that had returned before
    its call, or by an answer to what its own session had queued earlier; or two answers with one
    zxid tell of different changes, or two operations of having made it.

    Meaning: The ensemble has forgotten how far it was: it began an epoch anew, or continued one
    from an earlier place, as when a majority loses its disks. What it gave the greater zxids to is
    likely to be lost. The proof names both answers, their zxids and their epochs.
    Case: an answer with a zxid
    Source: ZooKeeper Programmer's Guide, Time in ZooKeeper: each change has a unique zxid, and the
    smaller one happened before,
    https://zookeeper.apache.org/doc/current/zookeeperProgrammers.html#sc_timeInZk; Consistency
    Guarantees, Sequential Consistency,
    https://zookeeper.apache.org/doc/current/zookeeperProgrammers.html#ch_zkGuarantees
    """,
    kind=Kind.ANOMALY,
    nearness=Nearness.CLIENT,
    rests_on=(WHOLE.name,),
    needs=(_TABLE,),
)
_OF_FILES: Final = (WRITES, LOST, STALE)
_OVER_ALL: Final = (WENT_BACK, ORDER)


def _answer(question: Question) -> GroupAnswers:
    files = tuple(question.file(_TABLE, bucket=bucket) for bucket in range(RECORD_BUCKET_COUNT))
    faults = load_faults(question.run)
    work = _FileWork(broken=_broken(faults), windows=fault_windows(faults))
    answers = question.each_file(files, work)
    of_all = question.each((files,), _over_all)
    read = [one.content for one in answers if one.content is not None]
    tallies = [one.tally for one in read]
    unreadable = _failures(answers)
    whole = whole_operations(WHOLE.name, tallies, unreadable)
    rows = [row for one in read for row in one.rows]
    rows += [row for one in of_all for row in one.content or ()]
    findings = findings_table([row | {"path": _TABLE} for row in rows])
    results = [whole, evidence_of(question.manifest, faults, [one.counted for one in tallies])]
    for entry in (*_OF_FILES, *_OVER_ALL):
        failures = _failures(of_all) if entry in _OVER_ALL else unreadable
        lacking = whole.validity is not Validity.VALID and not failures
        results.append(
            result_of(
                entry,
                findings,
                files=FileAnswers(record_count=0, unreadable=failures, seconds=0.0),
                broken=frozenset((WHOLE.name,) if lacking else ()),
                died="",
            )
        )
    return GroupAnswers(
        results=tuple(one for one in results if one.check in question.checks),
        anomalies=pa.concat_tables(
            [anomalies_found(entry.name, findings) for entry in (*_OF_FILES, *_OVER_ALL)]
        ),
    )


def evidence_of(
    manifest: Manifest, faults: pa.Table, tallies: Sequence[ObjectTally]
) -> CheckResult:
    """Return whether enough was done to znodes."""
    demanded = tuple(manifest.asked_operations) or _WANTED
    return evidence(EVIDENCE.name, manifest, faults, tallies, demanded=demanded, uses=_USES)


def _failures(answers: Iterable[TaskResult[Any, Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.failure for one in answers if one.failure))


def _broken(faults: pa.Table) -> tuple[Disturbance, ...]:
    """Return when each fault was there, seen to take effect or not."""
    return tuple(
        Disturbance(
            begin_ns=row["begin_ns"],
            end_ns=OPEN_NS - stale_reads.DEPOSED_NS if row["end_ns"] is None else row["end_ns"],
        )
        for row in faults.to_pylist()
    )


CHECKS: Final = (
    CheckGroup(
        name="znodes",
        entries=(WHOLE, EVIDENCE, WRITES, LOST, STALE, WENT_BACK, ORDER),
        answer=_answer,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileFindings:
    """The findings of one task, about the znodes of a file."""

    rows: list[dict[str, Any]]
    """FINDINGS but their paths."""
    tally: Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileWork:
    """The work."""

    broken: Sequence[Disturbance]
    """The spans in which something was broken, from the begin of each fault on."""
    windows: Sequence[FaultWindow]
    """The spans in which faults were in effect."""

    def __call__(self, file: SealedFile) -> _FileFindings:
        """Judge the znodes of a file. Raises HarnessError, naming it, if it cannot be read."""
        table = rows_in(file, _TABLE)
        rows = [row for key, part in _by_key(table) for row in self._of_key(key, part)]
        return _FileFindings(rows=rows, tally=self._tally(table))

    def _of_key(self, key: str, part: pa.Table) -> Iterator[dict[str, Any]]:
        names = (linearizable.NAME, stale_reads.NAME, lost_writes.NAME)
        started = perf_counter()
        try:
            found = self._found(key, znodes_of(part))
        except Exception as error:  # noqa: BLE001  # one znode must not silence the others
            reason = f"the check crashed on {key}: {type(error).__name__}: {error}"
            rows = [unknown_row(name, reason, seconds=0.0) for name in names]
        else:
            rows = [found_row(name, one) for name, one in zip(names, found, strict=True)]
        seconds = (perf_counter() - started) / len(names)
        for row in rows:
            yield row | {"key": key, "seconds": seconds}

    def _found(self, key: str, operations: Sequence[ZnodeOperation]) -> tuple[Found, ...]:
        judged = judgement(operations)
        return (
            found_of(key, judged),
            stale_sync_reads(key, operations, judged, self.broken),
            lost_writes_of(key, operations),
        )

    def _tally(self, table: pa.Table) -> Tally:
        indices = table["index"].to_pylist()
        return Tally(
            row_count=len(indices),
            first_index=min(indices, default=None),
            last_index=max(indices, default=None),
            counted=tally_of(table.to_batches(), self.windows, _use_of),
        )


def _use_of(f: str) -> str | None:
    if f == "sync-read":
        return "read"
    return None if f.endswith("read") else "write"


def _over_all(files: Sequence[SealedFile]) -> list[dict[str, Any]]:
    """Judge the zxids and the sessions, over all znodes: FINDINGS but their paths.

    A task holds the history: a session uses every znode. Raises HarnessError, naming the file, if
    one cannot be read.
    """
    tables = ((key, part) for file in files for key, part in _by_key(rows_in(file, _TABLE)))
    by_key = {key: znodes_of(part) for key, part in tables}
    ordered = zxids_out_of_order(by_key)
    went_back = sessions_that_went_back(by_key, doubt=_doubt(found for _, found in ordered))
    return [
        found_row(name, found) | {"key": key, "seconds": 0.0}
        for name, findings in ((zxids.NAME, ordered), (sessions.NAME, went_back))
        for key, found in findings
    ]


def _doubt(ordered: Iterable[Found]) -> str:
    wrong = next((found for found in ordered if found.never_count), None)
    return "" if wrong is None else f"zxids are no order: {wrong.table['detail'][0].as_py()}"


def _by_key(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Yield each znode with its rows; those of one follow each other."""
    keys = table["key"].to_pylist()
    start = 0
    for end in range(1, len(keys) + 1):
        if end == len(keys) or keys[end] != keys[start]:
            yield keys[start], table.slice(start, end - start)
            start = end
