"""The checks of transactions, as a group of the checker."""

from time import perf_counter
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from checkers.anomaly import Found, none
from checkers.check_group import CheckGroup, GroupAnswers, Question
from checkers.finding_rows import FINDINGS, findings_table, found_row
from checkers.results import FileAnswers, anomalies_found, result_of
from checkers.runner.tables import (
    JobError,
    cluster_file,
    collected,
    file_frame,
    record_files,
    rows_in,
)
from checkers.transactions.hanging import HANGING, hanging_transactions
from checkers.transactions.open_transactions import OPEN, OpenTransaction, open_frame
from checkers.transactions.sightings import SIGHTINGS, sightings
from checkers.transactions.torn import TORN, suspects, torn_transactions, whole_transactions
from checkers.verdict import CheckResult, Validity
from history.failure import HarnessError
from history.schema import RECORD_BUCKET_COUNT

__all__ = ["CHECKS"]

_NAME: Final = "transactions"


def _answer(question: Question) -> GroupAnswers:
    """Each check by itself: what one cannot read is no reason against the other."""
    results, findings = [], [FINDINGS.empty_table()]
    for entry, check in _CHECKS:
        name = entry.name
        if name not in question.checks:
            continue
        started = perf_counter()
        try:
            table, unreadable = check(question)
        except (HarnessError, JobError) as error:
            results.append(CheckResult(check=name, validity=Validity.UNKNOWN, reason=str(error)))
            continue
        seconds = perf_counter() - started
        files = FileAnswers(record_count=0, unreadable=tuple(unreadable), seconds=seconds)
        results.append(result_of(entry, table, files=files, broken=frozenset(), died=""))
        findings.append(table)
    found = pa.concat_tables(findings)
    return GroupAnswers(
        results=tuple(results),
        anomalies=pa.concat_tables([anomalies_found(result.check, found) for result in results]),
    )


def _torn(question: Question) -> tuple[pa.Table, list[str]]:
    transactions = _table(question, "transactions")
    files = file_frame(question.spark, record_files(question.run, question.manifest))
    unread, unreadable = _rows(sightings(files, values=None), SIGHTINGS, question)
    values = np.array([row["value"] for row in unread], dtype=np.int64)
    suspected = suspects(transactions, unread=values)
    seen: list[dict[str, Any]] = []
    if suspected:
        wanted = np.array([v for one in suspected for v in one.values], dtype=np.int64)
        seen, _ = _rows(sightings(files, values=wanted), SIGHTINGS, question)
    judged = torn_transactions(
        suspected,
        sightings=seen,
        final_reads=question.setting.final_reads,
        whole=whole_transactions(transactions, unread=values),
    )
    clean = {key: None for keys in transactions["keys"].to_pylist() for key in keys}
    return _findings(TORN.name, dict(judged), clean), unreadable


def _hanging(question: Question) -> tuple[pa.Table, list[str]]:
    rows: list[dict[str, Any]] = []
    unreadable: list[str] = []
    if "replica_records" in question.manifest.recorded:
        buckets = [
            cluster_file(question.run, question.manifest, "replica_records", bucket=bucket)
            for bucket in range(RECORD_BUCKET_COUNT)
        ]
        rows, unreadable = _rows(open_frame(file_frame(question.spark, buckets)), OPEN, question)
    left_open: dict[str, list[OpenTransaction]] = {}
    for row in rows:
        row["nodes"], row["values"] = tuple(row["nodes"]), tuple(row["values"])
        left_open.setdefault(row["key"], []).append(OpenTransaction(**row))
    judged = hanging_transactions(
        _table(question, "stable_offsets"),
        transactions=_table(question, "transactions"),
        left_open=left_open,
    )
    return _findings(HANGING.name, dict(judged), {}), unreadable


_CHECKS: Final = ((TORN, _torn), (HANGING, _hanging))


def _table(question: Question, name: str) -> pa.Table:
    return rows_in(cluster_file(question.run, question.manifest, name), name)


def _rows(
    frame: DataFrame, schema: pa.Schema, question: Question
) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of keys, without what says which file they are of; and what could not be read."""
    table = collected(frame, schema=schema, budget_s=question.budget_s)
    unreadable = [reason for reason in table["unreadable"].to_pylist() if reason]
    rows = table.filter(pc.is_valid(table["key"])).drop_columns(["path", "unreadable"])
    return rows.to_pylist(), unreadable


def _findings(name: str, judged: dict[str, Found], clean: dict[str, None]) -> pa.Table:
    """FINDINGS: a row a key that was judged, those of which nothing was found included."""
    founds = {key: none(name, key, cases=0) for key in clean if key not in judged} | judged
    rows = [found_row(name, found) | {"key": key} for key, found in founds.items()]
    return findings_table([row | {"path": _NAME, "seconds": 0.0} for row in rows])


CHECKS: Final = (CheckGroup(name=_NAME, entries=(TORN, HANGING), answer=_answer),)
