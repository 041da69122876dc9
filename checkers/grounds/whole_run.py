"""A7 whole-run: what belongs together is there, and stands in its stated order.

Each table of a run tells of the others: the manifest names the keys, each of which was read to its
end; what is in a replica's log, some client sent; a send has a record; the replicas were counted
when they were read; a sealed file has a digest; a table that the run set out to record holds
something, and says something in the columns that all its checks compare. A run of which a part is
missing looks like one in which nothing went wrong there, and a part that is missing of the evidence
on one side only looks like a fault of the cluster. So nothing is believed that was found in a table
which does not fit the others, or whose rows are not in the order that its schema states, or which
end before they began: the checks that need it are unknown, and so is the run.

Asked of what a run that came to its end always has. Sums alone are compared here; each record is
compared with its neighbours by the checks of keys and of replicas.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.entry import CatalogueEntry, Kind
from checkers.grounds.history_summary import HistorySummary
from checkers.runner.tables import SealedFile, cluster_file, opened, run_files, source_in
from checkers.runner.tasks import TaskSession
from checkers.verdict import CheckResult, Validity, reasons_listed
from history.manifest import Manifest
from history.roles import BROKER, role_of
from history.run_directory import RunDirectory
from history.schema import RECORD_BUCKET_COUNT, RUN_TABLES, F

__all__ = ["CHECKS", "NAME", "FileSurvey", "WholeRun", "survey_of", "whole_run", "whole_run_of"]

NAME: Final = "whole-run"

_FILLED: Final[Mapping[str, str]] = {
    "wire": "the tape",
    "metadata_log": "the copy of the metadata log",
    "metadata_offsets": "the table of metadata offsets",
    "describes": "the table of metadata reads",
    "quorum_claims": "the table of who claimed to lead the quorum",
    "replicas": "the table of replicas on disks",
    "replica_records": "the copy of the replicas' records",
    "node_settings": "the table of the nodes' settings",
    "transactions": "the table of transactions",
    "group_offsets": "the table of groups' offsets",
}
"""The tables that a run fills which set out to record them and went as planned, by name."""

_TOLD: Final[Mapping[str, tuple[str, ...]]] = {
    "describes": ("partition", "leader", "isr"),
    "metadata_log": ("topic", "partition", "leader", "isr"),
    "replica_records": ("value",),
}
"""The nullable columns of which no table of brokers' partitions is without a value."""

_NUMBERS: Final[Mapping[str, tuple[str, str]]] = {
    "describes": ("read", "call_ns"),
    "metadata_writes": ("index", "call_ns"),
    "partition_writes": ("index", "call_ns"),
    "transactions": ("index", "begin_ns"),
    "group_offsets": ("index", "call_ns"),
}
"""The column that numbers the rows from 0 on, several in a row alike, and that of their begin."""

_READ_ELSEWHERE: Final = ("operations", "records", "wire", "replica_records")
"""The tables that are large, and are always compared with their digests by those who read them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSurvey:
    """The sums of a file."""

    table: str
    row_count: int
    blank: tuple[str, ...] = ()
    """Columns of `_TOLD` without any value."""
    disorder: str = ""
    """Where the rows are not as the schema states; empty if nowhere."""
    records: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(key, node) → records, that the replicas were counted to have or that are there."""


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
        _Wrong((_table_of(one.task.path),), one.failure) for one in answers if one.content is None
    ]
    return _answer([*unread, *_found(manifest, summary, surveys)], case_count=len(files))


def whole_run(
    manifest: Manifest, summary: HistorySummary | None, surveys: Sequence[FileSurvey]
) -> WholeRun:
    """Judge a run by its manifest, the sums of its operations, and those of its other files."""
    return _answer(list(_found(manifest, summary, surveys)), case_count=len(surveys))


def survey_of(file: SealedFile) -> FileSurvey:
    """Survey a sealed file. Raises HarnessError if it is missing, or is not what was sealed."""
    table = _table_of(file.path)
    if table in _READ_ELSEWHERE:
        file = replace(file, digest="")
    with opened(file, table) as parquet:
        survey = FileSurvey(
            table=table,
            row_count=int(parquet.metadata.num_rows),
            blank=tuple(one for one in _TOLD.get(table, ()) if _is_blank(parquet.metadata, one)),
        )
    there = SealedFile(path=file.path, digest="")
    if table in _NUMBERS:
        return replace(survey, disorder=_misnumbered(there, table))
    if table == "metadata_log":
        return replace(survey, disorder=_jumbled(there))
    if table in ("replicas", "replica_records"):
        return replace(survey, records=_records(there, table))
    return survey


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
        yield _Wrong((), f"the manifest names a table {name}, and there is none")
    for one in surveys:
        if one.disorder:
            yield _Wrong((one.table,), f"{one.table}: {one.disorder}")
    if went and any(role_of(node) == BROKER for node in manifest.node_ids):
        yield from _blank(rows, surveys)
    yield from _miscounted(manifest, surveys)
    if summary is not None:
        yield from _of_clients(manifest, summary, surveys)


def _blank(rows: Mapping[str, int], surveys: Sequence[FileSurvey]) -> Iterator[_Wrong]:
    for table, columns in _TOLD.items():
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


def _of_clients(
    manifest: Manifest, summary: HistorySummary, surveys: Sequence[FileSurvey]
) -> Iterator[_Wrong]:
    clients = ("operations", "records")
    if summary.recordless is not None:
        yield _Wrong(clients, f"operation {summary.recordless} is a send without a record")
    if summary.disorder:
        yield _Wrong(clients, summary.disorder)
    sent, read = (summary.keys.get(f, frozenset()) for f in (F.SEND, F.FINAL_READ))
    held: Counter[str] = Counter()
    for (key, _), count in _all_records(surveys, "replicas").items():
        held[key] += count
    for key in sorted(key for key, count in held.items() if count and key not in sent):
        yield _Wrong(clients, f"replicas hold {held[key]} records of {key}, and no client sent any")
    if not manifest.recorded or not manifest.keys:
        return
    for key in sorted((sent | read) - set(manifest.keys)):
        yield _Wrong(clients, f"clients used {key}, which is no key of the run")
    for key in sorted(set(manifest.keys) - read) if read else ():
        yield _Wrong(clients, f"{key} is a key of the run, and nobody read it to its end")
    if "replicas" in manifest.recorded and manifest.end_ns is not None:
        for key in sorted(sent - held.keys()):
            yield _Wrong(("replicas",), f"clients sent to {key}, and no replica of it is told of")


def _all_records(surveys: Iterable[FileSurvey], table: str) -> Counter[tuple[str, str]]:
    records: Counter[tuple[str, str]] = Counter()
    for one in surveys:
        if one.table == table:
            records.update(one.records)
    return records


def _is_blank(metadata: Any, column: str) -> bool:
    """Return whether a column, or a list of one, has no value in any row."""
    for group in range(metadata.num_row_groups):
        told = metadata.row_group(group)
        for place in range(told.num_columns):
            leaf = told.column(place)
            if leaf.path_in_schema.split(".")[0] != column:
                continue
            known = leaf.statistics
            if known is None or not known.has_null_count or known.null_count < leaf.num_values:
                return False
    return True


def _misnumbered(file: SealedFile, table: str) -> str:
    number_column, begin_column = _NUMBERS[table]
    last = -1
    for batch in source_in(file, table)((number_column, begin_column, "return_ns")):
        number = np.append(last, batch.column(number_column).to_numpy())
        steps = np.diff(number)
        if np.any(wrong := ~np.isin(steps, (0, 1) if table == "describes" else (1,))):
            place = int(np.argmax(wrong))
            return f"{number_column} {number[place + 1]} comes behind {number[place]}"
        begin_ns = batch.column(begin_column)
        early = pc.fill_null(pc.less(batch.column("return_ns"), begin_ns), False).to_numpy(False)
        if np.any(early):
            return f"{number_column} {number[int(np.argmax(early)) + 1]} ends before it began"
        last = int(number[-1])
    return ""


def _jumbled(file: SealedFile) -> str:
    """Return where the rows of a metadata log are not in the order of node and offset."""
    done: set[str] = set()
    node, offset = "", -1
    for batch in source_in(file, "metadata_log")(("node", "metadata_offset")):
        if not batch.num_rows:
            continue
        encoded = batch.column("node").dictionary_encode()
        codes, words = encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
        offsets = batch.column("metadata_offset").to_numpy()
        starts = np.flatnonzero(np.diff(codes, prepend=-1)).tolist()
        for start, end in zip(starts, [*starts[1:], len(codes)], strict=True):
            name = words[codes[start]]
            if name != node:
                if name in done:
                    return f"rows of {name} stand in several places"
                done.add(name)
                node, offset = name, -1
            mine = np.append(offset, offsets[start:end])
            if np.any(back := np.diff(mine) < 0):
                place = int(np.argmax(back))
                return f"on {name}, offset {mine[place + 1]} comes behind {mine[place]}"
            offset = int(mine[-1])
    return ""


def _records(file: SealedFile, table: str) -> Mapping[tuple[str, str], int]:
    counts: Counter[tuple[str, str]] = Counter()
    of_log = table == "replicas"
    for batch in source_in(file, table)(("key", "node", *(("record_count",) if of_log else ()))):
        rows = pa.Table.from_batches([batch]).group_by(["key", "node"])
        told = rows.aggregate([("record_count", "sum") if of_log else ([], "count_all")])
        for row in told.to_pylist():
            count = row["record_count_sum" if of_log else "count_all"]
            counts[row["key"], row["node"]] += count
    return dict(counts)


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


def _table_of(path: str) -> str:
    """Return the table of a file: `history/<table>.parquet`, or `history/<table>/<part>`."""
    parts = PurePosixPath(path).parts
    above = parts[-2]
    return PurePosixPath(parts[-1]).stem if above == "history" else above


CHECKS: Final = (
    CatalogueEntry(
        id="A7",
        name=NAME,
        title="What belongs together is there",
        kind=Kind.ASSUMPTION,
        rule="Each file that was sealed is there, and is what was sealed. Every send has a record. "
        "The keys of the run are those that clients sent to and read to their ends, and each has "
        "replicas; replicas hold records of no key that no client sent to, and as many as were "
        "counted. Of a run that came to its end, each table that it set out to record and that "
        "such a run always fills holds something, in the columns that checks compare, too; a table "
        "that it did not set out to record is empty. Rows are numbered and ordered as their "
        "schemas say, and nothing ends before it began.",
        meaning="A run of which a part is missing looks like one in which nothing went wrong "
        "there, or like one that lost what is missing.",
        case="a sealed file",
        source="checkers/grounds/whole_run.py",
    ),
)
