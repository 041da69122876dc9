"""The checks of transactions, as a group of the checker."""

from collections.abc import Sequence
from functools import partial
from time import perf_counter
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.anomaly import Found, none
from fencepost.checkers.check_group import CheckGroup, GroupAnswers, Question
from fencepost.checkers.finding_rows import FINDINGS, findings_table, found_row
from fencepost.checkers.results import FileAnswers, anomalies_found, result_of
from fencepost.checkers.runner.tables import record_files
from fencepost.checkers.runner.tasks import TaskResult
from fencepost.checkers.transactions.hanging import HANGING, hanging_transactions
from fencepost.checkers.transactions.open_transactions import OpenTransaction, open_in
from fencepost.checkers.transactions.torn import (
    TORN,
    sightings_in,
    suspects,
    torn_transactions,
    whole_transactions,
)
from fencepost.checkers.verdict import CheckResult, Validity
from fencepost.history.failure import HarnessError
from fencepost.history.schema import RECORD_BUCKET_COUNT

Content = TypeVar("Content")

_NAME: Final = "transactions"


def _answer(question: Question) -> GroupAnswers:
    """Run each check separately: a table that one cannot read does not affect the other."""
    results, findings = [], [FINDINGS.empty_table()]
    for entry, check in _CHECKS:
        name = entry.name
        if name not in question.checks:
            continue
        started = perf_counter()
        try:
            table, unreadable = check(question)
        except HarnessError as error:
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
    transactions = question.rows("transactions")
    unread, unreadable = _sightings(question, values=None)
    values = np.array([row["value"] for row in unread], dtype=np.int64)
    suspected = suspects(transactions, unread=values)
    seen: list[dict[str, Any]] = []
    if suspected:
        wanted = np.array([v for one in suspected for v in one.values], dtype=np.int64)
        seen, _ = _sightings(question, values=wanted)
    judged = torn_transactions(
        suspected,
        sightings=seen,
        final_reads=question.setting.final_reads,
        whole=whole_transactions(transactions, unread=values),
    )
    clean = {key: None for keys in transactions["keys"].to_pylist() for key in keys}
    return _findings(TORN.name, dict(judged), clean), unreadable


def _hanging(question: Question) -> tuple[pa.Table, list[str]]:
    left_open: dict[str, list[OpenTransaction]] = {}
    unreadable: list[str] = []
    if "replica_records" in question.manifest.recorded:
        buckets = [
            question.file("replica_records", bucket=bucket) for bucket in range(RECORD_BUCKET_COUNT)
        ]
        found, unreadable = _flat(question.each_file(buckets, open_in))
        for one in found:
            left_open.setdefault(one.key, []).append(one)
    judged = hanging_transactions(
        question.rows("stable_offsets"),
        transactions=question.rows("transactions"),
        left_open=left_open,
    )
    return _findings(HANGING.name, dict(judged), {}), unreadable


_CHECKS: Final = ((TORN, _torn), (HANGING, _hanging))


def _sightings(
    question: Question, *, values: NDArray[np.int64] | None
) -> tuple[list[dict[str, Any]], list[str]]:
    files = record_files(question.run, question.manifest)
    return _flat(question.each_file(files, partial(sightings_in, values=values)))


def _flat(answers: Sequence[TaskResult[Any, list[Content]]]) -> tuple[list[Content], list[str]]:
    """Return the content of all files, and the reasons why some could not be read."""
    found = [one for answer in answers for one in answer.content or ()]
    return found, [answer.failure for answer in answers if answer.failure]


def _findings(name: str, judged: dict[str, Found], clean: dict[str, None]) -> pa.Table:
    """Return FINDINGS: a row per judged key, those without a finding included."""
    founds = {key: none(name, key, cases=0) for key in clean if key not in judged} | judged
    rows = [found_row(name, found) | {"key": key} for key, found in founds.items()]
    return findings_table([row | {"path": _NAME, "seconds": 0.0} for row in rows])


CHECKS: Final = (CheckGroup(name=_NAME, entries=(TORN, HANGING), answer=_answer),)
