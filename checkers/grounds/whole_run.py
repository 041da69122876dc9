"""A7 whole-run: What belongs together is there.

Each file was sealed, is there, and is what was sealed. Every send has a record. The records of each
kind of operation are as many as the operations tell of, and repeat of them what they tell. Copies
of the metadata log with equal digests have equal contents. The records of a replica go from the
start to the end of its log, which starts at 0. The keys of the run are those that clients sent to
and read to their ends, and each has replicas; replicas hold no record but markers that no client
sent to that key, as many as were counted, and one of them no fewer than the final read returned. Of
a run that came to its end, each table that it set out to record and that such a run always fills
holds something, in the columns that checks compare, too; a table that it did not set out to record
is empty. Transactions do not contradict themselves, their sends, or the offsets sent with them.
Rows are numbered and ordered as their schemas say, nothing ends before it began, nothing is older
than the run, and no record was sent or read after its end.

A table that does not fit the others, or whose rows are not in the order that its schema states, is
not believed: the checks that need it are unknown, and so is the run.

Asked of what a run that came to its end always has. Sums alone are compared here, and whether each
value on a disk was sent at all; the checks of keys and of replicas compare each record with its
neighbours.

Meaning: A run of which a part is missing looks like one in which nothing went wrong there, or like
one that lost what is missing.
Case: a sealed file
Source: checkers/grounds/whole_run.py
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fencepost.checkers.entry import CatalogueEntry, Kind
from fencepost.checkers.grounds.file_survey import (
    READ_ELSEWHERE,
    TOLD,
    FileSurvey,
    survey_of,
    table_of,
)
from fencepost.checkers.grounds.history_summary import HistorySummary
from fencepost.checkers.grounds.repeated import signed
from fencepost.checkers.runner.tables import SealedFile, cluster_file, run_files
from fencepost.checkers.runner.tasks import TaskSession
from fencepost.checkers.verdict import CheckResult, Validity, reasons_listed
from fencepost.history.manifest import Manifest
from fencepost.history.operation import F
from fencepost.history.roles import BROKER, ZOOKEEPER, role_of
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import RECORD_BUCKET_COUNT, RUN_TABLES, TABLES

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    kind=Kind.ASSUMPTION,
)
NAME: Final = ENTRY.name

_FILLED: Final[Mapping[str, str]] = {
    "wire": "the tape",
    "metadata_log": "the copy of the metadata log",
    "metadata_offsets": "the table of metadata offsets",
    "describes": "the table of metadata reads",
    "metadata_writes": "the table of metadata writes",
    "quorum_claims": "the table of who claimed to lead the quorum",
    "replicas": "the table of replicas on disks",
    "replica_records": "the copy of the replicas' records",
    "node_settings": "the table of the nodes' settings",
    "transactions": "the table of transactions",
    "group_offsets": "the table of groups' offsets",
}
"""The tables that a run fills which set out to record them and went as planned, by name."""


_OF_CLIENTS: Final = ("operations", "records", "transactions", "group_offsets")
"""The tables whose writers end before the run does. The cluster, its tape, and those who read and
write its metadata go on until it is stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeRun:
    """The answer, and the tables that do not fit."""

    result: CheckResult
    tables: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Wrong:
    tables: tuple[str, ...]
    """Nothing that was found in these counts."""
    reason: str


def whole_run_of(
    run: RunDirectory,
    manifest: Manifest,
    summary: HistorySummary | None,
    *,
    session: TaskSession,
    budget_s: float,
) -> WholeRun:
    """Judge a stored run; `summary`: of its operations, None without any."""
    files = list(_files(run, manifest))
    answers = run_files(session, files, survey_of, budget_s=budget_s)
    surveys = [one.content for one in answers if one.content is not None]
    unread = [
        # Of a table that is spread over files, what was found in the others stands.
        _Wrong(
            () if (table := table_of(one.task.path)) in READ_ELSEWHERE else (table,), one.failure
        )
        for one in answers
        if one.content is None
    ]
    sealed = {table_of(name) for name in manifest.digests}
    unsealed = (manifest.tables & {*TABLES}) - sealed
    unsealed |= {table_of(one.path) for one in files if not one.digest}
    loose = [
        _Wrong((), f"{name} has no digest: nothing shows that it is what was recorded")
        for name in sorted(unsealed)
    ]
    found = _found(manifest, summary, surveys)
    return _answer([*unread, *loose, *found], case_count=len(files))


def whole_run(
    manifest: Manifest, summary: HistorySummary | None, surveys: Sequence[FileSurvey]
) -> WholeRun:
    """Judge a run by its manifest, the sums of its operations, and those of its other files."""
    return _answer(list(_found(manifest, summary, surveys)), case_count=len(surveys))


def _answer(wrong: Sequence[_Wrong], *, case_count: int) -> WholeRun:
    reasons = list(dict.fromkeys(one.reason for one in wrong))
    result = CheckResult(
        check=NAME,
        validity=Validity.UNKNOWN if reasons else Validity.VALID,
        case_count=case_count,
        reason=reasons_listed(reasons),
    )
    return WholeRun(result=result, tables=frozenset(name for one in wrong for name in one.tables))


def _found(
    manifest: Manifest, summary: HistorySummary | None, surveys: Sequence[FileSurvey]
) -> Iterator[_Wrong]:
    rows: Counter[str] = Counter()
    for one in surveys:
        rows[one.table] += one.row_count
    # A cluster that never came up fills little; that run is unknown, unless it proves something.
    went = manifest.end_ns is not None and not manifest.shortfalls
    for name, words in _FILLED.items() if went else ():
        if name in manifest.recorded and name in rows and not rows[name]:
            yield _Wrong((), f"{words} ({name}) is empty")
    for name in sorted(set(rows) & set(RUN_TABLES) - {"faults", "samples"} - manifest.tables):
        if rows[name]:
            yield _Wrong(
                (), f"{name} has {rows[name]} rows, and the run did not set out to record it"
            )
    for name in sorted({*manifest.recorded} - set(RUN_TABLES)):
        yield _Wrong((), f"the manifest names a table {name}, which does not exist")
    # Of ZooKeeper's the digest is a transaction's, and what it changes depends on the state before.
    digested = all(role_of(node) != ZOOKEEPER for node in manifest.node_ids)
    for one in surveys:
        yield from _inconsistent(one)
        if one.copies and digested:
            yield _Wrong((one.table,), one.copies)
        # The zero of a history that another tool recorded may be anywhere.
        if one.span_ns is not None and (one.table in RUN_TABLES or manifest.cluster):
            first_ns, last_ns = one.span_ns
            bound_ns = manifest.end_ns if one.table in _OF_CLIENTS else None
            if first_ns < 0 or last_ns > (bound_ns or last_ns):
                yield _Wrong(
                    (one.table,),
                    f"{one.table} tells of times from {first_ns} to {last_ns} ns, and the run "
                    f"ended at {manifest.end_ns} ns",
                )
    if went and any(role_of(node) == BROKER for node in manifest.node_ids):
        yield from _blank(rows, surveys)
    yield from _miscounted(manifest, surveys)
    # Whatever the clients were told of other records still counts.
    yield from (_Wrong((), one.strange) for one in surveys if one.strange)
    if summary is not None:
        yield from _of_clients(manifest, summary, surveys)


def _inconsistent(one: FileSurvey) -> Iterator[_Wrong]:
    if one.disorder:
        yield _Wrong((one.table,), f"{one.table}: {one.disorder}")
    if one.contradiction:
        # Nothing tells which of the two tables is wrong.
        yield _Wrong((one.table, "transactions"), one.contradiction)


def _blank(rows: Mapping[str, int], surveys: Sequence[FileSurvey]) -> Iterator[_Wrong]:
    for table, columns in TOLD.items():
        mine = [one for one in surveys if one.table == table and one.row_count]
        for column in columns if mine else ():
            if all(column in one.blank for one in mine):
                yield _Wrong((table,), f"{table} has {rows[table]} rows, and no {column} in any")


def _miscounted(manifest: Manifest, surveys: Sequence[FileSurvey]) -> Iterator[_Wrong]:
    if not {"replicas", "replica_records"} <= set(manifest.recorded):
        return
    counted, there = (_all_records(surveys, name) for name in ("replicas", "replica_records"))
    for key, node in sorted(counted.keys() | there.keys()):
        told, found = counted.get((key, node), 0), there.get((key, node), 0)
        if told != found:
            yield _Wrong(
                ("replicas", "replica_records"),
                f"the log of {key} on {node} was counted to have {told} records, and {found} are "
                "there",
            )
    spans, found_spans = (_all_bounds(surveys, name) for name in ("replicas", "replica_records"))
    for place in sorted(spans.keys() & found_spans.keys()):
        (first, end), (first_there, end_there) = spans[place], found_spans[place]
        if (first, end) != (first_there, end_there) or first:
            key, node = place
            yield _Wrong(
                ("replicas", "replica_records"),
                f"the log of {key} on {node} was read to go from {first} to {end}, and its records "
                f"go from {first_there} to {end_there}; none is to be removed at its begin",
            )


def _of_clients(
    manifest: Manifest, summary: HistorySummary, surveys: Sequence[FileSurvey]
) -> Iterator[_Wrong]:
    clients = ("operations", "records")
    if summary.recordless is not None:
        yield _Wrong(clients, f"operation {summary.recordless} is a send without a record")
    if summary.disorder:
        yield _Wrong(clients, summary.disorder)
    yield from _unlike(summary, [one for one in surveys if one.table == "records"])
    sent, read = (summary.keys.get(f, frozenset()) for f in (F.SEND, F.FINAL_READ))
    held: Counter[str] = Counter()
    for (key, _), count in _all_records(surveys, "replicas").items():
        held[key] += count
    yield from _gone_since(summary, surveys)
    for key in sorted(key for key, count in held.items() if count and key not in sent):
        yield _Wrong(clients, f"replicas hold {held[key]} records of {key}, and no client sent any")
    if not manifest.recorded or not manifest.keys:
        return
    for key in sorted((sent | read) - set(manifest.keys)):
        yield _Wrong(clients, f"clients used {key}, which is no key of the run")
    for key in sorted(set(manifest.keys) - read) if read else ():
        yield _Wrong(clients, f"{key} is a key of the run without a final read")
    if "replicas" in manifest.recorded and manifest.end_ns is not None:
        for key in sorted(sent - held.keys()):
            yield _Wrong(("replicas",), f"clients sent to {key}, and no replica of it is told of")


def _unlike(summary: HistorySummary, files: Sequence[FileSurvey]) -> Iterator[_Wrong]:
    """Find records that are not those of which the operations tell."""
    clients = ("operations", "records")
    rows = sum((Counter(one.rows_by_f) for one in files), Counter[str]())
    # Where they are fewer or more in all, `whole-records` says so to whoever rests on that.
    swapped = clients if rows.total() == sum(summary.record_counts.values()) else ()
    is_like = len(files) == RECORD_BUCKET_COUNT
    for f in F if is_like else ():
        told, there = summary.record_counts.get(f, 0), rows[f]
        if told != there:
            is_like = False
            yield _Wrong(
                swapped, f"operations tell of {told} records of {f}, and {there} are there"
            )
    repeated = [one.repeated for one in files if one.repeated is not None]
    is_summed = summary.repeated is not None and len(repeated) == len(files)
    if is_like and is_summed and signed(sum(repeated)) != summary.repeated:
        yield _Wrong(clients, "records do not repeat what operations tell of them")


def _gone_since(summary: HistorySummary, surveys: Sequence[FileSurvey]) -> Iterator[_Wrong]:
    """Find final reads with more records than any replica, whose disk was read later, holds."""
    longest: dict[str, int] = {}
    for (key, _), count in _all_records(surveys, "replicas").items():
        longest[key] = max(longest.get(key, 0), count)
    for final in summary.final_reads:
        if final.record_count > longest.get(final.key, final.record_count):
            yield _Wrong(
                ("replicas", "replica_records"),
                f"the final read of {final.key} returned {final.record_count} records, and no "
                f"replica holds more than {longest[final.key]}",
            )


def _all_bounds(
    surveys: Iterable[FileSurvey], table: str
) -> Mapping[tuple[str, str], tuple[int, int]]:
    mine = (one.bounds for one in surveys if one.table == table)
    return {place: bounds for one in mine for place, bounds in one.items()}


def _all_records(surveys: Iterable[FileSurvey], table: str) -> Counter[tuple[str, str]]:
    records: Counter[tuple[str, str]] = Counter()
    for one in surveys:
        if one.table == table:
            records.update(one.records)
    return records


def _files(run: RunDirectory, manifest: Manifest) -> Iterator[SealedFile]:
    """Yield the files that were sealed, and those of the tables that were to be recorded."""
    recorded = (
        cluster_file(run, manifest, name, bucket=bucket)
        for name in sorted({*manifest.recorded} & set(RUN_TABLES))
        for bucket in range(RECORD_BUCKET_COUNT if name == "replica_records" else 1)
    )
    above = run.source or str(run.root)
    sealed = (
        SealedFile(path=f"{above}/{name}", digest=digest)
        for name, digest in sorted(manifest.digests.items())
    )
    yield from dict.fromkeys((*sealed, *recorded))


CHECKS: Final = (ENTRY,)
